"""The work for a large site before a turn, counted in function calls, which do not vary like time."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from fermata.agents.registry import get_toolset, open_agent
from tests.unit.tools.builders import ALL_CAPABILITIES, PRIMARY_COLOR, make_site_snapshot
from tests.unit.tools.content_samples import WORKSPACE


class Untouched(dict[str, Any]):
    """A part of a snapshot that fails when it is read."""

    def _touched(self, *_: Any) -> Any:
        raise AssertionError("the prompt read a part of the snapshot that it does not need")

    __getitem__ = __iter__ = keys = values = items = get = __contains__ = copy = _touched


def make_large_snapshot(pages: int, rules: int = 400) -> dict[str, Any]:
    snapshot = make_site_snapshot(framework={"colors": {"tokens": [PRIMARY_COLOR]}})
    rule = Untouched({f"r{n}": {"selector": f".c{n}", "styles": {"color": "red"}} for n in range(rules)})
    nodes = Untouched({f"n{n}": {"moduleId": "base.text"} for n in range(1000)})
    snapshot["site"] |= {"styleRules": rule, "files": Untouched(blob="x" * 1000)}
    snapshot["site"]["pages"] = [
        {"id": f"p{n}", "slug": f"s{n}", "title": f"Page {n}", "rootNodeId": f"r{n}", "nodes": nodes}
        for n in range(pages)
    ]
    return snapshot


def count_calls(work: Callable[[], object]) -> int:
    """Count the Python functions that `work` calls."""
    count = 0

    def tally(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    work()  # fills the caches
    previous_profiler = sys.getprofile()
    sys.setprofile(tally)
    try:
        work()
    finally:
        sys.setprofile(previous_profiler)
    return count


def test_the_situation_reads_no_style_rules_nodes_or_files() -> None:
    line = open_agent("site").build_situation(make_large_snapshot(200))
    assert line.count("=s") == 200
    assert 'Documents: [page:p0="Page 0" (root=r0; Page /s0)' in line


def count_situation_calls(pages: int, rules: int = 400) -> int:
    snapshot = make_large_snapshot(pages, rules)
    return count_calls(lambda: open_agent("site").build_situation(snapshot))


def test_the_cost_of_the_situation_grows_only_with_the_pages() -> None:
    assert count_situation_calls(200) < 4.2 * count_situation_calls(50)
    assert count_situation_calls(50, rules=4000) == count_situation_calls(50, rules=4)


@pytest.mark.parametrize("scope", ["site", "content", "plugin"])
def test_tools_and_prompt_are_built_with_few_calls_once_the_schemas_are_cached(scope: str) -> None:
    toolset = get_toolset(scope)
    capabilities = ALL_CAPABILITIES.union(*(tool.permissions for tool in toolset.tools))

    def build() -> Any:
        return get_toolset(scope).build_tool_specs(capabilities, scope), open_agent(scope).build_system_prompt()

    tool_count = len(toolset.tools)
    assert count_calls(build) < 30 * tool_count + 100
    assert len(build()[0]) == tool_count


def test_the_situation_of_a_large_workspace_lists_the_first_collections() -> None:
    collections = [{"id": f"c{n}", "label": f"Collection {n}"} for n in range(5000)]
    situation = open_agent("content").build_situation(WORKSPACE | {"collections": collections})
    assert "+4950 more" in situation
    assert len(situation) < 4000
