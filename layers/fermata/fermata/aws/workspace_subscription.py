"""Read which plan a workspace has, for verbs that know a workspace by its name only.

t#<tenant>   tenant   the tenant's record, of which the plan is a part (settings table)
"""

from fermata.aws.resources import Resources
from fermata.domain.plan_refusals import check_plan_feature
from fermata.domain.workspace_plan import PlanFeature, Subscription

_PLAN_CACHE_SECONDS = 60


def read_subscription(resources: Resources, tenant: str) -> Subscription:
    """Return the plan of a workspace as this process last read it, at most a minute ago.

    Args:
        resources: Of the process.
        tenant: The workspace. One that nobody has given a plan, or that is not there, has no limits.
    """

    def load() -> Subscription:
        row = resources.tables.get_item(resources.settings.settings_table, f"t#{tenant}", "tenant", consistent=False)
        return Subscription.from_row((row or {}).get("subscription") or {})

    return resources.cache.get_or_load(_cache_key(tenant), _PLAN_CACHE_SECONDS, load)


def forget_subscription(resources: Resources, tenant: str) -> None:
    """Read the plan of a workspace again, because it has changed."""
    resources.cache.invalidate(_cache_key(tenant))


def require_plan_feature(resources: Resources, tenant: str, feature: PlanFeature) -> None:
    """Return if the plan of a workspace has a feature.

    Args:
        resources: Of the process.
        tenant: The workspace.
        feature: What is needed.

    Raises:
        PlanLocked: The plan is locked.
        PlanUpgradeRequired: The plan has not; the message says which one has.
    """
    check_plan_feature(read_subscription(resources, tenant), feature, resources.clock.time())


def _cache_key(tenant: str) -> tuple[str, str]:
    return ("subscription", tenant)
