"""Rendering of events as NDJSON lines."""

import json
from typing import Any, get_args

import pytest

from fermata.domain.dialect import Dialect
from fermata.domain.events import (
    EVENT_CLASSES,
    CancelledEvent,
    DoneEvent,
    Event,
    HeldEvent,
    ReasoningEvent,
    RequestFailedEvent,
    RequestStartedEvent,
    RoundRetractedEvent,
    RoundStartedEvent,
    TextEvent,
    ToolCallEvent,
    ToolRequestEvent,
    ToolStartedEvent,
    UsageEvent,
    WarningEvent,
)
from fermata.wire.renderers.ndjson import HEARTBEAT_LINE, render_event
from tests.unit.wire.event_samples import EVENT_SAMPLES, REPORT


def render(event: Event, dialect: Dialect = "fermata") -> dict[str, Any]:
    line: dict[str, Any] = json.loads(render_event(7, event, dialect))
    return line


def test_there_is_a_sample_of_every_event_that_leaves_the_log() -> None:
    assert {type(event) for event in EVENT_SAMPLES} == {model for model in EVENT_CLASSES.values() if model.visible_to}


@pytest.mark.parametrize("event", EVENT_SAMPLES, ids=lambda event: event.type)
def test_an_event_is_one_line_with_its_number_and_without_nulls(event: Event) -> None:
    line = render_event(7, event, "fermata")
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    members = json.loads(line)
    assert members["seq"] == 7
    assert members["type"] == event.type
    assert [name for name, value in members.items() if value is None] in ([], ["input"], ["data"])


@pytest.mark.parametrize("dialect", get_args(Dialect))
@pytest.mark.parametrize(
    "event",
    [
        RoundStartedEvent(round=1, epoch="1", owner="me"),
        RequestStartedEvent(),
        RequestFailedEvent(code="provider_overloaded"),
        ToolStartedEvent(effect_key="e"),
    ],
    ids=lambda e: e.type,
)
def test_internal_events_are_never_rendered(event: Event, dialect: Dialect) -> None:
    assert render_event(1, event, dialect) == b""


def test_a_tools_input_is_written_when_it_is_null_and_keeps_its_own_nulls() -> None:
    request = ToolRequestEvent(
        request_id="r", tool_call_id="c", tool_name="t", input=None, effect_key="e", deadline="2030-01-01"
    )
    assert render(request)["input"] is None
    assert render(ToolCallEvent(tool_call_id="c", tool_name="t", input={"a": None}))["input"] == {"a": None}


def test_any_text_survives_the_line() -> None:
    text = "line\nbreak \u2028 caf\u00e9 \ud800"
    assert render(TextEvent(text=text))["text"] == text


def test_a_usage_line_always_has_its_cost() -> None:
    assert render(UsageEvent(prompt_tokens=1, completion_tokens=2, cost_usd=0))["costUsd"] == 0


def test_a_tool_has_the_name_that_the_client_knows() -> None:
    call = ToolCallEvent(tool_call_id="c", tool_name="insertHtml")
    line = render_event(7, call, "instatic", lambda name: f"site_{name}")
    assert json.loads(line)["toolName"] == "site_insertHtml"


def test_instatic_clients_receive_a_cancelled_turn_as_done() -> None:
    assert render(CancelledEvent(), "instatic") == {"type": "done", "seq": 7}
    assert render(CancelledEvent()) == {"type": "cancelled", "seq": 7}


@pytest.mark.parametrize(
    "event",
    [ReasoningEvent(text="hm"), RoundRetractedEvent(round=1), HeldEvent(until="2030-01-01", retry_after=5)],
    ids=lambda event: event.type,
)
def test_instatic_clients_do_not_receive_events_that_they_do_not_know(event: Event) -> None:
    assert render_event(1, event, "instatic") == b""
    assert render_event(1, event, "fermata") != b""


def test_instatic_clients_receive_a_warning_as_a_paragraph_of_text() -> None:
    text = {"type": "text", "text": "\n\nIt was cut.\n\n", "seq": 7}
    assert render(WarningEvent(message="It was cut."), "instatic") == text
    assert render(WarningEvent(message="It was cut.")) == {"type": "warning", "message": "It was cut.", "seq": 7}


def test_a_heartbeat_is_a_blank_line() -> None:
    assert HEARTBEAT_LINE == b"\n"


def test_an_instatic_reader_of_an_undo_that_another_prompt_ended_gets_its_report() -> None:
    event = CancelledEvent(reason="Another prompt has ended it.", report=REPORT)
    told = render(event, "instatic")
    assert (told["type"], told["code"], told["message"]) == ("error", "superseded", "Another prompt has ended it.")
    assert told["report"] == render(DoneEvent(report=REPORT), "instatic")["report"]
