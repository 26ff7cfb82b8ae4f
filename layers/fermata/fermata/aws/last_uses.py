"""Store when credentials, API keys and connectors were last used (decisions 0043 and 0301).

The rows are in the usage table, where functions that use a secret may write anyway; so they need no permission to
change it.
"""

from typing import Literal

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS

LAST_USE_SECONDS = 400 * 86400
"""How long a last use is remembered, also of what is gone."""


def store_last_use(
    resources: Resources, partition: str, name: str, kind: Literal["credential", "api_key", "mcp_connector"]
) -> bool:
    """Store that something is used now. It never fails: a write that fails is logged.

    Args:
        resources: The usage table.
        partition: The partition of the rows of its kind.
        name: Its name among these.
        kind: What it is, for the log.

    Returns:
        Whether it is stored.
    """
    item: Item = {"pk": partition, "sk": name, "v": 1}
    item |= {"last_used_at": resources.clock.now_iso(), "ttl": int(resources.clock.time()) + LAST_USE_SECONDS}
    try:
        resources.tables.put_newest(resources.settings.usage_table, item, "last_used_at")
    except AWS_ERRORS as error:
        observability.log_warning(f"{kind}.touch_failed", **{kind: name}, reason=str(error))
        return False
    return True


def read_last_uses(resources: Resources, partition: str, name: str = "") -> dict[str, str]:
    """Return when each of a kind was last used, by its name.

    Args:
        resources: The usage table.
        partition: The partition of the rows of its kind.
        name: The only one to read; all without it.
    """
    rows = resources.tables.query_items(
        resources.settings.usage_table, partition, min_sk=name, max_sk=name, consistent=False
    )
    return {row["sk"]: row["last_used_at"] for row in rows}
