import json
from typing import Any, get_args

import pytest

from fermata.domain.dialect import Dialect
from fermata.domain.events import (
    EVENT_CLASSES,
    BridgeReadyEvent,
    CancelledEvent,
    ContextEvent,
    DoneEvent,
    ErrorEvent,
    Event,
    HeldEvent,
    ReasoningEvent,
    RoundRetractedEvent,
    RoundStartedEvent,
    TextEvent,
    ToolCallEvent,
    ToolRequestEvent,
    ToolResultEvent,
    ToolStartedEvent,
    UsageEvent,
    WarningEvent,
)
from fermata.wire.renderers.ndjson import HEARTBEAT_LINE, render_event

SAMPLES: tuple[Event, ...] = (
    BridgeReadyEvent(bridge_id="b"),
    TextEvent(text="line\nbreak \u2028 caf\u00e9 \ud800"),
    ReasoningEvent(text="hm"),
    ToolCallEvent(tool_call_id="c", tool_name="t", input={"a": None}),
    ToolRequestEvent(
        request_id="r", tool_call_id="c", tool_name="t", input=None, effect_key="e", deadline="2030-01-01"
    ),
    ToolResultEvent(tool_call_id="c", tool_name="t", ok=True),
    ContextEvent(prompt_tokens=1, context_tokens=2),
    UsageEvent(prompt_tokens=1, completion_tokens=2, cost_usd=0),
    RoundRetractedEvent(round=1),
    HeldEvent(until="2030-01-01", retry_after=5),
    WarningEvent(message="cut"),
    ErrorEvent(message="no"),
    DoneEvent(),
    CancelledEvent(),
)


def line(event: Event, dialect: Dialect = "fermata") -> dict[str, Any]:
    value: dict[str, Any] = json.loads(render_event(7, event, dialect))
    return value


def test_there_is_a_sample_of_every_event_that_goes_out() -> None:
    assert {type(event) for event in SAMPLES} == {model for model in EVENT_CLASSES.values() if model.visible_to}


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.type)
def test_an_event_is_one_line_with_its_number_and_without_nulls(event: Event) -> None:
    written = render_event(7, event, "fermata")
    assert written.endswith(b"\n")
    assert written.count(b"\n") == 1
    members = json.loads(written)
    assert members["seq"] == 7
    assert members["type"] == event.type
    assert [name for name, value in members.items() if value is None] in ([], ["input"])


@pytest.mark.parametrize("dialect", get_args(Dialect))
@pytest.mark.parametrize(
    "event",
    [RoundStartedEvent(round=1, epoch="1", owner="me"), ToolStartedEvent(effect_key="e")],
    ids=lambda event: event.type,
)
def test_internal_events_never_go_out(event: Event, dialect: Dialect) -> None:
    assert render_event(1, event, dialect) == b""


def test_a_tools_input_is_there_even_when_it_is_null_and_its_own_nulls_stay() -> None:
    assert line(SAMPLES[4])["input"] is None
    assert line(SAMPLES[3])["input"] == {"a": None}


def test_any_text_survives_the_line() -> None:
    assert line(SAMPLES[1])["text"] == "line\nbreak \u2028 caf\u00e9 \ud800"


def test_a_usage_line_always_has_its_cost() -> None:
    assert line(SAMPLES[7])["costUsd"] == 0


def test_instatic_clients_see_a_cancelled_turn_as_done() -> None:
    assert line(CancelledEvent(), "instatic") == {"type": "done", "seq": 7}
    assert line(CancelledEvent()) == {"type": "cancelled", "seq": 7}


@pytest.mark.parametrize("event", [SAMPLES[2], SAMPLES[8], SAMPLES[9]], ids=lambda event: event.type)
def test_instatic_clients_are_not_sent_what_they_do_not_know(event: Event) -> None:
    assert render_event(1, event, "instatic") == b""
    assert render_event(1, event, "fermata") != b""


def test_instatic_clients_read_a_warning_in_a_paragraph_of_its_own() -> None:
    assert line(WarningEvent(message="It was cut."), "instatic") == {
        "type": "text",
        "text": "\n\nIt was cut.\n\n",
        "seq": 7,
    }
    assert line(WarningEvent(message="It was cut.")) == {"type": "warning", "message": "It was cut.", "seq": 7}


def test_a_heartbeat_is_a_blank_line() -> None:
    assert HEARTBEAT_LINE == b"\n"
