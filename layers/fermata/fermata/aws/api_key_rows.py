"""Know where API keys are stored, and whether one is still valid, to packages that do not authenticate callers."""

from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources


def api_key_partition(tenant: str) -> str:
    """Return the partition of a tenant's API keys, in the tables `settings` and `usage`."""
    return f"t#{tenant}#apikeys"


def is_api_key_live(resources: Resources, tenant: str, key_id: str) -> bool:
    """Return whether a key exists, is not revoked and has not expired.

    Args:
        resources: The tables and the clock.
        tenant: The tenant's name.
        key_id: The key's id.
    """
    item: Item | None = resources.tables.get_item(resources.settings.settings_table, api_key_partition(tenant), key_id)
    if item is None or item.get("revoked_at") is not None:
        return False
    expires_at = item.get("expires_at")
    return expires_at is None or bool(expires_at > resources.clock.time())
