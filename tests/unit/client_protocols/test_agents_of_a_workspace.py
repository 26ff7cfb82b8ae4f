"""Agents that a workspace has defined, asked by chat clients: confirmations, the state of the page, its context."""

from collections.abc import Iterator
from typing import Any

import pytest

from fermata.client_protocols.message_files import MAX_DOWNLOADED_BYTES
from fermata.domain.run_settings import FileDownloadLimits
from fermata.drivers.transport.file_download import DownloadedFile
from tests.agent_definitions import make_definition, push_definitions
from tests.scripted_tool_server import ScriptedToolServer, run_scripted_tool_server
from tests.unit.client_protocols.conftest import Requester, SdkChat, parse_chunks
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block

ENDPOINT = "orders/place"
SCHEMA = {"type": "object", "properties": {"loaves": {"type": "integer"}}, "required": ["loaves"]}
STATE = {"name": "", "a/b": 1}
HELLO = [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "Hello"}]}]


@pytest.fixture
def shop(stage: Stage) -> Iterator[ScriptedToolServer]:
    """A tenant with an agent that places orders, each after a confirmation."""
    object.__setattr__(
        stage.resources, "settings", stage.resources.settings.model_copy(update={"fermata_stage": "local"})
    )
    with run_scripted_tool_server() as server:
        described = {"id": ENDPOINT, "description": "Places an order.", "payloadSchema": SCHEMA, "url": server.url}
        definition = make_definition(
            credential=stage.credential.id,
            properties={"pageContext": True},
            tools=[{"endpointId": ENDPOINT, "name": "order", "confirm": True}],
            endpoints={ENDPOINT: described},
        )
        push_definitions(stage.resources, stage.caller, definition)
        yield server


def test_a_confirmed_tool_runs_unasked_only_for_callers_without_a_page(
    stage: Stage, requester: Requester, shop: ScriptedToolServer
) -> None:
    shop.script_answer({"ordered": 3})
    order = tool_call_block("order", loaves=3)
    stage.script_replies(reply_with_calls(order), "Ordered.", reply_with_calls(order))
    answered = requester.send("POST", "/api/agents/helper", json={"id": "external", "messages": HELLO})
    assert (answered.status_code, answered.text) == (200, "Ordered.")
    assert [call.body["payload"] for call in shop.calls] == [{"loaves": 3}]
    chat = SdkChat(requester, url="/api/agents/helper")
    chat.say("Order again")
    assert "tool-approval-request" in chat.types()
    assert len(shop.calls) == 1


def test_the_page_and_its_state_reach_the_agent_and_the_page_writes_what_the_agent_fills_in(
    stage: Stage, requester: Requester, shop: ScriptedToolServer
) -> None:
    update = tool_call_block("update-page-state", updates={"name": "Ada", "other": 1})
    stage.script_replies(reply_with_calls(update), "Filled in.")
    chat = SdkChat(requester, url="/api/agent/order/form/helper")
    chat.say("Fill it in", sharedState=STATE, urlQuery={"lang": "de"})
    context = stage.turn.agent_context
    assert (context.page_id, context.url_query, context.shared_state) == ("order/form", {"lang": "de"}, STATE)
    written: dict[str, Any] = {"ok": True, "written": ["name"], "ignored": ["other"]}
    chat.output(update.tool_call_id, written)
    chat.post()
    assert chat.text() == "Filled in."
    assert stage.results_sent_to_model()[-1].data == written


def test_state_of_an_agui_client_is_changed_by_deltas(
    stage: Stage, requester: Requester, shop: ScriptedToolServer
) -> None:
    update = tool_call_block("update-page-state", updates={"name": "Ada", "a/b": 2, "other": 1})
    stage.script_replies(reply_with_calls(update), "Filled in.")
    run = {"threadId": "t", "runId": "r", "state": STATE, "messages": [{"id": "m", "role": "user", "content": "Fill"}]}
    events = parse_chunks(requester.send("POST", "/agui/helper", json=run))
    [delta] = [event["delta"] for event in events if event["type"] == "STATE_DELTA"]
    assert delta == [
        {"op": "add", "path": "/name", "value": "Ada"},
        {"op": "add", "path": "/a~1b", "value": 2},
    ]
    assert events[-1]["outcome"] == {"type": "success"}


def test_an_agent_that_one_may_not_ask_is_as_unknown_as_any(
    stage: Stage, requester: Requester, shop: ScriptedToolServer
) -> None:
    push_definitions(stage.resources, stage.caller, make_definition("secret", access={"roles": ["boss"]}))
    refused = [
        requester.send("POST", f"/api/agents/{name}", json={"id": "c", "messages": HELLO}) for name in ("secret", "no")
    ]
    assert [one.status_code for one in refused] == [404, 404]
    assert refused[0].json() == refused[1].json()


def test_an_agent_limits_the_files_that_are_named_by_their_address(
    stage: Stage, requester: Requester, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[FileDownloadLimits] = []

    def download(_url: str, limits: FileDownloadLimits) -> DownloadedFile:
        asked.append(limits)
        return DownloadedFile(b"x" * 40, "text/plain")

    monkeypatch.setattr("fermata.client_protocols.client_messages.download_file", download)
    limited = {"fileDownload": {"maxBytes": 100, "timeout": 5}}
    push_definitions(stage.resources, stage.caller, make_definition(credential=stage.credential.id, properties=limited))
    stage.script_replies("Read.", "Read.")
    file = {"type": "file", "mediaType": "text/plain", "url": "https://files.example/a"}
    message = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "Read"}, file, file]}
    for agent in ("helper", "site"):
        answer = requester.send("POST", f"/api/agents/{agent}", json={"id": f"files {agent}", "messages": [message]})
        assert answer.status_code == 200, answer.text
    sizes = [(one.max_bytes, one.timeout) for one in asked]
    rest = MAX_DOWNLOADED_BYTES - 40
    assert sizes == [(100, 5), (100, 5), (MAX_DOWNLOADED_BYTES, 30_000), (rest, 30_000)]
