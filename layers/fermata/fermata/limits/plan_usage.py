"""Say what a workspace has used of its plan in this month, and what the plan includes."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from fermata.aws.clock import iso_from_epoch
from fermata.aws.resources import Resources
from fermata.domain.plan_refusals import find_month_end, to_month
from fermata.domain.workspace_plan import OVERAGE_USD, PlanMeter, PlanQuota, Subscription
from fermata.limits.delivered_traffic import build_traffic_key
from fermata.limits.month_counts import (
    DELIVERED_BYTES,
    MEDIA_BYTE_HOURS,
    build_months_key,
    get_included_in_month,
    list_month_counts,
    read_month_count,
)

_UNITS = {DELIVERED_BYTES: "bytes", MEDIA_BYTE_HOURS: "byteHours"}
_OVERAGE_USD = {
    **{meter.value: OVERAGE_USD[meter] for meter in PlanMeter},
    MEDIA_BYTE_HOURS: OVERAGE_USD[PlanQuota.MEDIA_BYTES],
}


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
    meters = _describe_meters(resources, tenant, subscription, to_month(now))
    quotas = [_describe_quota(subscription, quota, count_quota.get(quota)) for quota in PlanQuota]
    ends = subscription.until if subscription.state != "active" else None
    return {
        "plan": subscription.workspace_plan.name,
        "state": subscription.state,
        "endsAt": None if ends is None else iso_from_epoch(ends),
        "locked": subscription.is_locked(now),
        "features": sorted(subscription.workspace_plan.features),
        "models": list(subscription.included_models),
        "month": to_month(now),
        "renewsAt": iso_from_epoch(find_month_end(now)),
        "meters": meters,
        "quotas": quotas,
    }


def _describe_meters(resources: Resources, tenant: str, subscription: Subscription, month: str) -> list[dict[str, Any]]:
    """Return what is counted in a month: uses one by one, and the bytes of stored media and of delivered sites."""
    month_key, traffic_key = build_months_key(resources, tenant, "", month), build_traffic_key(resources, tenant, month)
    rows = resources.tables.batch_get_by_keys([month_key, traffic_key])
    used: dict[str, int | None] = {**list_month_counts(rows.get(month_key))}
    used[DELIVERED_BYTES] = read_month_count(rows.get(traffic_key), DELIVERED_BYTES)
    # Only where usage is reported to a billing system are hours counted (decision 0618).
    is_metered = MEDIA_BYTE_HOURS in rows.get(month_key, {})
    used[MEDIA_BYTE_HOURS] = read_month_count(rows.get(month_key), MEDIA_BYTE_HOURS) if is_metered else None
    return [
        {
            "name": name,
            "unit": _UNITS.get(name, "uses"),
            "used": count,
            "included": get_included_in_month(subscription, name, month),
            "overageUsd": _OVERAGE_USD.get(name) if subscription.overage else None,
        }
        for name, count in used.items()
    ]


def _describe_quota(subscription: Subscription, quota: PlanQuota, count: Callable[[], int] | None) -> dict[str, Any]:
    included = subscription.get_included(quota)
    used = None if included is None or count is None else count()
    return {"name": quota.value, "used": used, "included": included}
