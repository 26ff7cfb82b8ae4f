"""Refuse a model that nobody offers before a turn is started with it."""

from collections.abc import Iterator
from difflib import get_close_matches

from fermata_client.commands.common.errors import CommandError
from fermata_client.commands.common.program_name import suggest_command
from fermata_client.service.client import FermataClient
from fermata_client.service.errors import RequestRefusedError

MAX_LISTED_MODELS = 5
MIN_MODEL_SIMILARITY = 0.3


def check_model_is_offered(client: FermataClient, scope: str, model: str | None, url: str | None) -> None:
    """Raise `CommandError` if the credential of a scope's default does not open this model.

    Where its models cannot be listed, any model is accepted: the provider decides then.
    """
    if not model:
        return
    try:
        known = list(_iter_models(client, scope))
    except RequestRefusedError:
        return
    names = {name for own in known for name in (own, own.partition(":")[0])}
    if not known or model in names or model.partition(":")[0] in names:  # a tag such as `:latest` may be left out
        return
    similar = get_close_matches(model, known, MAX_LISTED_MODELS, MIN_MODEL_SIMILARITY) or known[:MAX_LISTED_MODELS]
    raise CommandError(
        f"None of your credentials opens a model {model}. There are: {', '.join(similar)}. "
        f"All of them: {suggest_command('models', url=url)}"
    )


def _iter_models(client: FermataClient, scope: str) -> Iterator[str]:
    default = client.get_defaults().get(scope) or {}
    for credential in client.list_credentials():
        if default.get("credentialId") in (None, credential["id"]):
            for model in client.list_models(str(credential["providerId"]), str(credential["id"])):
                yield str(model["id"])
