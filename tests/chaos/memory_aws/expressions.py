"""Evaluate DynamoDB condition, key and update expressions over items in wire format (`{"S": "text"}`).

Written from the documented grammar (condition expressions, update expressions) and sharing no code with the product.
An expression is compiled once into closures, because a simulation evaluates few texts very often.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from tests.chaos.memory_aws.attribute_values import (
    COMPARATORS,
    Attribute,
    InvalidExpression,
    Item,
    apply_function,
    compare,
    format_number,
    require,
    resolve_name,
    resolve_value,
)


class Scope(NamedTuple):
    """What an expression is evaluated against: its placeholders, and the item as it was before."""

    names: Mapping[str, str]
    values: Mapping[str, Attribute]
    item: Item


Operand = Callable[[Scope], Attribute | None]
Condition = Callable[[Scope], bool]
Change = Callable[[Scope, Item], None]
"""Changes the new item in place."""

_TOKEN = re.compile(r"\s*(?:(<>|<=|>=|[=<>(),+\-.\[\]])|([#:]?\w+))")
_FUNCTIONS = ("attribute_exists", "attribute_not_exists", "begins_with", "contains")


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


@lru_cache(maxsize=4096)
def compile_condition(text: str) -> Condition:
    return _Compiler(text).compile_condition()


@lru_cache(maxsize=4096)
def compile_update(text: str) -> Callable[[Scope], Item]:
    """Return a function that builds the item after an update; every operand is read from the item before it."""
    changes = _Compiler(text).compile_update()

    def update(scope: Scope) -> Item:
        new = dict(scope.item)
        for change in changes:
            change(scope, new)
        return new

    return update


@lru_cache(maxsize=1024)
def find_equality(text: str) -> tuple[str, str]:
    """Return name and value placeholder of the first `name = :value` of a key condition: the partition key."""
    tokens = tokenize(text)
    for name, operator, value in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if operator == "=" and value.startswith(":"):
            return name, value
    raise InvalidExpression("a key condition names its partition")


class _Compiler:
    """A recursive descent over the tokens of one expression."""

    def __init__(self, text: str) -> None:
        self._tokens = tokenize(text)
        self._at = 0

    # condition expressions

    def compile_condition(self) -> Condition:
        condition = self._either()
        if self._at != len(self._tokens):
            raise InvalidExpression(f"unexpected {self._peek()!r}")
        return condition

    def _either(self) -> Condition:
        parts = [self._both()]
        while self._accept_word("OR"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else lambda scope: any(part(scope) for part in parts)

    def _both(self) -> Condition:
        parts = [self._negated()]
        while self._accept_word("AND"):
            parts.append(self._negated())
        return parts[0] if len(parts) == 1 else lambda scope: all(part(scope) for part in parts)

    def _negated(self) -> Condition:
        if self._accept_word("NOT"):
            inner = self._negated()
            return lambda scope: not inner(scope)
        if self._accept("("):
            inner = self._either()
            self._expect(")")
            return inner
        return self._comparison()

    def _comparison(self) -> Condition:
        if self._peek() in _FUNCTIONS:
            return self._function()
        left = self._operand()
        if self._accept_word("BETWEEN"):
            low = self._operand()
            if not self._accept_word("AND"):
                raise InvalidExpression("BETWEEN without AND")
            high = self._operand()
            return lambda s: compare(">=", left(s), low(s)) and compare("<=", left(s), high(s))
        if self._accept_word("IN"):
            options = self._arguments()
            return lambda s: any(compare("=", left(s), option(s)) for option in options)
        operator = self._next()
        if operator not in COMPARATORS:
            raise InvalidExpression(f"unexpected {operator!r}")
        right = self._operand()
        return lambda s: compare(operator, left(s), right(s))

    def _function(self) -> Condition:
        name = self._next()
        first, *rest = self._arguments()
        if name == "attribute_exists":
            return lambda s: first(s) is not None
        if name == "attribute_not_exists":
            return lambda s: first(s) is None
        (second,) = rest
        return lambda s: apply_function(name, first(s), second(s))

    # operands

    def _operand(self) -> Operand:
        if self._peek() == "size":
            self._next()
            (inner,) = self._arguments()
            return lambda s: None if (value := inner(s)) is None else {"N": str(len(next(iter(value.values()))))}
        token = self._next()
        if token.startswith(":"):
            return lambda s: resolve_value(s.values, token)
        if token.startswith("#"):
            return lambda s: s.item.get(resolve_name(s.names, token))
        return lambda s: s.item.get(token)

    def _arguments(self) -> list[Operand]:
        self._expect("(")
        found = [self._operand()]
        while self._accept(","):
            found.append(self._operand())
        self._expect(")")
        return found

    # update expressions

    def compile_update(self) -> list[Change]:
        changes: list[Change] = []
        while self._at < len(self._tokens):
            clause = self._next().upper()
            if clause not in ("SET", "REMOVE", "ADD", "DELETE"):
                raise InvalidExpression(f"unexpected {clause!r}")
            while True:
                changes.append(self._change(clause))
                if not self._accept(","):
                    break
        return changes

    def _change(self, clause: str) -> Change:
        token = self._next()
        if clause == "REMOVE":
            return lambda scope, new: _drop(new, resolve_name(scope.names, token))
        if clause == "ADD":
            added = self._operand()
            return lambda scope, new: _add(scope, new, resolve_name(scope.names, token), added)
        if clause == "DELETE":
            deleted = self._operand()
            return lambda scope, new: _delete(scope, new, resolve_name(scope.names, token), deleted)
        self._expect("=")
        value = self._sum()
        return lambda scope, new: new.update({resolve_name(scope.names, token): value(scope)})

    def _sum(self) -> Callable[[Scope], Attribute]:
        first = self._set_operand()
        rest: list[tuple[int, Callable[[Scope], Attribute]]] = []
        while self._peek() in ("+", "-"):
            sign = 1 if self._next() == "+" else -1
            rest.append((sign, self._set_operand()))
        return first if not rest else lambda scope: _add_up(scope, first, rest)

    def _set_operand(self) -> Callable[[Scope], Attribute]:
        if self._peek() != "if_not_exists":
            operand = self._operand()
            return lambda scope: require(operand(scope))
        self._next()
        stored, default = self._arguments()
        return lambda scope: require(found if (found := stored(scope)) is not None else default(scope))

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


def _drop(new: Item, name: str) -> None:
    new.pop(name, None)


def _add(scope: Scope, new: Item, name: str, added: Operand) -> None:
    ((kind, value),) = require(added(scope)).items()
    old = scope.item.get(name, {kind: "0"} if kind == "N" else {kind: []})
    if kind not in old:
        raise InvalidExpression("An operand in the update expression has an incorrect data type")
    if kind == "N":
        new[name] = {"N": format_number(Decimal(old["N"]) + Decimal(value))}
    elif kind in ("SS", "NS", "BS"):
        new[name] = {kind: sorted({*old[kind], *value})}
    else:
        raise InvalidExpression(f"ADD takes numbers and sets, not {kind}")


def _delete(scope: Scope, new: Item, name: str, deleted: Operand) -> None:
    """Take members from a set, which is gone without members."""
    ((kind, members),) = require(deleted(scope)).items()
    if kind not in ("SS", "NS", "BS") or kind not in scope.item.get(name, {kind: []}):
        raise InvalidExpression("An operand in the update expression has an incorrect data type")
    if left := sorted({*scope.item.get(name, {kind: []})[kind]} - {*members}):
        new[name] = {kind: left}
    else:
        new.pop(name, None)


def _add_up(
    scope: Scope,
    first: Callable[[Scope], Attribute],
    rest: list[tuple[int, Callable[[Scope], Attribute]]],
) -> Attribute:
    total = Decimal(first(scope)["N"])
    for sign, operand in rest:
        total += sign * Decimal(operand(scope)["N"])
    return {"N": format_number(total)}
