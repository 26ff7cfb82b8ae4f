"""No regular expression takes more than twice the time for a text twice as long, whatever the text is (decision 0234).

Each expression of the service and of the client is found by itself, and attacked with texts that are derived from it.
"""

import ast
import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from fermata.agents.registry import get_toolset
from fermata.domain.agent_ids import SCOPES
from fermata.drivers.secret_veil import SecretVeil
from tests.growth.attack_strings import Attack, derive_attacks
from tests.growth.measure_growth import MAX_GROWTH, TooSlow, measure_growth
from tests.growth.package_patterns import PACKAGES, UNKNOWN, FoundPattern, _iter_called, find_patterns, list_modules
from tests.quick_suite_samples import sample_for_quick_suite

ATTACK_CHARS = 4000
MAX_SECONDS = 0.2
"""What is linear in so few characters takes a hundredth of it."""
PARTS = 20
"""Of the texts that a pattern is attacked with."""
COMPILED_FROM_OTHERS = {
    "fermata.drivers.adjustments": "the pattern of an adjustment, which the provider's module holds",
    "fermata.drivers.secret_veil": "made of the characters of a secret, and tried here with one",
    "fermata_client.stack.doctor.parameter_checks": "the pattern of a parameter, from the operator's own template",
    "fermata.tools.schema.validation": "the pattern of a tool's schema, which is tried here as well",
}
"""Modules that compile what they are given. What they are given is found elsewhere."""
find_patterns_once = functools.cache(find_patterns)
derive_attacks_once = functools.cache(derive_attacks)


def find_slow_attack(found: FoundPattern, part: int = 0, parts: int = 1) -> Attack | None:
    """Return the first text of a part that takes too much longer when it is longer, each time that it is tried."""
    for attack in derive_attacks_once(found.pattern)[part::parts]:
        if is_slow(found, attack) and is_slow(found, attack):
            return attack
    return None


def is_slow(found: FoundPattern, attack: Attack) -> bool:
    work = functools.partial(prepare, found, attack)
    try:
        return measure_growth(work, ATTACK_CHARS, ATTACK_CHARS, max_seconds=MAX_SECONDS) > MAX_GROWTH
    except TooSlow:
        return True


def prepare(found: FoundPattern, attack: Attack, size: int) -> Callable[[], object]:
    built = attack.build(size)
    text: Any = built if isinstance(found.pattern.pattern, str) else built.encode("latin-1", "replace")
    if found.searches:
        return lambda: sum(1 for _ in found.pattern.finditer(text))
    return lambda: (found.pattern.match(text), found.pattern.fullmatch(text))


def find_schema_patterns(schema: Any) -> set[str]:
    if isinstance(schema, dict):
        own = {schema["pattern"]} if isinstance(schema.get("pattern"), str) else set()
        return own.union(*map(find_schema_patterns, schema.values()))
    return set().union(*map(find_schema_patterns, schema)) if isinstance(schema, list) else set()


@pytest.mark.parametrize("part", sample_for_quick_suite(range(PARTS), every=PARTS))
@pytest.mark.parametrize("package", PACKAGES)
def test_patterns_take_time_in_proportion_to_the_text(package: str, part: int) -> None:
    module = package.rpartition("/")[2]
    patterns = [found for found in find_patterns_once() if found.place.partition(".")[0] == module]
    slow = {found.place: attack for found in patterns if (attack := find_slow_attack(found, part, PARTS))}
    assert slow == {}, "twice as long takes more than twice the time"


def test_patterns_of_schemas_take_time_in_proportion_to_the_text() -> None:
    schemas = [tool.input_schema for scope in SCOPES for tool in get_toolset(scope).tools]
    patterns = set().union(*map(find_schema_patterns, schemas))
    for pattern in patterns:
        assert find_slow_attack(FoundPattern("a schema", re.compile(pattern), frozenset({"search"}))) is None, pattern


def test_patterns_of_secrets_take_time_in_proportion_to_the_text() -> None:
    for pattern in SecretVeil("sk-ant-aaaa/bbbb+c%41")._patterns:
        assert find_slow_attack(FoundPattern("a secret", pattern, frozenset({"sub"}))) is None


def test_every_pattern_is_known_before_it_is_used() -> None:
    """What code puts together when it is called cannot be attacked here."""
    unknown = [found.place for found in find_patterns_once() if UNKNOWN in found.methods]
    assert [place for place in unknown if place.partition(":")[0] not in COMPILED_FROM_OTHERS] == []
    assert {place.partition(":")[0] for place in unknown} == set(COMPILED_FROM_OTHERS)


@pytest.mark.parametrize(
    "code",
    [
        'def f(text): return re.compile(r"(?:a+)+;").match(text)',
        'def f(text):\n    pattern = re.compile(r"(?:a+)+;")\n    return pattern.search(text)',
        'async def f(text): return re.search(r"(?:a+)+;", text)',
        'class A:\n    pattern = re.compile(r"(?:a+)+;")',
    ],
)
def test_patterns_inside_of_functions_and_classes_are_found(code: str) -> None:
    (found,) = _iter_called(re, ast.parse(f"import re\n{code}"))
    assert find_slow_attack(found) is not None


def test_patterns_are_used_by_the_name_by_which_they_are_found() -> None:
    """A function that is imported from `re`, or `re` under another name, would hide its patterns."""
    imports = [node for module in list_modules() for node in ast.walk(ast.parse(inspect.getsource(module)))]
    assert not [node for node in imports if isinstance(node, ast.ImportFrom) and node.module == "re"]
    names = [name for node in imports if isinstance(node, ast.Import) for name in node.names if name.name == "re"]
    assert {name.asname for name in names} == {None}


SLOW = [
    r"(a+)+$",
    r"(?:a|a)*$",
    r"\w*\s*\w*$",
    r"\s+x",
    r"<!--.*?-->",
    r"<(?=[\W_]*context)",
    r"prompt\w*\W+(?:\w+\W+)*too long",
    r"\d*\.?\d+%",
    r"(?<=\n)(?:[ \t]*\r?\n)+\Z",
    r"<(?P<name>script|style)>.*?(?=</(?P=name)>)",
    r"url\([^)]*\)",
]
LINEAR = [r"(?<!\s)\s++x", r"<!--.*?(?:-->|\Z)", r"(?<!\d)\d++(?:\.\d++)?%", r"model\b.{0,300}not found"]


@pytest.mark.parametrize("pattern", sample_for_quick_suite(SLOW, every=4))
def test_patterns_that_are_known_to_backtrack_are_noticed(pattern: str) -> None:
    assert find_slow_attack(FoundPattern("", re.compile(pattern, re.S), frozenset({"search"}))) is not None


@pytest.mark.parametrize("pattern", LINEAR)
def test_patterns_that_read_each_character_once_are_accepted(pattern: str) -> None:
    assert find_slow_attack(FoundPattern("", re.compile(pattern, re.S), frozenset({"search"}))) is None
