"""docs/tools.md describes the tools as they are defined."""

from fermata.domain.scopes import SCOPES_WITH_TOOLS
from fermata.tools.registry import get_toolset
from local.tools_page import PAGE_PATH, render_page


def test_the_page_is_up_to_date() -> None:
    assert PAGE_PATH.read_text() == render_page(), "Regenerate it: make docs"


def test_the_page_has_every_tool_of_every_scope() -> None:
    text = PAGE_PATH.read_text()
    for scope in SCOPES_WITH_TOOLS:
        for tool in get_toolset(scope).tools:
            assert f"### `{tool.name}`" in text
            assert tool.description.replace("<", "&lt;") in text
