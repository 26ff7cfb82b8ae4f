"""Render the response body of an audit. Its members are those of Instatic's server."""

from collections.abc import Mapping
from typing import Any

from fermata.usage.usage_totals import TotalsByName, UsageTotals


def to_usage_row(totals: UsageTotals, *, with_billable: bool = False) -> dict[str, Any]:
    """Return the numbers of a row. Costs become floats only here, because JSON has no decimals.

    `unpricedRequests` is present only when there are any (decision 0085).
    """
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
    """Sort names with requests by descending cost, then by descending prompt tokens, then by name."""
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
    """Return the whole response body.

    Args:
        since: ISO instant from which the audit counts.
        labels: Display names of users; a user without one is shown by id.
        with_billable: Whether rows have `billableCostUsd`.
    """
    overall = UsageTotals()  # every conversation has one scope, so the scopes add up to everything
    for totals in scopes.values():
        overall.add(totals)

    def to_row(totals: UsageTotals) -> dict[str, Any]:
        return to_usage_row(totals, with_billable=with_billable)

    return {
        "since": since,
        "totals": to_row(overall),
        "byUser": [
            {"userId": user, "userLabel": labels.get(user, user)} | to_row(totals)
            for user, totals in rank_by_cost(users)
        ],
        "byScope": [{"scope": scope} | to_row(totals) for scope, totals in rank_by_cost(scopes)],
        "byModel": [_model_members(name) | to_row(totals) for name, totals in rank_by_cost(models)],
        "byDay": [{"day": day} | to_row(totals) for day, totals in sorted(days.items()) if totals.requests],
    }


def _model_members(name: str) -> dict[str, str]:
    provider, _, model = name.partition("/")
    return {"providerId": provider, "modelId": model}
