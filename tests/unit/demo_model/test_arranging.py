"""Let the demo model rearrange a real page, with the tools of the command line."""

from pathlib import Path
from typing import Any

import pytest

from fermata.agents.registry import get_toolset
from fermata.domain.blocks import ToolCallBlock
from fermata.domain.tools import ToolOutput, ToolSpec
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from fermata_client import HtmlFile, HtmlFileExecutor
from local.demo_model.rules.move_copy_rename import shade_hex_color
from tests.unit.demo_model.editor_tab import Transcript, run_demo_turn

BAKERY = Path(__file__).parents[3] / "examples" / "bakery" / "index.html"
SPECS = tuple(
    ToolSpec(name=tool.name, description=tool.description, input_schema=tool.input_schema)
    for tool in get_toolset("site").tools
    if tool.name not in ("list_documents", "list_tokens")
)


class FileTab:
    """A tab whose page is a file."""

    def __init__(self, path: Path) -> None:
        self.executor = HtmlFileExecutor(HtmlFile(path))

    def run_call(self, call: ToolCallBlock) -> ToolOutput:
        said = self.executor({"toolName": call.tool_name, "requestId": call.tool_call_id, "input": call.input})
        return ToolOutput.success(said.get("data")) if said["ok"] else ToolOutput.failure(said["error"])

    @property
    def sections(self) -> list[str]:
        found = (one.attribute_value("id") for one in self.executor.file.document.tree.elements if one.tag == "section")
        return [name for name in found if name]


@pytest.fixture
def tab(tmp_path: Path) -> FileTab:
    path = tmp_path / "index.html"
    path.write_bytes(BAKERY.read_bytes())
    return FileTab(path)


def say(prompt: str, tab: Any, line: HttpConnection, endpoint: AuthenticatedEndpoint) -> Transcript:
    return run_demo_turn(prompt, tab, line, endpoint, tools=SPECS)


@pytest.mark.parametrize("prompt", ["Rename the page to “Bread & more”", "Please rename this page to Bread & more."])
def test_a_page_gets_another_title(
    prompt: str, tab: FileTab, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    said = say(prompt, tab, line, endpoint)
    assert said.tool_names[-1] == ["renamePage"]
    assert tab.executor.file.document.source == BAKERY.read_bytes().replace(
        b"The Corner Bakery</title>", b"Bread &amp; more</title>"
    )
    assert said.texts[-1].startswith("Done: I renamed the page")


def test_a_section_is_moved_above_another(tab: FileTab, line: HttpConnection, endpoint: AuthenticatedEndpoint) -> None:
    first, second, *rest = tab.sections
    say(f"Move the {second} section above the {first}", tab, line, endpoint)
    assert tab.sections == [second, first, *rest]
    say(f"Move the {second} section to the end", tab, line, endpoint)
    assert tab.sections == [first, *rest, second]
    say(f"Put the {second} section below {first}.", tab, line, endpoint)
    assert tab.executor.file.document.source == BAKERY.read_bytes()


def test_a_section_is_repeated(tab: FileTab, line: HttpConnection, endpoint: AuthenticatedEndpoint) -> None:
    first, *rest = tab.sections
    say(f"Duplicate the {first} section", tab, line, endpoint)
    assert tab.sections == [first, f"{first}-2", *rest]
    say(f"Copy the {rest[0]} section twice", tab, line, endpoint)
    assert tab.sections == [first, f"{first}-2", rest[0], f"{rest[0]}-2", f"{rest[0]}-3", *rest[1:]]


def test_the_main_colour_gets_darker_and_a_named_one_lighter(
    tab: FileTab, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    say("Make the primary colour darker", tab, line, endpoint)
    assert "--color-crust: " + shade_hex_color("#a4551e", "darker") in tab.executor.file.document.css
    say("Make the ink soft colour a bit lighter", tab, line, endpoint)
    assert "--color-ink-soft: " + shade_hex_color("#6b5646", "lighter") in tab.executor.file.document.css


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("Move the careers section above the menu", "no section called “careers”"),
        ("Duplicate the careers section", "no section called “careers”"),
        ("Make the sky colour darker", "no colour called sky"),
    ],
)
def test_what_is_not_there_is_said(
    prompt: str, said: str, tab: FileTab, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    assert said in say(prompt, tab, line, endpoint).texts[-1]
    assert tab.executor.file.document.source == BAKERY.read_bytes()
