"""Take a turn that ends out of the counts of its user and its tenant.

It is a module of its own because every round may end its turn, and few begin one (decision 0169).
"""

from fermata.aws.dynamodb_items_and_writes import ItemKey, Update
from fermata.aws.resources import Resources
from fermata.limits.leases import build_lease_removal
from fermata.limits.limit_keys import COUNTS_SORT_KEY, build_tenant_limits_key, build_user_limits_key


def build_turn_removals(resources: Resources, tenant: str, user: str, turn: str, shard: int) -> list[Update]:
    """Build the writes after which a turn does not count any more. They belong to END.

    They have no condition, so that a count can never keep a turn from ending.

    Args:
        tenant: The tenant's name.
        user: The id of the user who started the turn.
        turn: The id of the turn, under which it counts.
        shard: The shard of the tenant's counts in which it counts.
    """
    now = resources.clock.time()
    return [build_lease_removal(key, turn, now) for key in list_turn_keys(resources, tenant, user, shard)]


def list_turn_keys(resources: Resources, tenant: str, user: str, shard: int) -> tuple[ItemKey, ItemKey]:
    """Return the keys of the rows in which a turn counts: its user's, and one of its tenant's."""
    return (
        build_user_limits_key(resources, tenant, user, COUNTS_SORT_KEY),
        build_tenant_limits_key(resources, tenant, shard, COUNTS_SORT_KEY),
    )
