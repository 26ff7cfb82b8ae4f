"""A snapshot twice as large takes twice the time, whichever of its parts grows (decision 0234)."""

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from fermata.agents.registry import get_toolset, open_agent
from fermata.domain.agent_ids import SCOPES
from fermata.tools.site.design_tokens.colors import ColorSettings, ColorToken, assign_slugs
from fermata.tools.site.design_tokens.listing import list_tokens
from fermata.tools.tool import ToolFailure
from tests.growth.growing_values import find_slow_values, iter_growing_values
from tests.growth.measure_growth import MAX_GROWTH, measure_growth
from tests.quick_suite_samples import sample_for_quick_suite
from tests.unit.tools.builders import PRIMARY_COLOR, make_context, make_site_snapshot
from tests.unit.tools.content_samples import WORKSPACE
from tests.unit.tools.test_content_and_plugin_situations import PLUGIN

SCALES = {"groups": [{"id": "g1", "name": "Type", "steps": "xl", "manualSizes": [{"name": "xl", "min": 1, "max": 2}]}]}
FONTS = {
    "items": [{"id": "f1", "family": "Inter", "variants": ["400"]}],
    "tokens": [{"id": "t1", "name": "Body", "variable": "body"}],
}
SNAPSHOTS: dict[str, Any] = {
    "site": make_site_snapshot(
        framework={
            "colors": {"tokens": [PRIMARY_COLOR | {"darkValue": "rgb(1, 2, 3)", "darkModeEnabled": True}]},
            "typography": SCALES,
            "spacing": SCALES,
        },
        fonts=FONTS,
    ),
    "content": WORKSPACE,
    "plugin": PLUGIN,
    "data": {"a": "b"},
    "planner": {
        "slug": "/about",
        "message": "Make it shorter",
        "activeBlockId": "b1",
        "activeBlockType": "hero",
        "activeEditablePath": "props.title",
        "notes": {"purpose": "A bakery", "hosting": {"kind": "static"}},
        "blockTypes": ["hero", "text"],
        "pages": [{"slug": "/", "title": "Home"}, {"slug": "/about", "title": "About"}],
        "page": {"id": "p1", "slug": "/about", "blocks": [{"id": "b1", "type": "hero", "props": {"title": "Hi"}}]},
    },
}
"""A full snapshot of each scope, of which every part is tried."""
SNAPSHOT_CHARS = 6_000
NOTICEABLE_SECONDS = 0.02
PARTS = 5
"""Of the values that are made of a snapshot, in turn."""


def read_with_every_tool(scope: str, snapshot: Any) -> None:
    """Build the situation, and run each tool that needs no input and no content system."""
    open_agent(scope).build_situation(snapshot)
    context = make_context(scope=scope, snapshot=snapshot)
    for tool in get_toolset(scope).tools:
        if tool.handler is not None:
            with contextlib.suppress(ToolFailure, ValidationError):
                tool.handler(tool.input_model(), context)


def test_the_snapshot_of_a_site_is_read_by_its_tools() -> None:
    """Otherwise the next test would try nothing."""
    tokens = list_tokens(SNAPSHOTS["site"])
    assert [len(tokens[kind]) for kind in ("colors", "typography", "spacing", "fonts")] == [1, 1, 1, 1]


def test_colours_of_one_name_get_their_numbers_in_proportion_to_their_number() -> None:
    def prepare(size: int) -> Callable[[], object]:
        settings = ColorSettings(tokens=(ColorToken(slug="x", light_value="red"),) * size)
        return lambda: list(assign_slugs(settings))

    assert measure_growth(prepare, 4_000, 32_000) <= MAX_GROWTH


@pytest.mark.parametrize("part", sample_for_quick_suite(range(PARTS), every=PARTS))
@pytest.mark.parametrize("scope", SCOPES)
def test_a_snapshot_takes_time_in_proportion_to_its_parts(scope: str, part: int) -> None:
    def prepare(snapshot: Any) -> Callable[[], object]:
        return lambda: read_with_every_tool(scope, snapshot)

    values = itertools.islice(iter_growing_values(SNAPSHOTS.get(scope, {"a": "b"})), part, None, PARTS)
    assert find_slow_values(values, prepare, SNAPSHOT_CHARS, NOTICEABLE_SECONDS) == []
