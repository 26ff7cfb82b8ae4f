"""Say what a workspace has used of its plan in this month, and what the plan includes."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from fermata.aws.clock import iso_from_epoch
from fermata.aws.resources import Resources
from fermata.domain.plan_refusals import find_month_end, to_month
from fermata.domain.workspace_plan import OVERAGE_USD, PlanMeter, PlanQuota, Subscription
from fermata.limits.month_counts import build_months_key, list_month_counts


def describe_plan_usage(
    resources: Resources,
    tenant: str,
    subscription: Subscription,
    count_quota: Mapping[PlanQuota, Callable[[], int]] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the JSON form for people.

    Args:
        resources: Of the process.
        tenant: The workspace.
        subscription: Its plan.
        count_quota: Returns what there is at once of each quota. It is asked only where the plan has a limit.
    """
    now = resources.clock.time()
    month = to_month(now)
    used = list_month_counts(resources.tables.get_item_by_key(build_months_key(resources, tenant, "", month)))
    meters = [
        {
            "name": meter.value,
            "used": used[meter.value],
            "included": subscription.get_included(meter),
            "overageUsd": OVERAGE_USD[meter] if subscription.overage else None,
        }
        for meter in PlanMeter
    ]
    quotas = [_describe_quota(subscription, quota, count_quota.get(quota)) for quota in PlanQuota]
    ends = subscription.until if subscription.state != "active" else None
    return {
        "plan": subscription.workspace_plan.name,
        "state": subscription.state,
        "endsAt": None if ends is None else iso_from_epoch(ends),
        "locked": subscription.is_locked(now),
        "features": sorted(subscription.workspace_plan.features),
        "models": list(subscription.included_models),
        "month": month,
        "renewsAt": iso_from_epoch(find_month_end(now)),
        "meters": meters,
        "quotas": quotas,
    }


def _describe_quota(subscription: Subscription, quota: PlanQuota, count: Callable[[], int] | None) -> dict[str, Any]:
    included = subscription.get_included(quota)
    used = None if included is None or count is None else count()
    return {"name": quota.value, "used": used, "included": included}
