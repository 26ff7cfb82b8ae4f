"""List the turns of a tenant that count as running (decision 0278)."""

from fermata.aws.resources import Resources
from fermata.limits.limit_keys import TENANT_SHARDS, build_tenant_limits_key
from fermata.limits.use_counts import COUNTS_SORT_KEY, LEASE_PREFIX, TURN_LEASE_SECONDS, list_live_leases


def list_running_turns(resources: Resources, tenant: str) -> list[str]:
    """Return the ids of the turns that count, by one read. One that has waited for longer than an hour does not."""
    keys = [build_tenant_limits_key(resources, tenant, shard, COUNTS_SORT_KEY) for shard in range(TENANT_SHARDS)]
    now = resources.clock.time()
    rows = resources.tables.batch_get_by_keys(keys, consistent=False).values()
    leases = [name for row in rows for name in list_live_leases(row, now, TURN_LEASE_SECONDS)]
    return [name.removeprefix(LEASE_PREFIX) for name in leases]
