"""Compare and convert attribute values in wire format (`{"S": "text"}`) as DynamoDB does."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

Attribute = dict[str, Any]
Item = dict[str, Attribute]
COMPARATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: bool(left == right),
    "<>": lambda left, right: bool(left != right),
    "<": lambda left, right: bool(left < right),
    "<=": lambda left, right: bool(left <= right),
    ">": lambda left, right: bool(left > right),
    ">=": lambda left, right: bool(left >= right),
}


class InvalidExpression(Exception):
    """An expression that DynamoDB would refuse with a ValidationException."""


def comparable(attribute: Attribute) -> tuple[str, Any]:
    """Return a value that compares as DynamoDB compares: by type first, numbers by value, sets in any order."""
    ((kind, value),) = attribute.items()
    if kind in ("SS", "NS", "BS"):
        return kind, sorted(value)
    return (kind, Decimal(value)) if kind == "N" else (kind, value)


def resolve_name(names: Mapping[str, str], token: str) -> str:
    if not token.startswith("#"):
        return token
    if token not in names:
        raise InvalidExpression(f"{token} has no name")
    return names[token]


def resolve_value(values: Mapping[str, Attribute], token: str) -> Attribute:
    if token not in values:
        raise InvalidExpression(f"{token} has no value")
    return values[token]


def compare(operator: str, left: Attribute | None, right: Attribute | None) -> bool:
    if left is None or right is None:
        return operator == "<>" and left is not right
    one, other = comparable(left), comparable(right)
    if one[0] != other[0]:
        return operator == "<>"
    return COMPARATORS[operator](one[1], other[1])


def apply_function(name: str, first: Attribute | None, second: Attribute | None) -> bool:
    if first is None or second is None:
        return False
    ((kind, value),), ((_, wanted),) = first.items(), second.items()
    return bool(value.startswith(wanted)) if name == "begins_with" else (wanted in value if kind != "N" else False)


def require(value: Attribute | None) -> Attribute:
    if value is None:
        raise InvalidExpression("The provided expression refers to an attribute that does not exist in the item")
    return value


def format_number(value: Decimal) -> str:
    return format(value.normalize(), "f")
