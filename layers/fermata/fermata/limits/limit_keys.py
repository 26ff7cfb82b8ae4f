"""Build the keys of the rows that count use, and divide a tenant's limits among its rows."""

import hashlib
import zlib
from dataclasses import fields

from fermata.aws.dynamodb_items_and_writes import ItemKey
from fermata.aws.resources import Resources
from fermata.domain.use_limits import UseLimits

COUNTS_SORT_KEY = "counts"
"""Of the row of turns, prompts, uploads and stored bytes."""
TENANT_SHARDS = 16
"""Rows over which the counts of a tenant are spread, so that no row is written by all of its turns."""


def user_limits_partition(tenant: str, user: str) -> str:
    """Return the partition of what is counted of a user. It holds a digest, because a user's name may be long."""
    return f"t#{tenant}#limits#user#{hashlib.sha256(user.encode()).hexdigest()[:32]}"


def build_user_limits_key(resources: Resources, tenant: str, user: str, sort_key: str) -> ItemKey:
    return ItemKey(resources.settings.bridges_table, user_limits_partition(tenant, user), sort_key)


def build_tenant_limits_key(resources: Resources, tenant: str, shard: int, sort_key: str) -> ItemKey:
    """Return the key of a row that counts for a tenant.

    Args:
        tenant: The tenant's name.
        shard: One of `TENANT_SHARDS`.
        sort_key: What the row counts.
    """
    return ItemKey(resources.settings.bridges_table, f"t#{tenant}#limits#tenant#{shard:02}", sort_key)


def select_tenant_shard(use_id: str) -> int:
    """Return the row in which a turn, an upload or a reader counts, unless it is full."""
    return zlib.crc32(use_id.encode()) % TENANT_SHARDS


def divide_limits(limits: UseLimits, shard: int) -> UseLimits:
    """Return the part of a tenant's limits that one row may use. All parts together are the limits."""
    parts = {field.name: _divide(getattr(limits, field.name), shard) for field in fields(UseLimits)}
    return UseLimits(**parts)


def _divide(limit: int, shard: int) -> int:
    return limit // TENANT_SHARDS + (shard < limit % TENANT_SHARDS)
