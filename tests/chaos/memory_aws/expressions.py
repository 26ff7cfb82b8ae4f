"""Evaluate DynamoDB condition, key and update expressions over items in wire format (`{"S": "text"}`).

Written from the documented grammar (condition expressions, update expressions) and sharing no code with the product.
"""

import copy
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

Attribute = dict[str, Any]
Item = dict[str, Attribute]

_TOKEN = re.compile(r"\s*(?:(<>|<=|>=|[=<>(),+\-.\[\]])|([#:]?\w+))")
_COMPARATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: bool(left == right),
    "<>": lambda left, right: bool(left != right),
    "<": lambda left, right: bool(left < right),
    "<=": lambda left, right: bool(left <= right),
    ">": lambda left, right: bool(left > right),
    ">=": lambda left, right: bool(left >= right),
}


class InvalidExpression(Exception):
    """An expression that DynamoDB would refuse with a ValidationException."""


@lru_cache(maxsize=4096)
def tokenize(text: str) -> tuple[str, ...]:
    tokens, position = [], 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise InvalidExpression(f"cannot read {text[position:]!r}")
        tokens.append(match[1] or match[2])
        position = match.end()
    return tuple(tokens)


def comparable(attribute: Attribute) -> tuple[str, Any]:
    """Return a value that compares as DynamoDB compares: by type first, numbers by value."""
    ((kind, value),) = attribute.items()
    return (kind, Decimal(value)) if kind == "N" else (kind, value)


class Expression:
    """One expression, its placeholders, and the item it is evaluated against."""

    def __init__(self, text: str, names: Mapping[str, str], values: Mapping[str, Attribute], item: Item) -> None:
        self._tokens = tokenize(text)
        self._names, self._values, self._item = names, values, item
        self._at = 0

    # condition expressions

    def holds(self) -> bool:
        result = self._either()
        if self._at != len(self._tokens):
            raise InvalidExpression(f"unexpected {self._peek()!r}")
        return result

    def _either(self) -> bool:
        result = self._both()
        while self._accept_word("OR"):
            right = self._both()
            result = result or right
        return result

    def _both(self) -> bool:
        result = self._negated()
        while self._accept_word("AND"):
            right = self._negated()
            result = result and right
        return result

    def _negated(self) -> bool:
        if self._accept_word("NOT"):
            return not self._negated()
        if self._accept("("):
            result = self._either()
            self._expect(")")
            return result
        return self._comparison()

    def _comparison(self) -> bool:
        function = self._function()
        if function is not None:
            return function
        left = self._operand()
        if self._accept_word("BETWEEN"):
            low = self._operand()
            if not self._accept_word("AND"):
                raise InvalidExpression("BETWEEN without AND")
            high = self._operand()
            return self._compare(">=", left, low) and self._compare("<=", left, high)
        if self._accept_word("IN"):
            options = self._arguments()
            return any(self._compare("=", left, option) for option in options)
        return self._compare(self._next(), left, self._operand())

    def _function(self) -> bool | None:
        name = self._peek()
        if name not in ("attribute_exists", "attribute_not_exists", "begins_with", "contains"):
            return None
        self._next()
        first, *rest = self._arguments()
        if name == "attribute_exists":
            return first is not None
        if name == "attribute_not_exists":
            return first is None
        (second,) = rest
        if first is None or second is None:
            return False
        ((kind, value),), ((_, wanted),) = first.items(), second.items()
        return bool(value.startswith(wanted)) if name == "begins_with" else (wanted in value if kind != "N" else False)

    def _compare(self, operator: str, left: Attribute | None, right: Attribute | None) -> bool:
        if operator not in _COMPARATORS:
            raise InvalidExpression(f"unexpected {operator!r}")
        if left is None or right is None:
            return operator == "<>" and left is not right
        one, other = comparable(left), comparable(right)
        if one[0] != other[0]:
            return operator == "<>"
        return _COMPARATORS[operator](one[1], other[1])

    # operands

    def _operand(self) -> Attribute | None:
        if self._peek() == "size":
            self._next()
            (value,) = self._arguments()
            return None if value is None else {"N": str(len(next(iter(value.values()))))}
        token = self._next()
        if token.startswith(":"):
            if token not in self._values:
                raise InvalidExpression(f"{token} has no value")
            return self._values[token]
        return self._item.get(self._name(token))

    def _arguments(self) -> list[Attribute | None]:
        self._expect("(")
        found = [self._operand()]
        while self._accept(","):
            found.append(self._operand())
        self._expect(")")
        return found

    def _name(self, token: str) -> str:
        if not token.startswith("#"):
            return token
        if token not in self._names:
            raise InvalidExpression(f"{token} has no name")
        return self._names[token]

    # update expressions

    def updated(self) -> Item:
        """Return the item after an update expression; every operand is read from the item before it."""
        new = copy.deepcopy(self._item)
        while self._at < len(self._tokens):
            clause = self._next().upper()
            if clause not in ("SET", "REMOVE", "ADD"):
                raise InvalidExpression(f"unexpected {clause!r}")
            while True:
                self._apply(clause, new)
                if not self._accept(","):
                    break
        return new

    def _apply(self, clause: str, new: Item) -> None:
        name = self._name(self._next())
        if clause == "REMOVE":
            new.pop(name, None)
        elif clause == "ADD":
            self._add(name, new)
        else:
            self._expect("=")
            new[name] = self._sum()

    def _add(self, name: str, new: Item) -> None:
        ((kind, value),) = self._required(self._operand()).items()
        old = self._item.get(name, {kind: "0"} if kind == "N" else {kind: []})
        if kind == "N":
            new[name] = {"N": _number(Decimal(old["N"]) + Decimal(value))}
        elif kind in ("SS", "NS", "BS"):
            new[name] = {kind: sorted({*old[kind], *value})}
        else:
            raise InvalidExpression(f"ADD takes numbers and sets, not {kind}")

    def _sum(self) -> Attribute:
        total = self._set_operand()
        while self._peek() in ("+", "-"):
            sign = 1 if self._next() == "+" else -1
            total = {"N": _number(Decimal(total["N"]) + sign * Decimal(self._set_operand()["N"]))}
        return total

    def _set_operand(self) -> Attribute:
        if self._peek() != "if_not_exists":
            return self._required(self._operand())
        self._next()
        stored, default = self._arguments()
        return self._required(stored if stored is not None else default)

    @staticmethod
    def _required(value: Attribute | None) -> Attribute:
        if value is None:
            raise InvalidExpression("The provided expression refers to an attribute that does not exist in the item")
        return value

    # tokens

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            raise InvalidExpression("the expression ends too early")
        self._at += 1
        return token

    def _accept(self, token: str) -> bool:
        if self._peek() == token:
            self._at += 1
            return True
        return False

    def _accept_word(self, word: str) -> bool:
        return self._accept(word) or self._accept(word.lower())

    def _expect(self, token: str) -> None:
        if not self._accept(token):
            raise InvalidExpression(f"expected {token!r}, not {self._peek()!r}")


def _number(value: Decimal) -> str:
    return format(value.normalize(), "f")
