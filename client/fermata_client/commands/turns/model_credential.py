"""Find the credential that opens a model, and refuse a model that nobody offers before a turn is started with it."""

from difflib import get_close_matches

from fermata_client.commands.common.errors import CommandError
from fermata_client.commands.common.program_name import suggest_command
from fermata_client.service.client import FermataClient
from fermata_client.service.errors import RequestRefusedError
from fermata_client.service.json_types import JsonObject

MAX_LISTED_MODELS = 5
MIN_MODEL_SIMILARITY = 0.3


def find_credential_of_model(client: FermataClient, scope: str, model: str | None, url: str | None) -> str | None:
    """Return the id of the caller's credential that opens this model; None for that of the scope's default.

    Where models cannot be listed, any model is accepted: the provider decides then.

    Raises:
        CommandError: none of the caller's credentials opens it.
    """
    if not model:
        return None
    try:
        default_id = (client.get_defaults().get(scope) or {}).get("credentialId")
        own = client.list_credentials()
    except RequestRefusedError:
        return None
    own.sort(key=lambda credential: credential["id"] != default_id)  # the default's first
    is_complete = default_id is None or default_id in [credential["id"] for credential in own]
    known: list[str] = []
    for credential in own:
        models = _list_model_ids(client, credential)
        if _has_model(models or [], model):
            return None if credential["id"] == default_id else str(credential["id"])
        known += models or []
        is_complete = is_complete and models is not None
    if not known or not is_complete:
        return None
    similar = get_close_matches(model, known, MAX_LISTED_MODELS, MIN_MODEL_SIMILARITY) or known[:MAX_LISTED_MODELS]
    raise CommandError(
        f"None of your credentials opens a model {model}. There are: {', '.join(similar)}. "
        f"All of them: {suggest_command('models', url=url)}"
    )


def _list_model_ids(client: FermataClient, credential: JsonObject) -> list[str] | None:
    """Return the ids of the models that a credential opens; None if its provider does not list them now."""
    try:
        return [str(model["id"]) for model in client.list_models(str(credential["providerId"]), str(credential["id"]))]
    except RequestRefusedError:
        return None


def _has_model(known: list[str], model: str) -> bool:
    names = {name for own in known for name in (own, own.partition(":")[0])}
    return model in names or model.partition(":")[0] in names  # a tag such as `:latest` may be left out
