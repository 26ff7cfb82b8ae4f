"""What a large site costs before a turn's first request: counted, because clocks tell something else every time."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from fermata.tools.registry import build_situation, build_system_prompt, get_toolset
from tests.unit.tools.builders import ALL_CAPABILITIES, PRIMARY_COLOR, make_site_snapshot
from tests.unit.tools.content_samples import WORKSPACE


class Untouched(dict[str, Any]):
    """A part of a snapshot that nobody may look into."""

    def _touched(self, *_: Any) -> Any:
        raise AssertionError("somebody looked at what the prompt does not need")

    __getitem__ = __iter__ = keys = values = items = get = __contains__ = copy = _touched


def large(pages: int, rules: int = 400) -> dict[str, Any]:
    posted = make_site_snapshot(framework={"colors": {"tokens": [PRIMARY_COLOR]}})
    rule = Untouched({f"r{n}": {"selector": f".c{n}", "styles": {"color": "red"}} for n in range(rules)})
    nodes = Untouched({f"n{n}": {"moduleId": "base.text"} for n in range(1000)})
    posted["site"] |= {"styleRules": rule, "files": Untouched(blob="x" * 1000)}
    posted["site"]["pages"] = [
        {"id": f"p{n}", "slug": f"s{n}", "title": f"Page {n}", "rootNodeId": f"r{n}", "nodes": nodes}
        for n in range(pages)
    ]
    return posted


def calls_of(work: Callable[[], object]) -> int:
    """How many Python functions it calls."""
    count = 0

    def tally(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    work()  # what is built once is built now
    before = sys.getprofile()
    sys.setprofile(tally)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def test_the_prompt_looks_at_no_style_rule_no_node_and_no_file() -> None:
    line = build_situation("site", large(200))
    assert line.count("=s") == 200
    assert 'Documents: [page:p0="Page 0" (root=r0; Page /s0)' in line


def effort(pages: int, rules: int = 400) -> int:
    posted = large(pages, rules)
    return calls_of(lambda: build_situation("site", posted))


def test_the_effort_grows_with_the_pages_and_with_nothing_else() -> None:
    assert effort(200) < 4.2 * effort(50)
    assert effort(50, rules=4000) == effort(50, rules=4)


@pytest.mark.parametrize("scope", ["site", "content", "plugin"])
def test_tools_and_prompt_are_soon_put_together_once_the_schemas_are_made(scope: str) -> None:
    toolset = get_toolset(scope)
    rights = ALL_CAPABILITIES.union(*(tool.permissions for tool in toolset.tools))

    def build() -> Any:
        return get_toolset(scope).build_tool_specs(rights, scope), build_system_prompt(scope)

    tools = len(toolset.tools)
    assert calls_of(build) < 30 * tools + 100
    assert len(build()[0]) == tools


def test_a_large_workspace_is_told_by_its_first_collections() -> None:
    collections = [{"id": f"c{n}", "label": f"Collection {n}"} for n in range(5000)]
    told = build_situation("content", WORKSPACE | {"collections": collections})
    assert "+4950 more" in told
    assert len(told) < 4000
