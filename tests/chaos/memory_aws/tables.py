"""A DynamoDB table in memory: its items by partition, its indexes, and the records of its stream."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.memory_aws.attribute_values import Item

Key = tuple[str, str]


@dataclass(frozen=True)
class StreamRecord:
    """One change of one item, as a table's stream delivers it."""

    sequence: int
    event: str
    keys: Item
    old: Item | None
    new: Item | None
    at: float = 0.0
    """When the item was changed."""


@dataclass
class MemoryTable:
    name: str
    indexes: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Index name to (partition attribute, sort attribute)."""
    keys_only_indexes: frozenset[str] = frozenset()
    """Indexes whose rows are keys; all others have whole items."""
    ttl_attribute: str = "ttl"
    partitions: dict[str, dict[str, Item]] = field(default_factory=dict)
    """Items by partition and sort key."""
    index_partitions: dict[tuple[str, str], dict[Key, Item]] = field(default_factory=dict)
    """Items by index and partition of the index."""
    stream: list[StreamRecord] = field(default_factory=list)
    history: list[tuple[float, Key, Item | None]] = field(default_factory=list)
    """When each item was changed, and what it was before."""
    on_change: Callable[[Item | None, Item | None], None] | None = None
    """Called with an item before and after each change."""

    @property
    def items(self) -> dict[Key, Item]:
        """All items by their keys, in the order of the keys."""
        return {(pk, sk): item for pk, rows in sorted(self.partitions.items()) for sk, item in sorted(rows.items())}

    def items_at(self, moment: float) -> list[Item]:
        """Return the items as they were at a moment."""
        items: dict[Key, Item | None] = dict(self.items)
        for changed_at, key, old in reversed(self.history):
            if changed_at <= moment:
                break
            items[key] = old
        return [item for item in items.values() if item is not None]

    def iter_keys_in_index(self, index: str) -> Iterator[Key]:
        return (key for (name, _), rows in self.index_partitions.items() if name == index for key in rows)

    def find(self, key: Key) -> Item | None:
        return self.partitions.get(key[0], {}).get(key[1])

    def replace(self, key: Key, item: Item | None) -> None:
        if self.on_change is not None:
            self.on_change(self.find(key), item)
        self._replace_in_indexes(key, self.find(key), item)
        if item is None:
            self.partitions.get(key[0], {}).pop(key[1], None)
        else:
            self.partitions.setdefault(key[0], {})[key[1]] = item

    def _replace_in_indexes(self, key: Key, old: Item | None, new: Item | None) -> None:
        for index, (partition, _) in self.indexes.items():
            if old is not None and partition in old:
                del self.index_partitions[index, old[partition]["S"]][key]
            if new is not None and partition in new:
                self.index_partitions.setdefault((index, new[partition]["S"]), {})[key] = new


def item_bytes(item: Item) -> int:
    return sum(len(name.encode()) + _attribute_bytes(value) for name, value in item.items())


def _attribute_bytes(attribute: dict[str, Any]) -> int:
    ((kind, value),) = attribute.items()
    if kind == "S":
        return len(value.encode())
    if kind == "N":
        return len(value) // 2 + 1
    if kind == "B":
        return len(value)
    if kind == "M":
        return 3 + sum(len(name.encode()) + 1 + _attribute_bytes(part) for name, part in value.items())
    if kind == "L":
        return 3 + sum(1 + _attribute_bytes(part) for part in value)
    if kind in ("SS", "NS", "BS"):
        return sum(len(part) for part in value)
    return 1


def key_of(item: Item) -> Key:
    return item["pk"]["S"], item["sk"]["S"]
