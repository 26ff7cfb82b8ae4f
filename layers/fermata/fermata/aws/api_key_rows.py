"""Know where API keys are stored, and whether one is still valid, to packages that do not authenticate callers."""

from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources

_USER_PREFIX = "apikey:"
_MAX_MAKERS = 20
"""Of keys that were made with keys, one with the other."""


def api_key_partition(tenant: str) -> str:
    """Return the partition of a tenant's API keys, in the tables `settings` and `usage`."""
    return f"t#{tenant}#apikeys"


def make_api_key_user(key_id: str) -> str:
    """Return the name under which a key acts. It stays the same when its secret is rotated."""
    return _USER_PREFIX + key_id


def read_api_key_id(user: str) -> str:
    """Return the id of the key that acts under a name; empty if a person does."""
    return user.removeprefix(_USER_PREFIX) if user.startswith(_USER_PREFIX) else ""


def read_live_api_key(resources: Resources, tenant: str, key_id: str) -> Item | None:
    """Return the row of a key that exists, is not revoked and has not expired; else None.

    Args:
        resources: The tables and the clock.
        tenant: The tenant's name.
        key_id: The key's id.
    """
    item: Item | None = resources.tables.get_item(resources.settings.settings_table, api_key_partition(tenant), key_id)
    if item is None or item.get("revoked_at") is not None:
        return None
    expires_at = item.get("expires_at")
    return item if expires_at is None or expires_at > resources.clock.time() else None


def is_api_key_live(resources: Resources, tenant: str, key_id: str) -> bool:
    """Return whether a key exists, is not revoked and has not expired.

    Args:
        resources: The tables and the clock.
        tenant: The tenant's name.
        key_id: The key's id.
    """
    return read_live_api_key(resources, tenant, key_id) is not None


def find_person(resources: Resources, tenant: str, user: str) -> str:
    """Return who acts under a name: for an API key the person who has made it, also with another key.

    Args:
        resources: The tables.
        tenant: The tenant's name.
        user: The name. That of a key which is not stored any more is returned itself.
    """
    for _ in range(_MAX_MAKERS):
        if not (key_id := read_api_key_id(user)):
            break
        item = resources.tables.get_item(resources.settings.settings_table, api_key_partition(tenant), key_id)
        if item is None:
            break
        user = str(item["created_by"])
    return user
