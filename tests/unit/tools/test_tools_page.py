"""The page about the tools says what the records say."""

from fermata.tools.registry import SCOPE_REGISTRY, get_toolset
from local.tools_page import PAGE_PATH, render_page


def test_the_page_is_what_would_be_written_now() -> None:
    assert PAGE_PATH.read_text() == render_page(), "Write it anew: make docs"


def test_the_page_has_every_tool_of_every_scope() -> None:
    text = PAGE_PATH.read_text()
    for scope in SCOPE_REGISTRY:
        for tool in get_toolset(scope).tools:
            assert f"### `{tool.name}`" in text
            assert tool.description.replace("<", "&lt;") in text
