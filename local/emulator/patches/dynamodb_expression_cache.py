"""Patch DynamoDB: parse each expression once.

Unpatched MiniStack parses a key condition for every item of the partition: 14 ms for one item out of 400. Here a parsed
condition is cached, and a simple condition on a string sort key is compared directly. MiniStack evaluates the others.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any

from ministack.services import dynamodb

from local.emulator.patches.registry import Function, patch_function, patch_line, pin_functions

Item = dict[str, dict[str, Any]]
SortKeyTest = Callable[[str], bool]
Tokens = list[tuple[str, str]]
COMPARISONS = {"EQ": operator.eq, "LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge}
MIN_CLAUSE_TOKENS = 3

pin_functions(dynamodb, _key_condition_clauses="51cf95b535aa", _evaluate_condition="94561811e28c")

_parse = functools.lru_cache(maxsize=1024)(dynamodb._tokenize)
_check = functools.lru_cache(maxsize=1024)(dynamodb._condition_syntax_error)


@patch_function(dynamodb, "_tokenize", "6abb13395c3e")
def tokenize_expression(original: Function, expression: str) -> Tokens:
    return list(_parse(expression))


@patch_function(dynamodb, "_condition_syntax_error", "5213f1ffac34")
def condition_syntax_error(original: Function, expression: str, slot: str) -> Any:
    return _check(expression, slot)


def filter_items(
    condition: str, items: list[Item], values: Item, names: dict[str, str], sort_key: str | None
) -> list[Item]:
    """Get the items of one partition that match a key condition.

    Raises:
        ValueError: for a malformed condition, as the original does.
    """
    matches = functools.partial(dynamodb._evaluate_condition, condition, slot="KeyConditionExpression")
    test = parse_sort_key_test(condition, values, names, sort_key)
    if test is None or not items:
        return [item for item in items if matches(item, values, names)]
    matches(items[0], values, names)
    return [item for item in items if test(item[str(sort_key)]["S"])]


def parse_sort_key_test(
    condition: str, values: Item, names: dict[str, str], sort_key: str | None
) -> SortKeyTest | None:
    """Make a test of the sort key from a key condition; None when the condition tests anything else, or no sort key."""
    for clause in dynamodb._key_condition_clauses(_parse(condition)):
        if len(clause) < MIN_CLAUSE_TOKENS:
            return None
        kinds = [kind for kind, _ in clause]
        words = [word for _, word in clause]
        name = words[2] if words[0].lower() == "begins_with" else words[0]
        if names.get(name, name) == sort_key:
            texts = [values[word].get("S") for kind, word in clause if kind == "VALUE_REF"]
            return None if None in texts else _make_test(kinds, words, texts)
    return None


def _make_test(kinds: list[str], words: list[str], texts: list[Any]) -> SortKeyTest | None:
    match kinds[1:]:
        case [kind, "VALUE_REF"] if kind in COMPARISONS:
            return lambda key: bool(COMPARISONS[kind](key, texts[0]))
        case ["IDENT", "VALUE_REF", "IDENT", "VALUE_REF"] if words[1].upper() == "BETWEEN":
            return lambda key: texts[0] <= key <= texts[1]
        case ["LPAREN", _, "COMMA", "VALUE_REF", "RPAREN"]:
            return lambda key: key.startswith(texts[0])
    return None


patch_line(
    dynamodb,
    "_query",
    "50c2e7ec69e9",
    '[it for it in candidates if _evaluate_condition(key_cond, it, eav, ean, slot="KeyConditionExpression")]',
    "_filter_items(key_cond, candidates, eav, ean, sk_name if not multi_key else None)",
    _filter_items=filter_items,
)
