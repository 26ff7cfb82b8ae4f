"""Read credentials, and open their keys: what a turn needs of them, which neither enters nor changes any."""

from collections.abc import Iterable

from fermata.aws.clock import is_valid_id
from fermata.aws.dynamodb_items_and_writes import (
    ItemKey,
    ReadItem,
)
from fermata.aws.resources import Resources
from fermata.aws.vault import SecretUndecryptable
from fermata.credentials.credential import (
    Credential,
    credential_sort_key,
)
from fermata.domain.errors import Conflict, NotFound

CREDENTIAL_CACHE_SECONDS = 300
CREDENTIAL_BATCH_SIZE = 100
CREDENTIAL_NOT_FOUND = "Credential not found or no longer accessible."


def build_credential_key(resources: Resources, tenant: str, credential_id: str) -> ItemKey:
    """Return the key of a credential's row.

    Args:
        tenant: The tenant's name.
        credential_id: A well-formed id.
    """
    return ItemKey(resources.settings.settings_table, f"t#{tenant}", credential_sort_key(credential_id))


def read_credential(
    resources: Resources, tenant: str, credential_id: str, read_item: ReadItem | None = None
) -> Credential | None:
    """Return a credential of any user of the tenant; None without one.

    Args:
        resources: The settings table.
        tenant: The tenant's name.
        credential_id: The id, as a client sent it.
        read_item: Reads the row; by default with a request.
    """
    if not is_valid_id(credential_id):
        return None
    item = (read_item or resources.tables.get_item_by_key)(build_credential_key(resources, tenant, credential_id))
    return Credential.from_stored(item) if item else None


def find_existing_ids(resources: Resources, tenant: str, credential_ids: Iterable[str]) -> frozenset[str]:
    """Return the ids whose credentials exist. Costs one read for each hundred ids, and none for no ids.

    Args:
        tenant: The tenant's name.
        credential_ids: In any order; malformed and repeated ones are not looked up.
    """
    valid_ids = sorted(credential_id for credential_id in set(credential_ids) if is_valid_id(credential_id))
    keys = [(f"t#{tenant}", credential_sort_key(credential_id)) for credential_id in valid_ids]
    batches = [keys[start : start + CREDENTIAL_BATCH_SIZE] for start in range(0, len(keys), CREDENTIAL_BATCH_SIZE)]
    items = [resources.tables.batch_get_items(resources.settings.settings_table, batch) for batch in batches]
    return frozenset(item["id"] for batch in items for item in batch.values())


def open_credential(resources: Resources, tenant: str, credential_id: str, version: int) -> tuple[Credential, str]:
    """Return a credential and its API key in plain text ("" if it has none). A warm process makes no AWS call.

    Only the newest key is stored. A turn that started with an earlier version gets the new key as soon as this process
    reads the row again, so an old key can be revoked five minutes after it was replaced.

    Args:
        tenant: The tenant's name.
        credential_id: A credential of any user of the tenant.
        version: The version that the turn started with. It is part of the cache key, so that a turn that starts after
            a change never gets the old key.

    Raises:
        NotFound: The credential was deleted.
        Conflict: Its key can no longer be decrypted.
    """
    key = ("credential", tenant, credential_id, version)
    credential = resources.cache.get_or_load(
        key, CREDENTIAL_CACHE_SECONDS, lambda: read_credential(resources, tenant, credential_id)
    )
    if credential is None:
        raise NotFound(CREDENTIAL_NOT_FOUND)
    if credential.sealed_key is None:
        return credential, ""
    if not credential.is_current(resources.settings.key_id):
        raise unreadable_key_error(credential)
    try:
        api_key = resources.vault.open_secret(
            credential.sealed_key, purpose="provider-key", tenant=tenant, name=credential_id
        )
    except SecretUndecryptable as error:
        raise unreadable_key_error(credential) from error
    return credential, api_key


def open_api_key(resources: Resources, tenant: str, credential_id: str, version: int) -> str:
    """Return a credential's API key in plain text. Arguments and errors are those of `open_credential`."""
    return open_credential(resources, tenant, credential_id, version)[1]


def unreadable_key_error(credential: Credential) -> Conflict:
    """Describe a credential whose API key was encrypted with another KMS key."""
    return Conflict(f"The key of credential {credential.display_label!r} can no longer be opened. Enter it again.")
