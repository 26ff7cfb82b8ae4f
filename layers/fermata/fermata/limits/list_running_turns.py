"""List the turns of a tenant that have not ended (decisions 0278, 0307)."""

from fermata.aws.resources import Resources
from fermata.limits.leases import LEASE_PREFIX, list_leases
from fermata.limits.limit_keys import COUNTS_SORT_KEY, TENANT_SHARDS, build_tenant_limits_key


def list_running_turns(resources: Resources, tenant: str) -> list[str]:
    """Return the ids of turns that may not have ended, by one read.

    One that has waited for longer than an hour counts no more, and is found while it is among the latest of these.
    """
    keys = [build_tenant_limits_key(resources, tenant, shard, COUNTS_SORT_KEY) for shard in range(TENANT_SHARDS)]
    rows = resources.tables.batch_get_by_keys(keys, consistent=False).values()
    return [name.removeprefix(LEASE_PREFIX) for row in rows for name in list_leases(row)]
