"""Name the places where agents of tenants are stored."""

from fermata.aws.dynamodb_items_and_writes import ItemKey
from fermata.aws.resources import Resources

AGENTS_SORT_KEY = "agents"


def build_agents_key(resources: Resources, tenant: str) -> ItemKey:
    """Return the key of the row that lists a tenant's agents."""
    return ItemKey(resources.settings.settings_table, f"t#{tenant}", AGENTS_SORT_KEY)


def build_definition_blob_key(tenant: str, reference: str) -> str:
    """Return the key of the object with the definition `id@version`."""
    agent_id, _, version = reference.partition("@")
    return f"agents/{tenant}/{agent_id}/{version}"
