"""The rows of an audit, as the contract has them (instatic.md §1.2)."""

from collections.abc import Mapping
from typing import Any

from fermata.usage.rollups.period_rollup import TotalsByName, UsageTotals


def to_usage_row(totals: UsageTotals, *, with_billable: bool = False) -> dict[str, Any]:
    """Costs are exact until here, where JSON has only floats. `unpricedRequests` is there when there are any."""
    row: dict[str, Any] = {
        "promptTokens": totals.prompt,
        "completionTokens": totals.completion,
        "costUsd": float(totals.cost),
        "chatCount": totals.conversations,
        "cacheReadTokens": totals.cache_read,
        "cacheCreationTokens": totals.cache_creation,
    }
    if with_billable:
        row["billableCostUsd"] = float(totals.cost - totals.unbillable)
    return row | ({"unpricedRequests": totals.unpriced} if totals.unpriced else {})


def rank_by_cost(totals_by_name: TotalsByName) -> list[tuple[str, UsageTotals]]:
    """Those that were used, the costliest first; at the same cost the longest prompts, then by name."""
    used = [(name, totals) for name, totals in totals_by_name.items() if totals.requests]
    return sorted(used, key=lambda pair: (-pair[1].cost, -pair[1].prompt, pair[0]))


def to_audit_response(
    since: str,
    users: TotalsByName,
    scopes: TotalsByName,
    models: TotalsByName,
    days: TotalsByName,
    labels: Mapping[str, str],
    *,
    with_billable: bool = False,
) -> dict[str, Any]:
    """The whole answer. Every conversation has one scope, so the scopes together are everything."""
    everything = UsageTotals()
    for totals in scopes.values():
        everything.add(totals)

    def row(totals: UsageTotals) -> dict[str, Any]:
        return to_usage_row(totals, with_billable=with_billable)

    return {
        "since": since,
        "totals": row(everything),
        "byUser": [{"userId": user, "userLabel": labels.get(user, user)} | row(it) for user, it in rank_by_cost(users)],
        "byScope": [{"scope": scope} | row(totals) for scope, totals in rank_by_cost(scopes)],
        "byModel": [_model_members(name) | row(totals) for name, totals in rank_by_cost(models)],
        "byDay": [{"day": day} | row(totals) for day, totals in sorted(days.items()) if totals.requests],
    }


def _model_members(name: str) -> dict[str, str]:
    provider, _, model = name.partition("/")
    return {"providerId": provider, "modelId": model}
