"""Choose the credential and model of a turn, once, when the turn starts."""

from fermata.aws.dynamodb_items_and_writes import ReadItem
from fermata.aws.resources import Resources
from fermata.credentials import scope_defaults
from fermata.credentials.open_credential import CREDENTIAL_NOT_FOUND, read_credential, unreadable_key_error
from fermata.domain.base import DomainModel
from fermata.domain.errors import InvalidRequest, NotFound


class ModelChoice(DomainModel, defer_build=False):
    """What the turn row pins; `version` is the credential's, for `credential_store.open_credential`."""

    credential_id: str
    version: int
    provider: str
    model: str


def resolve_model_choice(
    resources: Resources,
    tenant: str,
    scope: str,
    credential_id: str | None,
    model_id: str | None,
    read_item: ReadItem | None = None,
) -> ModelChoice:
    """Return the credential and model that the conversation names, completed by the scope's default.

    Args:
        tenant: The tenant's name.
        scope: The scope whose default counts.
        credential_id: The conversation's credential; None or empty for the default's.
        model_id: The conversation's model; None or empty for the default's, which must be of the same credential.
        read_item: Reads the rows of the default and the credential; by default each with a request.

    Raises:
        InvalidRequest: Neither the conversation nor the scope names a credential and a model.
        NotFound: The credential was deleted.
        Conflict: Its key can no longer be decrypted.
    """
    if not credential_id or not model_id:
        default = scope_defaults.read_default(resources, tenant, scope, read_item)
        credential_id, model_id = _complete_from_default(default, scope, credential_id, model_id)
    credential = read_credential(resources, tenant, credential_id, read_item)
    if credential is None:
        raise NotFound(CREDENTIAL_NOT_FOUND)
    if not credential.is_current(resources.settings.key_id):
        raise unreadable_key_error(credential)
    return ModelChoice(
        credential_id=credential_id, version=credential.version, provider=credential.provider_id, model=model_id
    )


def _complete_from_default(
    default: scope_defaults.ScopeDefault | None, scope: str, credential_id: str | None, model_id: str | None
) -> tuple[str, str]:
    if credential_id and (default is None or default.credential_id != credential_id):
        raise InvalidRequest("The conversation names a credential but no model. Name the model too.")
    if default is None:
        raise InvalidRequest(
            f"No credential is set for {scope!r}. Set one with PUT /admin/api/ai/defaults/{scope}, "
            "or name one in the conversation."
        )
    return default.credential_id, model_id or default.model_id
