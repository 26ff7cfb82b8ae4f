"""docs/tools.md describes the tools as they are defined."""

from fermata.agents.registry import get_toolset, list_scopes_with_tools
from local.tools_page import PAGE_PATH, render_page


def test_the_page_is_up_to_date() -> None:
    assert PAGE_PATH.read_text() == render_page(), "Regenerate it: make docs"


def test_the_page_has_every_tool_of_every_scope() -> None:
    text = PAGE_PATH.read_text()
    for scope in list_scopes_with_tools():
        for tool in get_toolset(scope).tools:
            assert f"### `{tool.name}`" in text
            assert tool.description.replace("<", "&lt;") in text
