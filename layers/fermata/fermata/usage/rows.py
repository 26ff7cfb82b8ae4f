"""The rows of an audit, as the contract has them (instatic.md §1.2)."""

from collections.abc import Mapping
from typing import Any

from fermata.usage.sheets import Sums, Totals


def usage_row(totals: Totals, *, with_billable: bool = False) -> dict[str, Any]:
    """Costs are exact until here, where JSON has only floats. `unpricedRequests` is there when there are any."""
    row: dict[str, Any] = {
        "promptTokens": totals.prompt,
        "completionTokens": totals.completion,
        "costUsd": float(totals.cost),
        "chatCount": totals.chats,
        "cacheReadTokens": totals.cache_read,
        "cacheCreationTokens": totals.cache_creation,
    }
    if with_billable:
        row["billableCostUsd"] = float(totals.cost - totals.unbillable)
    return row | ({"unpricedRequests": totals.unpriced} if totals.unpriced else {})


def ranked(sums: Sums) -> list[tuple[str, Totals]]:
    """Those that were used, the costliest first; at the same cost the longest prompts, then by name."""
    used = [(name, totals) for name, totals in sums.items() if totals.requests]
    return sorted(used, key=lambda pair: (-pair[1].cost, -pair[1].prompt, pair[0]))


def phrased(
    since: str,
    users: Sums,
    scopes: Sums,
    models: Sums,
    days: Sums,
    labels: Mapping[str, str],
    *,
    with_billable: bool = False,
) -> dict[str, Any]:
    """The whole answer. Every conversation has one scope, so the scopes together are everything."""
    everything = Totals()
    for totals in scopes.values():
        everything.add(totals)

    def row(totals: Totals) -> dict[str, Any]:
        return usage_row(totals, with_billable=with_billable)

    return {
        "since": since,
        "totals": row(everything),
        "byUser": [{"userId": user, "userLabel": labels.get(user, user)} | row(it) for user, it in ranked(users)],
        "byScope": [{"scope": scope} | row(totals) for scope, totals in ranked(scopes)],
        "byModel": [_model(name) | row(totals) for name, totals in ranked(models)],
        "byDay": [{"day": day} | row(totals) for day, totals in sorted(days.items()) if totals.requests],
    }


def _model(name: str) -> dict[str, str]:
    provider, _, model = name.partition("/")
    return {"providerId": provider, "modelId": model}
