"""Collect the changes of a row that counts, and what must be true of the row for them, into one write."""

from collections.abc import Iterable
from typing import Any

from fermata.aws.dynamodb_items_and_writes import Item, ItemKey, Update


class CountRowUpdate:
    """Changes of one row. Each change names another attribute. `build` returns the write of all of them."""

    def __init__(self, key: ItemKey) -> None:
        self._key = key
        self._changes: dict[str, list[str]] = {"SET": [], "ADD": [], "REMOVE": []}
        self._conditions: list[str] = []
        self._places: dict[str, str] = {}
        self._values: dict[str, Any] = {}

    def set(self, name: str, value: Any) -> None:
        """Give an attribute a value, whatever it has."""
        self._changes["SET"].append(f"{self._name(name)} = {self._value(value)}")

    def add(self, name: str, value: Any) -> None:
        """Add to a number, or the members of a set to a set. An attribute that is missing is empty."""
        self._changes["ADD"].append(f"{self._name(name)} {self._value(value)}")

    def remove(self, names: Iterable[str]) -> None:
        """Remove attributes, whether they are there or not."""
        self._changes["REMOVE"] += map(self._name, names)

    def require_as_read(self, item: Item, names: Iterable[str]) -> None:
        """Require that attributes are what they are, or missing as they are, in the item that was read."""
        self._conditions += [self._as_read(item, name) for name in names]

    def require_as_read_or(self, item: Item, name: str, value: Any) -> None:
        """Require that an attribute is as in the item that was read, or has this value already.

        Args:
            item: The item as it was read.
            name: The attribute.
            value: The other value that it may have.
        """
        self._conditions.append(f"({self._as_read(item, name)} OR {self._name(name)} = {self._value(value)})")

    def require_at_most(self, name: str, most: int) -> None:
        """Require a number that is missing or no greater than this."""
        place = self._name(name)
        self._conditions.append(f"(attribute_not_exists({place}) OR {place} <= {self._value(most)})")

    def require_fewer_members(self, name: str, limit: int) -> None:
        """Require a set that is missing or has fewer members than this."""
        place = self._name(name)
        self._conditions.append(f"(attribute_not_exists({place}) OR size({place}) < {self._value(limit)})")

    def build(self) -> Update:
        """Return the write, which fails if something that is required is not true."""
        clauses = [f"{verb} {', '.join(changes)}" for verb, changes in self._changes.items() if changes]
        names = {place: name for name, place in self._places.items()}
        return Update(*self._key, " ".join(clauses), self._values, names, " AND ".join(self._conditions))

    def _as_read(self, item: Item, name: str) -> str:
        place = self._name(name)
        return f"{place} = {self._value(item[name])}" if name in item else f"attribute_not_exists({place})"

    def _name(self, name: str) -> str:
        return self._places.setdefault(name, f"#n{len(self._places)}")

    def _value(self, value: Any) -> str:
        place = f":v{len(self._values)}"
        self._values[place] = value
        return place
