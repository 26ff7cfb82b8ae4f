"""The frames of the planner's stream: golden bytes, every resumption, and which frames are frames."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from fermata.domain.events import (
    BridgeReadyEvent,
    CancelledEvent,
    DoneEvent,
    EditPlanEvent,
    ErrorEvent,
    Event,
    ReasoningEvent,
    RoundRetractedEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    UsageEvent,
)
from fermata.wire.bodies.planner_frames import PLANNER_FRAME_COUNT, PLANNER_FRAMES
from fermata.wire.renderers.planner_result import UNCLEAR_SUGGESTIONS
from fermata.wire.renderers.planner_sse import PlannerJsonRenderer, PlannerSseRenderer

HEADING = {"op": "update_props", "pageSlug": "/", "blockId": "b", "patch": {"heading": "New"}}
APPLIED = {
    "status": "applied",
    "intent": "edit_plan",
    "summary": "Done.",
    "changes": ["Heading"],
    "ops": [HEADING],
    "outcomes": [{"index": 1, "op": HEADING, "focusBlockId": "b", "updatedSlug": "/"}],
    "previewVersion": 2,
}
REFUSED = {"status": "validation_error", "summary": "ops[1]: no", "appliedCount": 1, "errorCode": "not_found"}
CALL = ToolCallEvent(
    tool_call_id="c",
    tool_name="submit_edit_plan",
    input={"intent": "edit_plan", "summary_for_user": "Done.", "ops": [HEADING]},
)
USAGE = UsageEvent(prompt_tokens=1, completion_tokens=1, cost_usd=0.0)
TURN: tuple[Event, ...] = (
    BridgeReadyEvent(bridge_id="t"),
    ReasoningEvent(text="Let me see"),
    TextEvent(text="I look at it."),
    CALL,
    EditPlanEvent(outcome=APPLIED, is_final=True),
    ToolResultEvent(tool_call_id="c", tool_name="submit_edit_plan", ok=True),
    TextEvent(text="Done."),
    USAGE,
    DoneEvent(),
)
GOLDEN = b"""\
data: {"type":"status","message":"Planning your update\xe2\x80\xa6","_seq":1000}

data: {"type":"thinking_start","_seq":2000}

data: {"type":"thinking_token","text":"Let me see","_seq":2001}

data: {"type":"thinking_end","_seq":3000}

data: {"type":"token","text":"I look at it.","_seq":3001}

data: {"type":"plan_meta","intent":"edit_plan","summary":"Done.","estimatedOps":1,"_seq":4000}

data: {"type":"op_candidate","index":1,"op":{"op":"update_props","pageSlug":"/","blockId":"b",\
"patch":{"heading":"New"}},"_seq":4001}

data: {"type":"op_applied","index":1,"total":1,"op":{"op":"update_props","pageSlug":"/","blockId":"b",\
"patch":{"heading":"New"}},"previewVersion":2,"focusBlockId":"b","updatedSlug":"/","_seq":5000}

data: {"type":"changelog_entry","entry":"Heading","_seq":5001}

data: {"type":"summary_token","text":"Done.","_seq":7000}

data: {"type":"final","result":{"status":"applied","summary":"Done.","changes":["Heading"],"mentionedSlugs":["/"],\
"suggestions":[],"previewVersion":2,"focusBlockId":"b","updatedSlug":"/","undoSlug":"/","plannerSource":"llm",\
"modelUsed":"model-1"},"_seq":9000}

"""


def render(events: tuple[Event, ...], after: int = 0) -> bytes:
    renderer = PlannerSseRenderer("model-1", after, 0)
    return b"".join(renderer.render(number, event) for number, event in enumerate(events, 1))


def read_frames(stream: bytes) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("data: ")) for line in stream.decode().split("\n\n") if line]


def list_types(events: tuple[Event, ...]) -> list[str]:
    return [frame["type"] for frame in read_frames(render(events))]


def test_a_turn_has_these_bytes() -> None:
    assert render(TURN) == GOLDEN


def test_a_reader_that_returns_gets_exactly_what_it_has_not_seen() -> None:
    frames = read_frames(GOLDEN)
    for frame in frames:
        rest = read_frames(render(TURN, frame["_seq"]))
        assert rest == [one for one in frames if one["_seq"] > frame["_seq"]]


def test_every_frame_is_one_of_the_nineteen() -> None:
    assert PLANNER_FRAME_COUNT == 19
    for frame in read_frames(GOLDEN):
        assert PLANNER_FRAMES.validate_python(frame).to_wire()["type"] == frame["type"]


@pytest.mark.parametrize(
    ("frame", "is_valid"),
    [
        ({"type": "status", "message": "x"}, True),
        ({"type": "status"}, False),
        ({"type": "op_applied", "index": 1, "total": 1, "previewVersion": 42, "focusBlockId": None}, True),
        ({"type": "heartbeat", "stage": "planning", "label": "P", "elapsedMs": 1}, True),
        ({"type": "tool_error", "message": "x"}, False),
        ({"type": "field_draft", "blockId": "b", "editablePath": "title", "value": "x"}, True),
        ({"type": "image_progress"}, True),
        ({"type": "canceled"}, True),
        ({"type": "error"}, True),
        ({"type": "final"}, False),
    ],
)
def test_which_frames_are_valid(frame: dict[str, Any], is_valid: bool) -> None:
    if is_valid:
        assert PLANNER_FRAMES.validate_python(frame)
    else:
        with pytest.raises(ValidationError):
            PLANNER_FRAMES.validate_python(frame)


def test_a_plan_that_failed_in_the_middle_is_rolled_back_and_corrected() -> None:
    events = (CALL, EditPlanEvent(outcome=REFUSED, is_final=False), CALL, EditPlanEvent(outcome=APPLIED, is_final=True))
    assert list_types(events)[2:6] == ["rollback_started", "rollback_done", "status", "plan_meta"]


def test_a_plan_that_is_refused_at_last_is_an_error_with_its_result() -> None:
    frames = read_frames(render((CALL, EditPlanEvent(outcome=REFUSED, is_final=True), DoneEvent())))
    assert (frames[-1]["type"], frames[-1]["code"]) == ("error", 422)
    assert frames[-1]["result"]["errorCode"] == "not_found"


def test_a_plan_that_waits_has_its_id_and_reasons() -> None:
    reasons = [{"kind": "remove_page", "message": "Delete page /a with 2 blocks."}]
    waiting = {"status": "plan_ready", "summary": "S", "pendingPlanId": "p1", "destructiveReasons": reasons}
    frames = read_frames(render((EditPlanEvent(outcome=waiting, is_final=True), DoneEvent())))
    assert frames[-1]["result"]["pendingPlanId"] == "p1"
    assert frames[-1]["result"]["destructiveReasons"] == ["Delete page /a with 2 blocks."]


def test_a_text_without_a_plan_is_a_question_and_a_short_one_is_replaced() -> None:
    question = "Which of the two headings do you mean?"
    asked = read_frames(render((TextEvent(text=question), DoneEvent())))[-1]["result"]
    assert (asked["status"], asked["summary"], asked["suggestions"]) == ("needs_clarification", question, [])
    replaced = read_frames(render((TextEvent(text="Hm."), DoneEvent())))[-1]["result"]
    assert replaced["suggestions"] == list(UNCLEAR_SUGGESTIONS)


def test_a_turn_that_fails_or_is_cancelled_says_so() -> None:
    assert list_types((ErrorEvent(message="No."),)) == ["error"]
    assert list_types((CancelledEvent(),)) == ["canceled"]
    assert list_types((TextEvent(text="a"), RoundRetractedEvent(round=1))) == ["token", "status"]


def test_heartbeats_stand_between_the_frames_of_events() -> None:
    renderer = PlannerSseRenderer("model-1", 0, 5_000)
    seqs = [read_frames(renderer.render(1, TURN[0]))[0]["_seq"]]
    beats = [read_frames(renderer.render_heartbeat(6_000))[0] for _ in range(2000)]
    assert (beats[0]["stage"], beats[0]["elapsedMs"]) == ("planning", 1000)
    seqs += [beat["_seq"] for beat in beats]
    seqs += [frame["_seq"] for frame in read_frames(renderer.render(2, TURN[1]))]
    assert seqs == sorted(seqs)


def test_the_result_alone_is_one_object_behind_blanks() -> None:
    renderer = PlannerJsonRenderer("model-1", {"modelKey": "fast"})
    body = b"".join(renderer.render(number, event) for number, event in enumerate(TURN, 1))
    assert json.loads(body) == read_frames(GOLDEN)[-1]["result"] | {"modelKey": "fast"}
