"""Make and store ledger rows as turns write them."""

import itertools
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.domain.model_io import TokenUsage
from fermata.usage.ledger.ledger_parsing import load_ledger_records
from fermata.usage.ledger.ledger_store import RequestUsage, TurnOutcome, build_request_put, build_turn_end_put
from fermata.usage.rollups import rollup_store

TENANT = "bakery"
TURN_NUMBERS = itertools.count(1)


def make_usage(at: str | float, **fields: Any) -> RequestUsage:
    """Make the usage of one request; any field may be given, and token counts by their short names."""
    defaults: dict[str, Any] = {
        "tenant": TENANT,
        "user": "ada",
        "scope": "site",
        "conversation": "chat-1",
        "turn": f"turn-{next(TURN_NUMBERS)}",
        "round": 1,
        "attempt": 1,
        "request_number": 1,
        "provider": "anthropic",
        "model": "model-1",
        "credential": "key-1",
        "cost": Decimal("0.001"),
        "recorded_at": at if isinstance(at, str) else iso_from_epoch(at),
    }
    token_defaults = {"prompt": 100, "completion": 10, "cache_read": 0, "cache_creation": 0}
    tokens = TokenUsage(**{name: fields.pop(name, default) for name, default in token_defaults.items()})
    return RequestUsage(**(defaults | {"tokens": tokens} | fields))


def make_turn_outcome(usage: RequestUsage, *, billable: bool, **fields: Any) -> TurnOutcome:
    """Make the outcome of the turn that a request belongs to."""
    shared = usage.model_dump(include=set(TurnOutcome.model_fields) - {"is_billable"})
    end_type = "done" if billable else "error"
    return TurnOutcome(**(shared | {"end_type": end_type, "is_billable": billable, "rounds": 1} | fields))


def write_ledger_rows(resources: Resources, *entries: RequestUsage | TurnOutcome) -> list[Item]:
    """Write entries into the ledger, and return the rows as the stream shows them."""
    puts = [
        build_request_put(resources, entry) if isinstance(entry, RequestUsage) else build_turn_end_put(resources, entry)
        for entry in entries
    ]
    for put in puts:
        resources.tables.write_items(put)
    return [read_usage_row(resources, put.item) for put in puts]


def read_usage_row(resources: Resources, item: Item) -> Item:
    """Read the stored row that has the key of `item`."""
    row = resources.tables.get_item(resources.settings.usage_table, item["pk"], item["sk"])
    assert row is not None
    return row


def count_ledger_rows(resources: Resources, rows: Iterable[Item], tenant: str = TENANT) -> None:
    records = [record for row in rows for record in load_ledger_records(resources, row)]
    rollup_store.count_records(resources, tenant, records)


def write_and_count(resources: Resources, *entries: RequestUsage | TurnOutcome) -> list[Item]:
    rows = write_ledger_rows(resources, *entries)
    count_ledger_rows(resources, rows)
    return rows
