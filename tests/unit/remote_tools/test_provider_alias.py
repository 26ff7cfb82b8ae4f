"""Every provider accepts the alias of a tool, and no two tools share one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.remote_tools.provider_alias import RESERVED_ALIASES, make_provider_alias


@pytest.mark.parametrize(
    ("name", "alias"),
    [
        ("9lives", "tool_9lives"),
        ("a/b.c", "a_b_c"),
        ("submit.edit.plan", "submit_edit_plan_1"),
        ("pim.getProduct", "pim_getProduct"),
        ("x" * 80, "x" * 64),
        ("größe", "gr__e"),
    ],
)
def test_an_alias_is_safe_for_providers(name: str, alias: str) -> None:
    assert make_provider_alias(name) == alias


def test_a_long_name_that_clashes_keeps_its_number() -> None:
    used = {*RESERVED_ALIASES, "x" * 64}
    assert make_provider_alias("x" * 90, used) == "x" * 62 + "_1"


@given(st.lists(st.text(max_size=130), max_size=30))
def test_aliases_never_clash(names: list[str]) -> None:
    used: set[str] = set(RESERVED_ALIASES)
    for name in names:
        alias = make_provider_alias(name, used)
        assert alias.casefold() not in {one.casefold() for one in used}
        assert re.fullmatch(r"[A-Za-z_-][A-Za-z0-9_-]{0,63}", alias)
        used.add(alias)
