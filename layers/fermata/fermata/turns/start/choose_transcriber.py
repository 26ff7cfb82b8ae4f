"""Choose the model that turns the recordings of a prompt into text: the agent's, or that of the turn's provider."""

from functools import partial

from fermata.agents.agent import Agent
from fermata.aws.resources import Resources
from fermata.credentials.model_choice import ModelChoice
from fermata.credentials.open_endpoint import open_endpoint
from fermata.domain.errors import Unprocessable
from fermata.domain.run_settings import TranscriptionSettings
from fermata.drivers.audio_transcription import DEFAULT_TRANSCRIPTION_MODELS, can_transcribe
from fermata.drivers.registry import get_provider
from fermata.turns.generate.transcribe_recording import Transcriber


def choose_transcriber(resources: Resources, tenant: str, agent: Agent, choice: ModelChoice) -> Transcriber:
    """Return the model for the recordings of a turn.

    Args:
        resources: Of the process.
        tenant: The tenant's name.
        agent: The agent of the turn. Its `transcription` comes first.
        choice: The model of the turn.

    Raises:
        Unprocessable: Neither of them has one.
        NotFound, Conflict: Of the credential.
    """
    if agent.settings.transcription:
        return _choose_own(resources, tenant, agent, agent.settings.transcription)
    if choice.provider not in DEFAULT_TRANSCRIPTION_MODELS:
        raise Unprocessable(
            f"Recordings need a model that hears, and {get_provider(choice.provider).label} is not known to have one. "
            "Write the prompt, choose a model of OpenAI or Gemini, or let an agent name a connection as its "
            "'transcription'."
        )
    model = DEFAULT_TRANSCRIPTION_MODELS[choice.provider] or choice.model
    own = choice.model_copy(update={"model": model})
    if agent.connection:
        from fermata.turns.agent_model_connection import CONNECTION_CREDENTIAL_PREFIX, open_connection_endpoint

        if choice.credential_id.startswith(CONNECTION_CREDENTIAL_PREFIX):
            return Transcriber(own, partial(open_connection_endpoint, resources, tenant, agent))
    return Transcriber(own, partial(open_endpoint, resources, tenant, own.credential_id, own.version))


def _choose_own(resources: Resources, tenant: str, agent: Agent, settings: TranscriptionSettings) -> Transcriber:
    from fermata.agents.definitions.configured_agent import ConfiguredAgent
    from fermata.turns.agent_model_connection import choose_connection_model, open_own_endpoint

    assert isinstance(agent, ConfiguredAgent)
    connection = agent.definition.connections.get(settings.connection_id)
    if connection is None:
        raise Unprocessable(
            f"The agent {agent.id} names the connection {settings.connection_id} for recordings, which it does not "
            "have: name it in the definition, not by an operator."
        )
    choice = choose_connection_model(resources, tenant, connection, settings.model)
    if not can_transcribe(choice.provider):
        raise Unprocessable(f"{get_provider(choice.provider).label} has no models for recordings.")
    options = settings.provider_options.get(choice.provider, settings.provider_options)
    if connection.credential:
        opened = partial(open_endpoint, resources, tenant, choice.credential_id, choice.version)
        return Transcriber(choice, opened, options)
    return Transcriber(choice, partial(open_own_endpoint, resources, tenant, connection), options)
