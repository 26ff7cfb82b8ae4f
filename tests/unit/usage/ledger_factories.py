"""Ledger rows for tests, as turns write them."""

import itertools
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb import Item
from fermata.aws.resources import Resources
from fermata.domain.model_io import TokenUsage
from fermata.usage.ledger import ledger_store
from fermata.usage.ledger.ledger_parsing import load_ledger_records
from fermata.usage.ledger.ledger_store import RequestUsage, TurnOutcome
from fermata.usage.rollups import rollup_store

TENANT = "bakery"
TURN_NUMBERS = itertools.count(1)


def make_usage(at: str | float, **facts: Any) -> RequestUsage:
    """One request; every fact may be given, tokens by their short names."""
    known: dict[str, Any] = {
        "tenant": TENANT,
        "user": "ada",
        "scope": "site",
        "conversation": "chat-1",
        "turn": f"turn-{next(TURN_NUMBERS)}",
        "round": 1,
        "attempt": 1,
        "tried": 1,
        "provider": "anthropic",
        "model": "model-1",
        "credential": "key-1",
        "cost": Decimal("0.001"),
        "at": at if isinstance(at, str) else iso_from_epoch(at),
    }
    names = {"prompt": 100, "completion": 10, "cache_read": 0, "cache_creation": 0}
    tokens = TokenUsage(**{name: facts.pop(name, usual) for name, usual in names.items()})
    return RequestUsage(**(known | {"tokens": tokens} | facts))


def make_turn_outcome(usage: RequestUsage, *, billable: bool, **facts: Any) -> TurnOutcome:
    known = usage.model_dump(include=set(TurnOutcome.model_fields) - {"billable"})
    return TurnOutcome(**(known | {"how": "done" if billable else "error", "billable": billable, "rounds": 1} | facts))


def write_ledger_rows(resources: Resources, *told: RequestUsage | TurnOutcome) -> list[Item]:
    """Put into the ledger; returns the rows as the stream would show them."""
    puts = [
        ledger_store.build_request_put(resources, one)
        if isinstance(one, RequestUsage)
        else ledger_store.build_turn_end_put(resources, one)
        for one in told
    ]
    for put in puts:
        resources.tables.write_items(put)
    return [read_usage_row(resources, put.item) for put in puts]


def read_usage_row(resources: Resources, item: Item) -> Item:
    found = resources.tables.get_item(resources.settings.usage_table, item["pk"], item["sk"])
    assert found is not None
    return found


def count_ledger_rows(resources: Resources, rows: Iterable[Item], tenant: str = TENANT) -> None:
    rollup_store.count_records(
        resources, tenant, [record for row in rows for record in load_ledger_records(resources, row)]
    )


def write_and_count(resources: Resources, *told: RequestUsage | TurnOutcome) -> list[Item]:
    rows = write_ledger_rows(resources, *told)
    count_ledger_rows(resources, rows)
    return rows
