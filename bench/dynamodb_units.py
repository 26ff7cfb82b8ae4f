"""What DynamoDB bills, from the requests alone: list rules, on-demand tables.

Writes are billed by the KB of the larger of the item before and after, twice in a transaction; reads by 4 KB, half
when they need not be consistent. Both round up, and nothing is free: a missing item and a refused condition cost one
unit. An index is written again when an item's projected attributes change there, and twice when its key moves.
"""

import base64
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

WRITE_UNIT_BYTES, READ_UNIT_BYTES = 1024, 4096
WireItem = Mapping[str, Any]
"""An item as it goes over the wire: `{"sk": {"S": "turn"}, …}`."""
ItemKey = tuple[str, str, str]
"""Table, partition key, sort key."""
StoredItemSize = Callable[[ItemKey], int]
"""How large the item with this key is now."""


def item_bytes(item: WireItem) -> int:
    return sum(len(name.encode()) + _value_size(value) for name, value in item.items())


def _value_size(value: WireItem) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return math.ceil(len(content.lstrip("-").replace(".", "").strip("0") or "0") / 2) + 1
        case "B":
            return len(base64.b64decode(content))
        case "M":
            return 3 + sum(1 + len(name.encode()) + _value_size(inner) for name, inner in content.items())
        case "L":
            return 3 + sum(1 + _value_size(inner) for inner in content)
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
    """An index whose key is `attribute`. A put writes it once, an update of its key `update` times."""

    attribute: str
    update_writes: int
    projects_all: bool
    """Whether it holds whole items, or keys only."""


BY_USER_INDEX = SecondaryIndex("gsk", update_writes=2, projects_all=True)
OPEN_INDEX = SecondaryIndex("open", update_writes=1, projects_all=False)
"""The row of an ended turn leaves it, which is one write."""


@dataclass
class CapacityMeter:
    """Adds up requests in the order they were made; `stored` tells the size of what an update left behind."""

    stored_size: StoredItemSize
    indexes: tuple[SecondaryIndex, ...] = (BY_USER_INDEX, OPEN_INDEX)
    write_units: float = 0
    read_units: float = 0
    _sizes: dict[ItemKey, int] = field(default_factory=dict)

    def add_request(self, operation: str, request: WireItem, response: WireItem) -> None:
        match operation:
            case "PutItem":
                self._write({"Put": request}, transactional=False)
            case "UpdateItem":
                self._write({"Update": request}, transactional=False)
            case "DeleteItem":
                self._write({"Delete": request}, transactional=False)
            case "TransactWriteItems":
                for action in request["TransactItems"]:
                    self._write(action, transactional=True)
            case "GetItem":
                self._read([response["Item"]] if "Item" in response else [], request)
            case "BatchGetItem":
                self._batch(request, response)
            case "Query":
                self._read(response.get("Items", []), request)
            case _:
                raise ValueError(f"There is no rule for {operation}: add one to bench/dynamodb_units.py.")

    def _write(self, action: WireItem, *, transactional: bool) -> None:
        ((kind, request),) = action.items()
        item = request.get("Item")
        key = _key(request["TableName"], item or request["Key"])
        before = self._sizes.get(key, 0)
        after = item_bytes(item) if item else (0 if kind == "Delete" else self.stored_size(key))
        self._sizes[key] = after
        self.write_units += write_units_for(max(before, after), transactional=transactional)
        self.write_units += self._index_units(request, after)

    def _index_units(self, request: WireItem, size: int) -> int:
        """Index writes are never billed twice for a transaction."""
        touched = _attributes_written(request)
        hit = [index for index in self.indexes if index.attribute in touched]
        times = 1 if "Item" in request else None
        return sum((times or index.update_writes) * write_units_for(size if index.projects_all else 0) for index in hit)

    def _read(self, items: Iterable[WireItem], request: WireItem) -> None:
        consistent = bool(request.get("ConsistentRead"))
        self.read_units += read_units_for(sum(map(item_bytes, items)), consistent=consistent)

    def _batch(self, request: WireItem, response: WireItem) -> None:
        """Each item is rounded up for itself, and those that are not there count as well."""
        for table, asked in request["RequestItems"].items():
            found, consistent = response["Responses"].get(table, []), bool(asked.get("ConsistentRead"))
            missing = len(asked["Keys"]) - len(found)
            self.read_units += sum(read_units_for(item_bytes(item), consistent=consistent) for item in found)
            self.read_units += missing * read_units_for(0, consistent=consistent)


def _attributes_written(request: WireItem) -> set[str]:
    if "Item" in request:
        return set(request["Item"])
    words = re.findall(r"(?<![:\w])#?\w+", str(request.get("UpdateExpression", "")))
    names = request.get("ExpressionAttributeNames", {})
    return {names.get(word, word) for word in words}


def _key(table: str, names: WireItem) -> ItemKey:
    return table, names["pk"]["S"], names["sk"]["S"]
