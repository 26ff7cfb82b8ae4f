"""Say what a workspace has used of its plan in this month, and what the plan includes."""

from typing import Any

from fermata.aws.clock import iso_from_epoch
from fermata.aws.resources import Resources
from fermata.domain.workspace_plan import OVERAGE_USD, PlanMeter, PlanQuota, Subscription
from fermata.limits.month_counts import build_months_key, list_month_counts
from fermata.limits.plan_refusals import find_month_end, to_month


def describe_plan_usage(resources: Resources, tenant: str, subscription: Subscription) -> dict[str, Any]:
    """Return the JSON form for people, with one request.

    Args:
        resources: Of the process.
        tenant: The workspace.
        subscription: Its plan.
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
    quotas = [{"name": quota.value, "included": subscription.get_included(quota)} for quota in PlanQuota]
    ends = subscription.until if subscription.state != "active" else None
    return {
        "plan": subscription.workspace_plan.name,
        "state": subscription.state,
        "endsAt": None if ends is None else iso_from_epoch(ends),
        "locked": subscription.is_locked(now),
        "features": sorted(subscription.workspace_plan.features),
        "month": month,
        "renewsAt": iso_from_epoch(find_month_end(now)),
        "meters": meters,
        "quotas": quotas,
    }
