"""The page about the tools says what the records say."""

from fermata.tools.catalogue import AREAS, toolset_for
from local.tools_page import PAGE, page


def test_the_page_is_what_would_be_written_now() -> None:
    assert PAGE.read_text() == page(), "Write it anew: make docs"


def test_the_page_has_every_tool_of_every_scope() -> None:
    text = PAGE.read_text()
    for scope in AREAS:
        for tool in toolset_for(scope).tools:
            assert f"### `{tool.name}`" in text
            assert tool.description.replace("<", "&lt;") in text
