"""What the demo model does with what is there already, carried out on a real page by the command line's own tools."""

from pathlib import Path
from typing import Any

import pytest

from fermata.drivers.endpoint import Endpoint
from fermata.drivers.line import Line
from fermata.tools.catalogue import toolset_for
from fermata.words.blocks import ToolCallBlock
from fermata.words.tools import ToolOutput, ToolSpec
from fermata_client import HtmlFile, HtmlFileExecutor
from local.demo_model.arranging import shaded
from tests.unit.demo_model.tab import Talk, talk

BAKERY = Path(__file__).parents[3] / "examples" / "bakery" / "index.html"
SPECS = tuple(
    ToolSpec(name=tool.name, description=tool.description, input_schema=tool.input_schema)
    for tool in toolset_for("site").tools
    if tool.name not in ("list_documents", "list_tokens")
)


class FileTab:
    """A tab whose page is a file."""

    def __init__(self, path: Path) -> None:
        self.executor = HtmlFileExecutor(HtmlFile(path))

    def run(self, call: ToolCallBlock) -> ToolOutput:
        said = self.executor({"toolName": call.tool_name, "requestId": call.tool_call_id, "input": call.input})
        return ToolOutput.done(said.get("data")) if said["ok"] else ToolOutput.failed(said["error"])

    @property
    def sections(self) -> list[str]:
        found = (one.attribute("id") for one in self.executor.file.document.page.elements if one.tag == "section")
        return [name for name in found if name]


@pytest.fixture
def tab(tmp_path: Path) -> FileTab:
    path = tmp_path / "index.html"
    path.write_bytes(BAKERY.read_bytes())
    return FileTab(path)


def say(prompt: str, tab: Any, line: Line, endpoint: Endpoint) -> Talk:
    return talk(prompt, tab, line, endpoint, tools=SPECS)


@pytest.mark.parametrize("prompt", ["Rename the page to “Bread & more”", "Please rename this page to Bread & more."])
def test_a_page_gets_another_title(prompt: str, tab: FileTab, line: Line, endpoint: Endpoint) -> None:
    said = say(prompt, tab, line, endpoint)
    assert said.names[-1] == ["renamePage"]
    assert tab.executor.file.document.source == BAKERY.read_bytes().replace(
        b"The Corner Bakery</title>", b"Bread &amp; more</title>"
    )
    assert said.texts[-1].startswith("Done: I renamed the page")


def test_a_section_is_moved_above_another(tab: FileTab, line: Line, endpoint: Endpoint) -> None:
    first, second, *rest = tab.sections
    say(f"Move the {second} section above the {first}", tab, line, endpoint)
    assert tab.sections == [second, first, *rest]
    say(f"Move the {second} section to the end", tab, line, endpoint)
    assert tab.sections == [first, *rest, second]
    say(f"Put the {second} section below {first}.", tab, line, endpoint)
    assert tab.executor.file.document.source == BAKERY.read_bytes()


def test_a_section_is_repeated(tab: FileTab, line: Line, endpoint: Endpoint) -> None:
    first, *rest = tab.sections
    say(f"Duplicate the {first} section", tab, line, endpoint)
    assert tab.sections == [first, f"{first}-2", *rest]
    say(f"Copy the {rest[0]} section twice", tab, line, endpoint)
    assert tab.sections == [first, f"{first}-2", rest[0], f"{rest[0]}-2", f"{rest[0]}-3", *rest[1:]]


def test_the_main_colour_gets_darker_and_a_named_one_lighter(tab: FileTab, line: Line, endpoint: Endpoint) -> None:
    say("Make the primary colour darker", tab, line, endpoint)
    assert "--color-crust: " + shaded("#a4551e", "darker") in tab.executor.file.document.css
    say("Make the ink soft colour a bit lighter", tab, line, endpoint)
    assert "--color-ink-soft: " + shaded("#6b5646", "lighter") in tab.executor.file.document.css


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("Move the careers section above the menu", "no section called “careers”"),
        ("Duplicate the careers section", "no section called “careers”"),
        ("Make the sky colour darker", "no colour called sky"),
    ],
)
def test_what_is_not_there_is_said(prompt: str, said: str, tab: FileTab, line: Line, endpoint: Endpoint) -> None:
    assert said in say(prompt, tab, line, endpoint).texts[-1]
    assert tab.executor.file.document.source == BAKERY.read_bytes()
