"""Compute the units that DynamoDB bills for requests of on-demand tables.

Writes are billed by the KB of the larger of the item before and after, twice in a transaction; reads by 4 KB, half
when they need not be consistent. Both round up, and nothing is free: a missing item and a failed condition cost one
unit. An index is written again when an item's projected attributes change in it, and twice when its key changes.
"""

import base64
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

WRITE_UNIT_BYTES = 1024
READ_UNIT_BYTES = 4096
WireItem = Mapping[str, Any]
"""An item in DynamoDB's JSON: `{"sk": {"S": "turn"}, …}`."""
ItemKey = tuple[str, str, str]
"""Table, partition key, sort key."""
StoredItemSize = Callable[[ItemKey], int]
"""Returns the present size of the item with this key."""


def item_bytes(item: WireItem) -> int:
    """Return the size of an item as DynamoDB counts it: names and values."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: WireItem) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return math.ceil(len(content.lstrip("-").replace(".", "").strip("0") or "0") / 2) + 1
        case "B":
            return len(base64.b64decode(content))
        case "M":
            return 3 + sum(1 + len(name.encode()) + _value_bytes(inner) for name, inner in content.items())
        case "L":
            return 3 + sum(1 + _value_bytes(inner) for inner in content)
        case "SS":
            return sum(len(text.encode()) for text in content)
        case _:
            return 1


def write_units_for(size: int, *, transactional: bool = False) -> int:
    return max(1, math.ceil(size / WRITE_UNIT_BYTES)) * (2 if transactional else 1)


def read_units_for(size: int, *, consistent: bool = True) -> float:
    return max(1, math.ceil(size / READ_UNIT_BYTES)) * (1.0 if consistent else 0.5)


@dataclass(frozen=True)
class SecondaryIndex:
    """A secondary index whose key is `attribute`."""

    attribute: str
    update_writes: int
    """Writes of the index when an update changes its key. A put always writes it once."""
    projects_all: bool
    """It holds whole items; otherwise keys only."""


BY_USER_INDEX = SecondaryIndex("gsk", update_writes=2, projects_all=True)
OPEN_INDEX = SecondaryIndex("open", update_writes=1, projects_all=False)
"""The row of an ended turn is removed from it, which is one write."""


@dataclass
class CapacityMeter:
    """Adds up the units of requests, in the order in which they were made."""

    stored_size: StoredItemSize
    """For the size of an item after an update."""
    indexes: tuple[SecondaryIndex, ...] = (BY_USER_INDEX, OPEN_INDEX)
    write_units: float = 0
    read_units: float = 0
    _size_by_key: dict[ItemKey, int] = field(default_factory=dict)

    def add_request(self, operation: str, request: WireItem, response: WireItem) -> None:
        match operation:
            case "PutItem":
                self._add_write({"Put": request}, transactional=False)
            case "UpdateItem":
                self._add_write({"Update": request}, transactional=False)
            case "DeleteItem":
                self._add_write({"Delete": request}, transactional=False)
            case "TransactWriteItems":
                for action in request["TransactItems"]:
                    self._add_write(action, transactional=True)
            case "GetItem":
                self._add_read([response["Item"]] if "Item" in response else [], request)
            case "BatchGetItem":
                self._add_batch_read(request, response)
            case "Query":
                self._add_read(response.get("Items", []), request)
            case _:
                raise ValueError(f"There is no rule for {operation}: add one to bench/dynamodb_units.py.")

    def _add_write(self, action: WireItem, *, transactional: bool) -> None:
        ((kind, request),) = action.items()
        item = request.get("Item")
        key = _item_key(request["TableName"], item or request["Key"])
        size_before = self._size_by_key.get(key, 0)
        size_after = item_bytes(item) if item else (0 if kind == "Delete" else self.stored_size(key))
        self._size_by_key[key] = size_after
        self.write_units += write_units_for(max(size_before, size_after), transactional=transactional)
        self.write_units += self._index_units(request, size_after)

    def _index_units(self, request: WireItem, size: int) -> int:
        """Return the units of index writes, which cost the same in a transaction."""
        attributes = _written_attributes(request)
        written_indexes = [index for index in self.indexes if index.attribute in attributes]
        is_put = "Item" in request
        return sum(
            (1 if is_put else index.update_writes) * write_units_for(size if index.projects_all else 0)
            for index in written_indexes
        )

    def _add_read(self, items: Iterable[WireItem], request: WireItem) -> None:
        consistent = bool(request.get("ConsistentRead"))
        self.read_units += read_units_for(sum(map(item_bytes, items)), consistent=consistent)

    def _add_batch_read(self, request: WireItem, response: WireItem) -> None:
        """Add a BatchGetItem. Each item is rounded up, and missing ones count too."""
        for table, table_request in request["RequestItems"].items():
            items = response["Responses"].get(table, [])
            consistent = bool(table_request.get("ConsistentRead"))
            missing_count = len(table_request["Keys"]) - len(items)
            self.read_units += sum(read_units_for(item_bytes(item), consistent=consistent) for item in items)
            self.read_units += missing_count * read_units_for(0, consistent=consistent)


def _written_attributes(request: WireItem) -> set[str]:
    """Return the names of an item, or those in an update expression, with placeholders resolved."""
    if "Item" in request:
        return set(request["Item"])
    words = re.findall(r"(?<![:\w])#?\w+", str(request.get("UpdateExpression", "")))
    names = request.get("ExpressionAttributeNames", {})
    return {names.get(word, word) for word in words}


def _item_key(table: str, attributes: WireItem) -> ItemKey:
    return table, attributes["pk"]["S"], attributes["sk"]["S"]
