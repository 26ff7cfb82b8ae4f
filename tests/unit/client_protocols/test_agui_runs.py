"""Clients of AG-UI over HTTP: runs byte for byte, their lifecycle, and what of a thread counts."""

from itertools import pairwise
from typing import Any

import pytest

from fermata.client_protocols import log_response
from fermata.domain.blocks import ImageBlock
from fermata.domain.model_io import ReasoningDelta
from tests.images import make_image, to_base64
from tests.tenant_tokens import make_tenant
from tests.unit.client_protocols.conftest import Requester, parse_chunks
from tests.unit.turns.approvals.bakery import Bakery
from tests.unit.turns.stage import Stage, make_provider_error, reply_with_calls, reply_with_text, tool_call_block

Json = dict[str, Any]
LOCATE = {"name": "locate", "description": "Finds out where the user is.", "parameters": {"type": "object"}}
OPENING = {
    "TEXT_MESSAGE_START": "TEXT_MESSAGE_END",
    "REASONING_START": "REASONING_END",
    "REASONING_MESSAGE_START": "REASONING_MESSAGE_END",
    "TOOL_CALL_START": "TOOL_CALL_END",
    "STEP_STARTED": "STEP_FINISHED",
}


class Thread:
    """A thread as its client keeps it: messages, and the number of its runs."""

    def __init__(self, requester: Requester) -> None:
        self.requester = requester
        self.messages: list[Json] = []
        self.runs = 0

    def run(self, text: str = "", **members: Any) -> list[Json]:
        if text:
            self.messages.append({"id": f"m{len(self.messages)}", "role": "user", "content": text})
        events = parse_chunks(self.post(**members))
        check_lifecycle(events)
        self._apply(events)
        return events

    def post(self, **members: Any) -> Any:
        self.runs += 1
        body = {"threadId": "thread-1", "runId": f"run-{self.runs}", "messages": self.messages, "tools": []}
        return self.requester.send("POST", "/agui/site", json=body | members)

    def answer(self, call_id: str, content: str, **members: Any) -> None:
        message = {"id": f"m{len(self.messages)}", "role": "tool", "toolCallId": call_id, "content": content}
        self.messages.append(message | members)

    def _apply(self, events: list[Json]) -> None:
        for event in events:
            match event["type"]:
                case "TEXT_MESSAGE_START":
                    self.messages.append({"id": event["messageId"], "role": "assistant", "content": ""})
                case "TEXT_MESSAGE_CONTENT":
                    self.messages[-1]["content"] += event["delta"]
                case "TOOL_CALL_START":
                    call = {"id": event["toolCallId"], "type": "function", "function": {"name": event["toolCallName"]}}
                    if self.messages[-1]["id"] != event["parentMessageId"]:
                        self.messages.append({"id": event["parentMessageId"], "role": "assistant"})
                    self.messages[-1].setdefault("toolCalls", []).append(call)


def check_lifecycle(events: list[Json]) -> None:
    """Check the order of a run's events, as the client of AG-UI does."""
    types = [event["type"] for event in events]
    assert types[0] == "RUN_STARTED"
    assert types[-1] in ("RUN_FINISHED", "RUN_ERROR")
    assert not set(types[1:-1]) & {"RUN_STARTED", "RUN_FINISHED", "RUN_ERROR"}
    opened: list[str] = []
    for kind in types:
        if kind in OPENING:
            opened.append(OPENING[kind])
        elif kind in opened:
            opened.remove(kind)
    assert opened == []
    assert not [event for event in events if None in event.values()]


def test_a_run_is_a_stream_of_events_byte_for_byte(stage: Stage, requester: Requester) -> None:
    *deltas, reply = reply_with_text("Grüß dich.")
    stage.script_replies([ReasoningDelta(text="A greeting."), *deltas, reply])
    body = {"threadId": "t", "runId": "r", "messages": [{"id": "m", "role": "user", "content": "Hello"}]}
    response = requester.send("POST", "/agui/site", json=body)
    name = f"{stage.turn.id}-1"
    frames = [
        '{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0"}',
        '{"type":"STEP_STARTED","stepName":"round 1"}',
        f'{{"type":"REASONING_START","messageId":"{name}-reasoning"}}',
        f'{{"type":"REASONING_MESSAGE_START","messageId":"{name}-reasoning","role":"reasoning"}}',
        f'{{"type":"REASONING_MESSAGE_CONTENT","messageId":"{name}-reasoning","delta":"A greeting."}}',
        f'{{"type":"REASONING_MESSAGE_END","messageId":"{name}-reasoning"}}',
        f'{{"type":"REASONING_END","messageId":"{name}-reasoning"}}',
        f'{{"type":"TEXT_MESSAGE_START","messageId":"{name}","role":"assistant"}}',
        f'{{"type":"TEXT_MESSAGE_CONTENT","messageId":"{name}","delta":"Grüß dich."}}',
        f'{{"type":"TEXT_MESSAGE_END","messageId":"{name}"}}',
        '{"type":"STEP_FINISHED","stepName":"round 1"}',
        '{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success"},'
        '"usage":[{"inputTokens":10,"outputTokens":5,"totalTokens":15}]}',
    ]
    assert response.text == "".join(f"data: {frame}\n\n" for frame in frames)
    assert response.headers["content-type"] == "text/event-stream"


def test_calls_of_the_front_end_end_a_run_and_their_results_begin_the_next(stage: Stage, requester: Requester) -> None:
    first, second = tool_call_block("locate", of="user"), tool_call_block("locate", of="shop")
    stage.script_replies(reply_with_calls(first, second, text="I look."), "Two streets away.")
    thread = Thread(requester)
    ids = [first.tool_call_id, second.tool_call_id]
    assert thread.run("Where?", tools=[LOCATE])[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ids}
    thread.answer(ids[0], '{"city": "Ghent"}')
    thread.answer(ids[1], "", error="No permission.")
    events = thread.run(tools=[LOCATE])
    assert [event["type"] for event in events if event["type"].startswith("TOOL_CALL")] == []
    assert thread.messages[-1]["content"] == "Two streets away."
    results = stage.results_sent_to_model()
    assert [(result.data, result.error) for result in results] == [({"city": "Ghent"}, None), (None, "No permission.")]


@pytest.mark.parametrize(
    ("decision", "baked"),
    [
        ({"status": "resolved", "payload": {"approved": True}}, [3]),
        ({"status": "resolved", "payload": {"approved": True, "input": {"loaves": 1}}}, [1]),
        ({"status": "resolved", "payload": {"approved": False}}, []),
        ({"status": "cancelled"}, []),
        ({"status": "resolved"}, []),
    ],
)
def test_an_interrupt_is_answered_by_the_next_run(
    stage: Stage, requester: Requester, decision: Json, baked: list[int]
) -> None:
    bakery = Bakery(stage)
    bake = tool_call_block("bake", loaves=3)
    stage.script_replies(reply_with_calls(bake), "Done.")
    thread = Thread(requester)
    [interrupt] = thread.run("Bake")[-1]["outcome"]["interrupts"]
    assert (interrupt["reason"], interrupt["toolCallId"]) == ("tool_call", bake.tool_call_id)
    assert interrupt["responseSchema"]["required"] == ["approved"]
    events = thread.run(resume=[{"interruptId": interrupt["id"], **decision}])
    assert bakery.oven.baked == baked
    [result] = [event for event in events if event["type"] == "TOOL_CALL_RESULT"]
    assert result["toolCallId"] == bake.tool_call_id
    assert thread.messages[-1]["content"] == "Done."


def test_an_interrupt_that_was_never_asked_is_refused_by_name(stage: Stage, requester: Requester) -> None:
    Bakery(stage)
    stage.script_replies(reply_with_calls(tool_call_block("bake", loaves=3)), "Done.")
    thread = Thread(requester)
    thread.run("Bake")
    refused = thread.post(resume=[{"interruptId": "forged", "status": "resolved", "payload": {"approved": True}}])
    assert (refused.status_code, "'forged'" in refused.json()["error"]) == (400, True)


def test_a_run_without_anything_new_is_refused(stage: Stage, requester: Requester) -> None:
    stage.script_replies("Hello.")
    thread = Thread(requester)
    thread.run("Hi")
    assert thread.post().status_code == 400


def test_a_failure_ends_the_run_with_its_code(stage: Stage, requester: Requester) -> None:
    stage.script_replies([make_provider_error("provider_auth", retryable=False)])
    assert Thread(requester).run("Hi")[-1]["code"] == "provider_auth"


def test_the_same_run_again_joins_its_turn(stage: Stage, requester: Requester) -> None:
    stage.script_replies("Hello.")
    body = {"threadId": "t", "runId": "r", "messages": [{"id": "m", "role": "user", "content": "Hi"}]}
    first, second = (requester.send("POST", "/agui/site", json=body) for _ in range(2))
    assert first.text == second.text
    assert len(stage.driver.requests) == 1


def test_the_same_run_again_counts_as_a_reader(
    stage: Stage, requester: Requester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a client that repeats one run opens as many streams as it likes."""
    counted: list[bool] = []
    send = log_response.send_log

    def send_log(*given: Any, is_counted: bool, **named: Any) -> Any:
        counted.append(is_counted)
        return send(*given, is_counted=is_counted, **named)

    monkeypatch.setattr(log_response, "send_log", send_log)
    thread = Thread(requester)
    stage.script_replies("Hi.")
    thread.messages.append({"id": "m0", "role": "user", "content": "Hello"})
    for _ in range(2):
        thread.runs = 0
        thread.post()
    assert counted == [False, True]


def test_an_agents_own_browser_tools_are_offered_only_if_the_front_end_has_them(
    stage: Stage, requester: Requester
) -> None:
    stage.script_replies("One.", "Two.")
    thread = Thread(requester)
    thread.run("Hi", tools=[LOCATE])
    thread.run("Hi again", tools=[{"name": "insertHtml", "description": "Mine.", "parameters": {}}])
    names = [{tool.name for tool in request.tools} for request in stage.driver.requests]
    assert [("locate" in one, "insertHtml" in one) for one in names] == [(True, False), (False, True)]


def test_pictures_are_read_and_what_is_no_file_is_refused(stage: Stage, requester: Requester) -> None:
    picture = to_base64(make_image(4, 4, "PNG"))
    sources = [{"type": "data", "value": picture, "mimeType": "image/png"}, {"type": "url", "value": "file:///etc"}]
    stage.script_replies("I see.")
    statuses = []
    for number, source in enumerate(sources):
        content = [{"type": "text", "text": "Look"}, {"type": "image", "source": source}]
        messages = [{"id": "m", "role": "user", "content": content}]
        body = {"threadId": "t", "runId": f"r{number}", "messages": messages}
        statuses.append(requester.send("POST", "/agui/site", json=body).status_code)
    assert statuses == [200, 400]
    assert any(isinstance(block, ImageBlock) for block in stage.driver.requests[-1].messages[-1].content)


def test_rounds_are_steps_in_their_order(stage: Stage, requester: Requester) -> None:
    call = tool_call_block("list_documents")
    stage.script_replies(reply_with_calls(call), "None.")
    events = Thread(requester).run("Which?")
    steps = [(event["type"], event["stepName"]) for event in events if event["type"].startswith("STEP")]
    assert [name for _, name in steps] == ["round 1", "round 1", "round 2", "round 2"]
    assert all(one[0] != other[0] for one, other in pairwise(steps))


def test_results_that_no_call_of_the_front_end_waits_for_are_refused_by_name(
    stage: Stage, requester: Requester
) -> None:
    """A result of a call that nobody made, of the service's own tool, and of a thread of somebody else."""
    bakery = Bakery(stage)
    locate, bake = tool_call_block("locate"), tool_call_block("bake", loaves=3)
    stage.script_replies(reply_with_calls(locate, bake))
    thread = Thread(requester)
    thread.run("Where? Then bake.", tools=[LOCATE])
    stranger = Thread(Requester(make_tenant(stage.resources, "rival")))
    for one, call_id in ((thread, "call-x"), (thread, bake.tool_call_id), (stranger, locate.tool_call_id)):
        one.messages, before = [*thread.messages], [*one.messages]
        one.answer(call_id, '{"loaves": 100}')
        response = one.post(tools=[LOCATE])
        assert response.status_code == 400, (call_id, response.text)
        assert call_id in response.text
        one.messages = before
    assert not bakery.oven.baked
    assert len(stage.driver.requests) == 1
