"""Render the response body of an audit. Its members are those of Instatic's server."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fermata.usage.usage_totals import TotalsByName, UsageDimension, UsageTotals, new_totals_by_name


@dataclass
class AuditTotals:
    """Totals of an audit by user, scope, model (`provider/model`) and local day."""

    users: TotalsByName = field(default_factory=new_totals_by_name)
    scopes: TotalsByName = field(default_factory=new_totals_by_name)
    models: TotalsByName = field(default_factory=new_totals_by_name)
    days: TotalsByName = field(default_factory=new_totals_by_name)

    def get_totals(self, dimension: UsageDimension) -> TotalsByName:
        totals_by_name: TotalsByName = getattr(self, dimension)
        return totals_by_name

    @property
    def overall(self) -> UsageTotals:
        """Totals of everything. Every conversation has one scope, so the scopes add up to it."""
        overall = UsageTotals()
        for totals in self.scopes.values():
            overall.add(totals)
        return overall


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
    since: str, totals: AuditTotals, labels: Mapping[str, str], *, with_billable: bool = False
) -> dict[str, Any]:
    """Return the whole response body.

    Args:
        since: ISO instant from which the audit counts.
        labels: Display names of users; a user without one is shown by id.
        with_billable: Whether rows have `billableCostUsd`.
    """

    def to_row(row_totals: UsageTotals) -> dict[str, Any]:
        return to_usage_row(row_totals, with_billable=with_billable)

    return {
        "since": since,
        "totals": to_row(totals.overall),
        "byUser": [
            {"userId": user, "userLabel": labels.get(user, user)} | to_row(row_totals)
            for user, row_totals in rank_by_cost(totals.users)
        ],
        "byScope": [{"scope": scope} | to_row(row_totals) for scope, row_totals in rank_by_cost(totals.scopes)],
        "byModel": [_model_members(name) | to_row(row_totals) for name, row_totals in rank_by_cost(totals.models)],
        "byDay": [
            {"day": day} | to_row(row_totals) for day, row_totals in sorted(totals.days.items()) if row_totals.requests
        ],
    }


def _model_members(name: str) -> dict[str, str]:
    provider, _, model = name.partition("/")
    return {"providerId": provider, "modelId": model}
