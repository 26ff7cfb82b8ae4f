"""Describe DynamoDB items, conditional writes and their failures in plain Python values.

`DynamoClient` (dynamodb_client.py) carries the writes out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from typing import Any, NamedTuple

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from fermata.domain.value_dataclass import value_dataclass

Item = dict[str, Any]


class _QuickDeserializer(TypeDeserializer):
    """Returns integers as int; the base class returns every number as Decimal. It looks for usual types first."""

    def deserialize(self, value: Any) -> Any:
        for kind, member in value.items():
            if kind == "S":
                return member
            if kind == "N":
                return int(member) if member.lstrip("-").isdigit() else Decimal(member)
            if kind == "L":
                return list(map(self.deserialize, member))
        return super().deserialize(value)


_MAX_INTEGER = 10**38
"""DynamoDB's numbers have 38 digits. Boto3 refuses longer ones."""
_serialize_any = TypeSerializer().serialize
_deserialize = _QuickDeserializer().deserialize


def serialize_item(item: Item) -> dict[str, Any]:
    """Convert plain values to DynamoDB's typed form, {"S": "text"}."""
    return {name: _serialize(value) for name, value in item.items()}


def _serialize(value: Any) -> Any:
    """Convert a value. Nearly all are texts and integers; boto3 tries the types that a value may have one by one."""
    kind = type(value)
    if kind is str:
        return {"S": value}
    if kind is int and -_MAX_INTEGER < value < _MAX_INTEGER:
        return {"N": str(value)}
    return _serialize_any(value)


def deserialize_item(raw: Mapping[str, Any]) -> Item:
    """Convert DynamoDB's typed form to plain values. Integers become int, other numbers Decimal."""
    return {name: _deserialize(value) for name, value in raw.items()}


class ItemKey(NamedTuple):
    """The primary key of an item in any table."""

    table: str
    pk: str
    sk: str


ReadItem = Callable[[ItemKey], Item | None]
"""Returns an item as it is stored now, or as it was read together with others a moment ago."""


@value_dataclass(frozen=True)
class Put:
    """Store a whole item.

    `if_absent` requires that no other item has its key yet. The same item is no obstacle: it was stored by this put,
    whose response was lost (decision 0150).
    """

    table: str
    item: Item
    if_absent: bool = False
    condition: str = ""
    values: Item = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


@value_dataclass(frozen=True)
class Update:
    """Change attributes of an item, which must exist unless `condition` says otherwise.

    With `is_applied_once` it is sent as a transaction also where it is alone, at twice the price: of two copies with a
    token DynamoDB applies one, for ten minutes. For what adds to a number, of which no condition knows a copy.
    """

    table: str
    pk: str
    sk: str
    expression: str
    values: Item = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    condition: str = "attribute_exists(pk)"
    is_applied_once: bool = False


@value_dataclass(frozen=True)
class Delete:
    table: str
    pk: str
    sk: str
    condition: str = ""
    values: Item = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


@value_dataclass(frozen=True)
class ConditionCheck:
    table: str
    pk: str
    sk: str
    condition: str
    values: Item = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


Write = Put | Update | Delete | ConditionCheck

_IS_AS_READ = "#version = :read"


def build_versioned_put(table: str, item: Item, read_version: int | None) -> Put:
    """Build the put of an item that takes the place of the version that was read.

    Args:
        table: The table.
        item: The item, with a version of its own.
        read_version: The member `version` of the item that was read; None if there was none.
    """
    if read_version is None:
        return Put(table, item, if_absent=True)
    return Put(table, item, condition=_IS_AS_READ, values={":read": read_version}, names={"#version": "version"})


def build_versioned_delete(key: ItemKey, read_version: int) -> Delete:
    """Build the deletion of an item that is still the version that was read.

    Args:
        key: Its key.
        read_version: The member `version` of the item that was read.
    """
    return Delete(*key, _IS_AS_READ, {":read": read_version}, {"#version": "version"})


class ConditionFailed(Exception):
    """The condition of a single write did not hold. `item` is the stored item, or None if there is none."""

    def __init__(self, item: Item | None) -> None:
        super().__init__("the condition did not hold")
        self.item = item


@value_dataclass(frozen=True)
class CancellationReason:
    """The outcome of one write of a canceled transaction. `item` is the stored item if its condition failed."""

    condition_failed: bool
    item: Item | None


class TransactionCanceled(Exception):
    """At least one condition of a transaction did not hold. `reasons` are in the order of the writes."""

    def __init__(self, reasons: Sequence[CancellationReason]) -> None:
        super().__init__(
            f"refused by writes {[index for index, reason in enumerate(reasons) if reason.condition_failed]}"
        )
        self.reasons = reasons
