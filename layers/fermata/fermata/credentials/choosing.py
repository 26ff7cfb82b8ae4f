"""Which key and model a turn runs on, decided once when it starts."""

from fermata.aws.desk import Desk
from fermata.credentials import defaults
from fermata.credentials.keyring import NOT_FOUND, read, sealed_elsewhere
from fermata.words.base import Word
from fermata.words.errors import Invalid, NotFound


class Chosen(Word):
    """What the turn row pins; `credential_version` for credentials.keyring.open_key."""

    credential_id: str
    version: int
    provider: str
    model: str


def resolve(desk: Desk, tenant: str, scope: str, credential_id: str | None, model_id: str | None) -> Chosen:
    """What the conversation names, and the scope's default for what it does not.

    Invalid when neither says; NotFound when the credential is gone; Conflict when its key can no longer be opened.
    """
    if not credential_id or not model_id:
        credential_id, model_id = _completed(desk, tenant, scope, credential_id, model_id)
    credential = read(desk, tenant, credential_id)
    if credential is None:
        raise NotFound(NOT_FOUND)
    if not credential.is_current(desk.settings.key_id):
        raise sealed_elsewhere(credential)
    return Chosen(
        credential_id=credential_id, version=credential.version, provider=credential.provider_id, model=model_id
    )


def _completed(desk: Desk, tenant: str, scope: str, credential_id: str | None, model_id: str | None) -> tuple[str, str]:
    default = defaults.read(desk, tenant, scope)
    if credential_id and (default is None or default.credential_id != credential_id):
        raise Invalid("The conversation names a credential but no model. Name the model too.")
    if default is None:
        raise Invalid(
            f"No credential is set for {scope!r}. Set one with PUT /admin/api/ai/defaults/{scope}, "
            "or name one in the conversation."
        )
    return default.credential_id, model_id or default.model_id
