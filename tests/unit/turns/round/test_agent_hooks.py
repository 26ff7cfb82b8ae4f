"""Endpoints that are called at points of a turn."""

from collections.abc import Iterator
from typing import Any

import pytest

from fermata.domain.events import DataPartEvent
from fermata.turns.hooks.call_hooks import HookCaller
from fermata.turns.hooks.hook_payload import read_data_parts
from fermata.turns.webhooks.deliver_entry import deliver_queued_entry
from fermata.turns.webhooks.queued_entry import QueuedEntry
from fermata.wire.renderers.turn_fold import TurnFold
from fermata.wire.renderers.ui_stream import UiStreamRenderer
from tests.agent_definitions import make_definition, push_definitions, start_agent_turn
from tests.scripted_tool_server import ReceivedCall, ScriptedToolServer, run_scripted_tool_server
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.scripted_queue import install_scripted_queue
from tests.unit.turns.stage import ADA, Stage, make_provider_error, reply_with_calls, tool_call_block

HOOK_NAMES = ("onStart", "onStepStart", "onToolCallStart", "onToolCallFinish", "onStepFinish")


@pytest.fixture
def server() -> Iterator[ScriptedToolServer]:
    with run_scripted_tool_server() as running:
        yield running


@pytest.fixture
def stage(staged: MakeStage) -> Stage:
    """A stage whose endpoints may be on this machine."""
    return staged(fermata_stage="local")


def start(stage: Stage, server: ScriptedToolServer, hooks: dict[str, list[str]], **members: Any) -> None:
    """Start a turn of an agent with these hooks. Each endpoint has a path of its own."""
    names = {name for listed in hooks.values() for name in listed}
    endpoints = {name: {"id": name, "url": f"{server.url}/{name}"} for name in [*names, "look"]}
    endpoints["look"] |= {"description": "Looks.", "payloadSchema": {"type": "object"}}
    definition = make_definition(
        credential=stage.credential.id, hooks=hooks, endpoints=endpoints, tools=[{"endpointId": "look", "name": "look"}]
    )
    push_definitions(stage.resources, ADA, definition)
    start_agent_turn(stage, "helper", "Hello", **members)


def deliver_queued(stage: Stage) -> None:
    """Deliver the entries that are queued, as the function does that the queue invokes."""
    queue = install_scripted_queue(stage.resources)
    for row in stage.stored_items(stage.turn.pk):
        if row["sk"].startswith("w#"):
            queue.send(QueuedEntry("bakery", stage.turn.id, int(row["sk"][2:])).to_message())
    queue.deliver(stage.resources)


def list_calls(server: ScriptedToolServer) -> list[tuple[str, dict[str, Any]]]:
    """Return the name of each endpoint that was called, with what it was told."""
    return [(call.path.rpartition("/")[2], call.body["payload"]) for call in server.calls]


def data_parts(stage: Stage) -> list[tuple[str, Any]]:
    return [(event.name, event.data) for event in stage.events() if isinstance(event, DataPartEvent)]


def test_endpoints_are_called_for_each_point_of_a_turn(stage: Stage, server: ScriptedToolServer) -> None:
    start(stage, server, {name: [name] for name in HOOK_NAMES})
    server.script_answer({"seen": 1})
    stage.script_replies(reply_with_calls(tool_call_block("look", at="page")), "Done.")
    stage.run_workflow()
    assert [name for name, _ in list_calls(server)] == ["look"]
    deliver_queued(stage)
    called = [(name, told.get("stepNumber"), told.get("toolName")) for name, told in list_calls(server)[1:]]
    assert sorted(called, key=str) == [
        ("onStart", None, None),
        ("onStepFinish", 1, None),
        ("onStepFinish", 2, None),
        ("onStepStart", 1, None),
        ("onStepStart", 2, None),
        ("onToolCallFinish", 1, "look"),
        ("onToolCallStart", 1, "look"),
    ]
    context = {"userId": "ada", "conversationId": stage.conversation.id}
    assert all(told.items() >= context.items() for _, told in list_calls(server)[1:])


def test_a_delivery_that_comes_again_has_the_same_keys(stage: Stage, server: ScriptedToolServer) -> None:
    start(stage, server, {"onStart": ["log"]})
    stage.script_replies("Done.")
    stage.run_workflow()
    [row] = [row for row in stage.stored_items(stage.turn.pk) if row["sk"].startswith("w#")]
    queue = install_scripted_queue(stage.resources)
    deliver_queued_entry(stage.resources, QueuedEntry("bakery", stage.turn.id, int(row["sk"][2:])))
    queue.messages *= 2
    queue.deliver(stage.resources)
    assert len(server.calls) == 2
    assert {call.headers["idempotency-key"] for call in server.calls} == {f"{stage.turn.id}/start/log"}
    assert not [row for row in stage.stored_items(stage.turn.pk) if row["sk"].startswith("w#")]


def test_a_turn_without_hooks_queues_nothing(stage: Stage, server: ScriptedToolServer) -> None:
    start(stage, server, {})
    stage.script_replies("Done.")
    stage.run_workflow()
    assert not [row for row in stage.stored_items(stage.turn.pk) if row["sk"].startswith("w#")]


def test_what_endpoints_return_at_the_end_is_part_of_the_stream(stage: Stage, server: ScriptedToolServer) -> None:
    start(stage, server, {"onFinish": ["title", "save"]})
    server.script_answer({"dataParts": [{"type": "data-chat-title", "data": {"title": "Greeting"}}, {"type": "text"}]})
    server.script_answer({"dataParts": [{"type": "data-saved", "data": 7, "id": "s", "transient": True}]})
    stage.script_replies("Hi there.")
    stage.run_workflow()
    assert data_parts(stage) == [("data-chat-title", {"title": "Greeting"}), ("data-saved", 7)]
    (first, told), (second, _) = list_calls(server)
    assert (first, second) == ("title", "save")
    assert [message["role"] for message in told["messages"]] == ["user", "assistant"]
    assert told["messages"][1]["parts"][-1] == {"type": "text", "text": "Hi there.", "state": "done"}
    assert (told["finishReason"], told["isAborted"], told["toolResults"]) == ("stop", False, [])
    assert told["usage"]["inputTokens"] == 10
    assert [step["text"] for step in told["steps"]] == ["Hi there."]
    deliver_queued(stage)
    assert len(server.calls) == 2


def test_data_parts_reach_clients_of_the_ai_sdk_before_the_end(stage: Stage, server: ScriptedToolServer) -> None:
    start(stage, server, {"onFinish": ["title"]})
    server.script_answer({"dataParts": [{"type": "data-chat-title", "data": {"title": "Greeting"}}]})
    stage.script_replies("Hi.")
    stage.run_workflow()
    renderer = UiStreamRenderer(TurnFold(lambda _name: False))
    text = b"".join(renderer.render_events(entry.events) for entry in stage.entries()).decode()
    assert '"type":"data-chat-title","data":{"title":"Greeting"}' in text


def test_the_end_of_a_failed_turn_is_told_too(stage: Stage, server: ScriptedToolServer) -> None:
    start(stage, server, {"onFinish": ["save"]})
    server.script_answer({"dataParts": [{"type": "data-saved", "data": False}]})
    stage.script_replies([make_provider_error("provider_auth", retryable=False)])
    stage.run_workflow()
    [(_, told)] = list_calls(server)
    assert (told["finishReason"], told["error"]["code"]) == ("error", "provider_auth")
    assert data_parts(stage) == [("data-saved", False)]


def test_an_endpoint_that_fails_at_the_end_keeps_no_turn_from_ending(stage: Stage, server: ScriptedToolServer) -> None:
    start(stage, server, {"onFinish": ["broken", "save"]})
    server.script_answer({"error": "Oops."}, 500)
    server.script_answer({"dataParts": "nonsense"})
    stage.script_replies("Hi.")
    assert stage.run_workflow() == "finished"
    assert [name for name, _ in list_calls(server)] == ["broken", "save"]
    assert stage.terminal_events()[-1].type == "done"


@pytest.mark.parametrize("name", ["data-approval", "data-display", "data-held", "data-usage", "data-warning"])
def test_an_endpoint_writes_no_part_in_the_name_of_the_service(name: str) -> None:
    parts = read_data_parts({"dataParts": [{"type": name, "id": "forged", "data": {}}, {"type": f"{name}s"}]})
    assert [part.name for part in parts] == [f"{name}s"]


def test_the_end_of_a_cancelled_turn_is_told_afterwards(stage: Stage, server: ScriptedToolServer) -> None:
    start(stage, server, {"onFinish": ["save"]})
    stage.cancel_turn()
    assert server.calls == []
    deliver_queued(stage)
    [(name, told)] = list_calls(server)
    assert (name, told["isAborted"]) == ("save", False)
    assert server.calls[0].headers["idempotency-key"] == f"{stage.turn.id}/finish/save"


def test_endpoints_for_which_no_time_is_left_are_called_afterwards(
    stage: Stage, server: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(stage, server, {"onFinish": ["title", "save"]})
    monkeypatch.setattr(HookCaller, "count_seconds", lambda _self, endpoint: 1e6 if endpoint == "save" else 1)
    server.script_answer({"dataParts": [{"type": "data-chat-title", "data": 1}]})
    stage.script_replies("Hi.")
    assert stage.run_workflow() == "finished"
    assert data_parts(stage) == [("data-chat-title", 1)]
    assert [name for name, _ in list_calls(server)] == ["title"]
    deliver_queued(stage)
    assert [name for name, _ in list_calls(server)] == ["title", "title", "save"]
    assert server.calls[0].headers["idempotency-key"] == server.calls[1].headers["idempotency-key"]


def test_a_turn_that_is_cancelled_meanwhile_ends_as_cancelled(stage: Stage, server: ScriptedToolServer) -> None:
    start(stage, server, {"onFinish": ["save"]})

    def cancel(_call: ReceivedCall) -> None:
        stage.cancel_turn()

    server.script_answer({"dataParts": [{"type": "data-saved", "data": 1}]}, before=cancel)
    stage.script_replies("Hi.")
    stage.run_workflow()
    assert [event.type for event in stage.terminal_events()] == ["cancelled"]
    assert data_parts(stage) == []
