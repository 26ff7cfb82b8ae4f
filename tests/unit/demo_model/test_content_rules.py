"""What the demo model does with a question about content: real tools, asked of the demo content system."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from fermata.drivers.endpoint import Endpoint
from fermata.drivers.guard import Guard
from fermata.drivers.line import Line
from fermata.hosts.errand import Errand, signed
from fermata.hosts.host import Host, Lines
from fermata.tools.content.tools import CONTENT
from fermata.tools.names import Names
from fermata.tools.pipeline import Admitted, admit
from fermata.tools.running import run
from fermata.tools.tool import Execution, ToolContext
from fermata.words.blocks import ToolCallBlock
from fermata.words.tools import ToolOutput
from local.demo_host.content import Content
from local.demo_host.server import DemoHost
from local.demo_model.rules import LABEL
from local.seed import EDITOR
from tests.unit.demo_model.tab import Talk, talk

SECRET = "as long and as secret as a secret of a machine is"
ERRAND = Errand("local", "you", frozenset(("ai.tools.write", *EDITOR)), "content", "turn-1")


@dataclass
class Workspace:
    """Answers the content tools: reads through the pipeline, writes by keeping them in mind."""

    host: Host | None
    written: list[dict[str, Any]]

    def run(self, call: ToolCallBlock) -> ToolOutput:
        context = ToolContext(
            tenant="local",
            user="you",
            capabilities=ERRAND.capabilities,
            scope="content",
            turn="turn-1",
            host=lambda: self.host,
        )
        admitted = admit(CONTENT, call, context)
        assert isinstance(admitted, Admitted), admitted
        if admitted.tool.execution is Execution.SERVER:
            return run(admitted, context)
        self.written.append({"tool": admitted.tool.name, **admitted.arguments})
        return ToolOutput.done()


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    lines = Lines(Guard(loopback=True), 5.0)
    with DemoHost(Content.read(), "local", SECRET) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        host = Host(server.url, lambda: signed(ERRAND, SECRET, "k", time.time()), lambda _seconds: lines)
        yield Workspace(host, [])
        lines.close()
        server.shutdown()
        thread.join()


def ask(prompt: str, workspace: Any, line: Line, endpoint: Endpoint, names: Names = Names.SEED) -> Talk:
    tools = CONTENT.offered(ERRAND.capabilities, "content", names)
    return talk(prompt, workspace, line, endpoint, tools=tools)


def called(said: Talk) -> list[tuple[str, dict[str, Any]]]:
    return [(call.tool_name, call.input) for calls in said.rounds for call in calls]


def test_asked_what_there_is_it_names_the_collections(workspace: Workspace, line: Line, endpoint: Endpoint) -> None:
    said = ask("Which collections are there?", workspace, line, endpoint)
    assert called(said) == [("list_collections", {})]
    assert said.texts[-1] == f"{LABEL}. There are 3 collections: Posts (4), Recipes (2), Pages (2)."


@pytest.mark.parametrize("names", Names)
def test_asked_for_drafts_it_lists_those_of_the_collection_that_was_named(
    workspace: Workspace, line: Line, endpoint: Endpoint, names: Names
) -> None:
    said = ask("Which posts are drafts?", workspace, line, endpoint, names)
    prefix = "content_" if names is Names.PREFIXED else ""
    assert called(said) == [
        (f"{prefix}list_collections", {}),
        (f"{prefix}list_documents", {"tableId": "tbl-posts", "status": "draft"}),
    ]
    assert "I found 1: Our new flour (draft)." in said.texts[-1]


def test_asked_what_a_document_says_it_finds_and_reads_it(workspace: Workspace, line: Line, endpoint: Endpoint) -> None:
    said = ask("What does “Easter hours” say?", workspace, line, endpoint)
    assert [name for name, _ in called(said)] == ["list_collections", "search_documents", "get_document"]
    assert called(said)[-1][1] == {"documentId": "doc-easter"}
    assert "“Easter hours” is scheduled. It says: On Good Friday we open at seven" in said.texts[-1]


def test_asked_for_another_title_it_writes_it_to_the_document_that_has_the_old_one(
    workspace: Workspace, line: Line, endpoint: Endpoint
) -> None:
    said = ask("Change the title of “Our new flour” to “Flour from the mill”", workspace, line, endpoint)
    assert workspace.written == [
        {
            "tool": "set_document_field",
            "documentId": "doc-flour",
            "fieldId": "title",
            "value": "Flour from the mill",
        }
    ]
    assert "I wrote “Flour from the mill” instead of “Our new flour”" in said.texts[-1]


def test_where_nothing_can_be_read_it_says_what_it_was_told(line: Line, endpoint: Endpoint) -> None:
    said = ask("Which posts are drafts?", Workspace(None, []), line, endpoint)
    assert "I could not look. list_collections: The collections can only be read from" in said.texts[-1]


def test_a_greeting_is_answered_without_looking(workspace: Workspace, line: Line, endpoint: Endpoint) -> None:
    said = ask("Good morning", workspace, line, endpoint)
    assert said.rounds == []
    assert said.texts[0].startswith(f"{LABEL}. You said: “Good morning”.")


def test_what_is_not_there_is_not_found(workspace: Workspace, line: Line, endpoint: Endpoint) -> None:
    said = ask("What does “Pumpernickel” say?", workspace, line, endpoint)
    assert "I found nothing of that kind." in said.texts[-1]
