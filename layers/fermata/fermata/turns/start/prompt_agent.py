"""Open the agent that a prompt asks, with its properties for the caller's turn."""

import json
from functools import partial
from typing import Any, NamedTuple

from pydantic import ValidationError

from fermata.agents.agent import Agent
from fermata.agents.registry import open_agent
from fermata.aws.dynamodb_items_and_writes import ReadItem
from fermata.aws.resources import Resources
from fermata.credentials.model_choice import ModelChoice, resolve_model_choice
from fermata.credentials.scope_defaults import choose_model_of_default
from fermata.domain.agent_ids import read_agent_id
from fermata.domain.caller import Caller
from fermata.domain.conversation import Conversation
from fermata.domain.errors import InvalidRequest, NotFound, Unprocessable
from fermata.domain.page_context import MAX_CONTEXT_CHARS, NO_AGENT_CONTEXT, AgentContext
from fermata.turns.start.turn_prompt import TurnPrompt


class PromptAgent(NamedTuple):
    """The agent of a prompt.

    Attributes:
        context: What the client has said about the page, with the conversation and the user.
        resolved: The properties with operators, as they are for this turn.
    """

    agent: Agent
    context: AgentContext
    resolved: dict[str, Any]


def open_prompt_agent(resources: Resources, caller: Caller, prompt: TurnPrompt, read_item: ReadItem) -> PromptAgent:
    """Return the agent that a prompt's scope names.

    Args:
        caller: The user of the turn.
        prompt: The prompt.
        read_item: Reads the row with the tenant's agents.

    Raises:
        NotFound: The tenant has no such agent, or the caller may not ask it.
        InvalidRequest: The page shares too much.
        Unprocessable: A property is not allowed as it came out for this turn.
    """
    agent_id = read_agent_id(prompt.scope)
    if not agent_id:
        return PromptAgent(open_agent(prompt.scope), NO_AGENT_CONTEXT, {})
    # imported here because most prompts ask a built-in agent
    from fermata.agents.definitions.agent_list import find_entry_for_caller, read_agent_list
    from fermata.agents.definitions.definition_store import load_definition
    from fermata.agents.definitions.resolve_operators import resolve_operators

    entry = find_entry_for_caller(read_agent_list(resources, caller.tenant, read_item), caller, agent_id)
    try:
        definition = load_definition(resources, caller.tenant, f"{agent_id}@{entry.version}")
    except LookupError as error:  # the bucket was restored to an earlier time than the table
        raise NotFound(f"The agent {agent_id} is incomplete. Push it again.") from error
    _check_context_size(prompt.agent_context)
    context = prompt.agent_context.model_copy(
        update={"conversation_id": prompt.conversation_id, "user_id": caller.user}
    )
    written = {name: definition.properties[name] for name in definition.dynamic_properties}
    resolved = {name: value for name, value in resolve_operators(written, context, caller).items() if value is not None}
    if len(json.dumps(resolved)) > MAX_CONTEXT_CHARS:
        raise InvalidRequest(f"The properties of the agent {agent_id} came out larger than {MAX_CONTEXT_CHARS:,}.")
    load = partial(load_definition, resources)
    try:
        agent = open_agent(definition.reference, tenant=caller.tenant, definitions=load, resolved=resolved)
    except ValidationError as error:
        raise Unprocessable(_describe_problem(agent_id, error)) from None
    return PromptAgent(agent, context, resolved)


def _check_context_size(context: AgentContext) -> None:
    """Refuse what does not fit into the turn's row (decision 0360)."""
    if len(json.dumps(context.to_wire())) > MAX_CONTEXT_CHARS:
        raise InvalidRequest(f"The page may share {MAX_CONTEXT_CHARS:,} characters of JSON with an agent at most.")


def choose_prompt_model(
    resources: Resources, tenant: str, agent: Agent, conversation: Conversation, read_item: ReadItem
) -> ModelChoice:
    """Return the model and credential of a turn: the agent's own, or those of the conversation and its scope.

    Args:
        tenant: The tenant's name.
        agent: The agent of the turn.
        conversation: The conversation.
        read_item: Reads the rows of the default and the credential.

    Raises:
        NotFound: The credential does not exist.
        InvalidRequest: Neither the conversation nor its scope names a model.
        Unprocessable, Conflict: As `choose_agent_model`.
    """
    if agent.connection:
        from fermata.agents.definitions.configured_agent import ConfiguredAgent
        from fermata.turns.agent_model_connection import (
            choose_agent_model,  # most agents have no connection of their own
        )

        assert isinstance(agent, ConfiguredAgent)
        return choose_agent_model(resources, tenant, agent, read_item)
    return resolve_model_choice(
        resources, tenant, conversation.scope, conversation.credential_id, conversation.model_id, read_item
    )


def name_conversation_model(resources: Resources, conversation: Conversation, model_id: str) -> Conversation:
    """Return a conversation with the model that a client names. START stores it: a prompt that is refused changes none.

    Args:
        resources: Of the process.
        conversation: As it is stored.
        model_id: The provider's name of the model; empty for the conversation's own.

    Raises:
        InvalidRequest: The scope has no default.
    """
    if model_id in ("", conversation.model_id):
        return conversation
    credential_id, chosen = choose_model_of_default(resources, conversation.tenant, conversation.scope, model_id)
    named = {"credential_id": conversation.credential_id or credential_id, "model_id": chosen}
    return conversation.model_copy(update=named)


def _describe_problem(agent_id: str, error: ValidationError) -> str:
    detail = error.errors(include_url=False, include_input=False)[0]
    name = ".".join(map(str, detail["loc"])) or "properties"
    problem = f"its property {name!r} came out wrong for this turn ({detail['msg']})"
    return f"The agent {agent_id} cannot run here: {problem}."
