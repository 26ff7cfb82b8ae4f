"""docs/tools.md describes the tools as they are defined."""

from fermata.agents.registry import get_toolset, list_scopes_with_tools
from local.tools_page import EXAMPLES, PAGE_PATH, ROOT, render_page


def test_the_page_is_up_to_date() -> None:
    assert PAGE_PATH.read_text() == render_page(), "Regenerate it: make docs"


def test_the_page_has_every_tool_of_every_scope() -> None:
    text = PAGE_PATH.read_text()
    for scope in list_scopes_with_tools():
        for tool in get_toolset(scope).tools:
            assert f"### `{tool.name}`" in text
            assert tool.description.replace("<", "&lt;") in text


TESTS_OF_EXAMPLES = {
    "toolset": ("tests/unit/tools/test_adding_tools.py", "example_agent.toolset"),
    "editor": ("tests/browser/test_own_editor_example.py", "own_editor"),
    "manifest": ("tests/unit/signed_requests/test_example_servers.py", "tool.json"),
    "server": ("tests/unit/signed_requests/test_example_servers.py", '"remote-tool" / "server"'),
}


def test_every_example_of_the_page_is_a_file_that_a_test_runs() -> None:
    assert TESTS_OF_EXAMPLES.keys() == EXAMPLES.keys()
    for name, path in EXAMPLES.items():
        test, mention = TESTS_OF_EXAMPLES[name]
        assert (ROOT / path).read_text() in PAGE_PATH.read_text()
        assert mention in (ROOT / test).read_text(), f"{test} no longer runs {path}"
