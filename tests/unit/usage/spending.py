"""Ledger rows for tests, as turns write them."""

import itertools
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from fermata.aws.clock import instant
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item
from fermata.usage import ledger, rollups
from fermata.usage.ledger import Closed, Spent
from fermata.usage.records import records_of
from fermata.words.model import Tokens

TENANT = "bakery"
NUMBERS = itertools.count(1)


def spent(at: str | float, **facts: Any) -> Spent:
    """One request; every fact may be given, tokens by their short names."""
    known: dict[str, Any] = {
        "tenant": TENANT,
        "user": "ada",
        "scope": "site",
        "conversation": "chat-1",
        "turn": f"turn-{next(NUMBERS)}",
        "round": 1,
        "attempt": 1,
        "tried": 1,
        "provider": "anthropic",
        "model": "model-1",
        "credential": "key-1",
        "cost": Decimal("0.001"),
        "at": at if isinstance(at, str) else instant(at),
    }
    names = {"prompt": 100, "completion": 10, "cache_read": 0, "cache_creation": 0}
    tokens = Tokens(**{name: facts.pop(name, usual) for name, usual in names.items()})
    return Spent(**(known | {"tokens": tokens} | facts))


def closed(spent: Spent, *, billable: bool, **facts: Any) -> Closed:
    known = spent.model_dump(include=set(Closed.model_fields) - {"billable"})
    return Closed(**(known | {"how": "done" if billable else "error", "billable": billable, "rounds": 1} | facts))


def write(desk: Desk, *told: Spent | Closed) -> list[Item]:
    """Put into the ledger; returns the rows as the stream would show them."""
    puts = [ledger.row(desk, one) if isinstance(one, Spent) else ledger.end_row(desk, one) for one in told]
    for put in puts:
        desk.tables.write(put)
    return [stored(desk, put.item) for put in puts]


def stored(desk: Desk, item: Item) -> Item:
    found = desk.tables.get(desk.settings.usage_table, item["pk"], item["sk"])
    assert found is not None
    return found


def roll_up(desk: Desk, rows: Iterable[Item], tenant: str = TENANT) -> None:
    rollups.count(desk, tenant, [record for row in rows for record in records_of(desk, row)])


def spend(desk: Desk, *told: Spent | Closed) -> list[Item]:
    rows = write(desk, *told)
    roll_up(desk, rows)
    return rows
