"""Record each hold of the workspace's budget, with what its account has right after it was taken, and all writes."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from tests.chaos.evidence import HoldTaken, LandedWrite, Row
from tests.chaos.memory_aws.attribute_values import Item
from tests.chaos.memory_aws.dynamodb import MemoryDynamoDB, Steps
from tests.chaos.memory_aws.tables import MemoryTable, key_of

ACCOUNT_SUFFIX = "#budget#tenant"
HOLD_PREFIX = "x#"


class AccountRecorder:
    """Watches a table from its first item on."""

    def __init__(self, table: MemoryTable, limit: Decimal) -> None:
        self.limit = limit
        """Of a month, from now on."""
        self.holds_taken: list[HoldTaken] = []
        self._table = table
        table.on_change = self._record_change

    def _record_change(self, old: Item | None, new: Item | None) -> None:
        if new is None or not new["pk"]["S"].endswith(ACCOUNT_SUFFIX):
            return
        for name in new.keys() - (old or {}).keys():
            if name.startswith(HOLD_PREFIX):
                self.holds_taken.append(HoldTaken(name, self._add_up_account(new), self.limit))

    def _add_up_account(self, new: Item) -> Row:
        """Return the sums of the account's items in the month of one that changes."""
        month = new["sk"]["S"][:7]
        items = self._table.partitions.get(new["pk"]["S"], {})
        changed = items | {new["sk"]["S"]: new}
        return add_up_account(to_plain_row(item) for sort_key, item in changed.items() if sort_key[:7] == month)


def add_up_account(rows: Iterable[Row]) -> Row:
    """Return what an account has spent and holds, from its items of one month."""
    total: Row = {}
    for row in rows:
        for name, value in row.items():
            if name.startswith(("spent", "held", HOLD_PREFIX)):
                total[name] = total.get(name, Decimal(0)) + value
    return total


def list_landed_writes(dynamodb: MemoryDynamoDB) -> list[LandedWrite]:
    """Return every request that was applied, with the rows that its copy would change now."""
    return [_to_landed_write(dynamodb, steps) for steps in dynamodb.applied]


def _to_landed_write(dynamodb: MemoryDynamoDB, steps: Steps) -> LandedWrite:
    written = [request for kind, request in steps if kind != "ConditionCheck"]
    return LandedWrite(
        tuple((request["TableName"], *key_of(request.get("Item") or request["Key"])) for request in written),
        any("ConditionExpression" in request for _, request in steps),
        tuple((table, *key) for table, key, _, _ in dynamodb.preview(steps)),
    )


def to_plain_row(item: Item) -> Row:
    return {name: _to_plain(value) for name, value in item.items()}


def _to_plain(attribute: dict[str, Any]) -> Any:
    ((kind, value),) = attribute.items()
    if kind == "N":
        return Decimal(value)
    if kind == "M":
        return {name: _to_plain(part) for name, part in value.items()}
    if kind == "L":
        return [_to_plain(part) for part in value]
    return None if kind == "NULL" else value
