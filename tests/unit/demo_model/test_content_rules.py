"""Let the demo model answer questions about content, with real tools and the demo content system."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from fermata.domain.blocks import ToolCallBlock
from fermata.domain.tools import ToolOutput
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from fermata.drivers.transport.url_guard import UrlGuard
from fermata.hosts.auth import HostCaller, sign_host_token
from fermata.hosts.client import HostClient, HostConnectionPool
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.content.toolset import CONTENT_TOOLSET
from fermata.tools.tool import Execution, ToolContext
from fermata.tools.tool_names import ToolNaming
from local.demo_host.demo_content import DemoContent
from local.demo_host.server import DemoHostServer
from local.demo_model.rules.next_answer import MODEL_LABEL
from local.seed import EDITOR_CAPABILITIES
from tests.unit.demo_model.editor_tab import Transcript, run_demo_turn
from tests.unit.tools.builders import run_tool

SECRET = "as long and as secret as a secret of a machine is"
DEMO_CALLER = HostCaller("local", "you", frozenset(("ai.tools.write", *EDITOR_CAPABILITIES)), "content", "turn-1")


@dataclass
class Workspace:
    """Answers the content tools: reads through the pipeline, writes by keeping them in mind."""

    host: HostClient | None
    written: list[dict[str, Any]]

    def run_call(self, call: ToolCallBlock) -> ToolOutput:
        context = ToolContext(
            tenant="local",
            user="you",
            capabilities=DEMO_CALLER.capabilities,
            scope="content",
            turn="turn-1",
            open_host=lambda: self.host,
        )
        admitted = admit_call(CONTENT_TOOLSET, call, context)
        assert isinstance(admitted, AdmittedCall), admitted
        if admitted.tool.execution is Execution.SERVER:
            return run_tool(admitted, context)
        self.written.append({"tool": admitted.tool.name, **admitted.arguments})
        return ToolOutput.success()


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    lines = HostConnectionPool(UrlGuard(loopback=True), 5.0)
    with DemoHostServer(DemoContent.load_content(), "local", SECRET) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        host = HostClient(
            server.url, lambda: sign_host_token(DEMO_CALLER, SECRET, "k", time.time()), lambda _seconds: lines
        )
        yield Workspace(host, [])
        lines.close()
        server.shutdown()
        thread.join()


def ask(
    prompt: str,
    workspace: Any,
    line: HttpConnection,
    endpoint: AuthenticatedEndpoint,
    names: ToolNaming = ToolNaming.CANONICAL,
) -> Transcript:
    tools = CONTENT_TOOLSET.build_tool_specs(DEMO_CALLER.capabilities, "content", names)
    return run_demo_turn(prompt, workspace, line, endpoint, tools=tools)


def called(said: Transcript) -> list[tuple[str, dict[str, Any]]]:
    return [(call.tool_name, call.input) for calls in said.rounds for call in calls]


def test_asked_what_there_is_it_names_the_collections(
    workspace: Workspace, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    said = ask("Which collections are there?", workspace, line, endpoint)
    assert called(said) == [("list_collections", {})]
    assert said.texts[-1] == f"{MODEL_LABEL}. There are 3 collections: Posts (4), Recipes (2), Pages (2)."


@pytest.mark.parametrize("names", ToolNaming)
def test_asked_for_drafts_it_lists_those_of_the_collection_that_was_named(
    workspace: Workspace, line: HttpConnection, endpoint: AuthenticatedEndpoint, names: ToolNaming
) -> None:
    said = ask("Which posts are drafts?", workspace, line, endpoint, names)
    prefix = "content_" if names is ToolNaming.PREFIXED else ""
    assert called(said) == [
        (f"{prefix}list_collections", {}),
        (f"{prefix}list_documents", {"tableId": "tbl-posts", "status": "draft"}),
    ]
    assert "I found 1: Our new flour (draft)." in said.texts[-1]


def test_asked_what_a_document_says_it_finds_and_reads_it(
    workspace: Workspace, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    said = ask("What does “Easter hours” say?", workspace, line, endpoint)
    assert [name for name, _ in called(said)] == ["list_collections", "search_documents", "get_document"]
    assert called(said)[-1][1] == {"documentId": "doc-easter"}
    assert "“Easter hours” is scheduled. It says: On Good Friday we open at seven" in said.texts[-1]


def test_asked_for_another_title_it_writes_it_to_the_document_that_has_the_old_one(
    workspace: Workspace, line: HttpConnection, endpoint: AuthenticatedEndpoint
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


def test_where_nothing_can_be_read_it_repeats_the_error(line: HttpConnection, endpoint: AuthenticatedEndpoint) -> None:
    said = ask("Which posts are drafts?", Workspace(None, []), line, endpoint)
    assert "I could not look. list_collections: The collections can only be read from" in said.texts[-1]


def test_a_greeting_is_answered_without_looking(
    workspace: Workspace, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    said = ask("Good morning", workspace, line, endpoint)
    assert said.rounds == []
    assert said.texts[0].startswith(f"{MODEL_LABEL}. You said: “Good morning”.")


def test_what_is_not_there_is_not_found(
    workspace: Workspace, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    said = ask("What does “Pumpernickel” say?", workspace, line, endpoint)
    assert "I found nothing of that kind." in said.texts[-1]
