"""A new event needs its class alone: the log reads it, the document describes it, renderers write it."""

import json
from dataclasses import replace
from typing import Literal

import pytest
from pydantic import ValidationError

from fermata.domain import events
from fermata.domain.events import Event, parse_events
from fermata.wire.openapi.schemas import stream_event_schemas
from fermata.wire.renderers.ndjson import render_event
from fermata_client.terminal.turn_printer import TurnPrinter
from fermata_client.turns.event_reducer import TurnView, fold_event
from tests.unit.wire.event_samples import make_event_sample


@pytest.fixture
def toy_event(monkeypatch: pytest.MonkeyPatch) -> type[Event]:
    """An event class that is registered during one test only."""
    monkeypatch.setattr(events, "EVENT_CLASSES", registered := dict(events.EVENT_CLASSES))
    monkeypatch.setattr("fermata.wire.openapi.schemas.EVENT_CLASSES", registered)

    class ToyDiceRolledEvent(Event):
        """Someone rolled the dice."""

        visible_to = ("fermata",)
        members_kept_when_null = ("note",)

        type: Literal["toyDiceRolled"] = "toyDiceRolled"
        dice_count: int
        note: str | None = None

    return ToyDiceRolledEvent


def test_the_log_reads_a_new_event(toy_event: type[Event]) -> None:
    (event,) = parse_events([{"type": "toyDiceRolled", "diceCount": 2}])
    assert event == toy_event.from_wire({"type": "toyDiceRolled", "diceCount": 2})
    assert type(event) is toy_event


def test_a_renderer_writes_a_new_event_for_the_dialects_that_may_see_it(toy_event: type[Event]) -> None:
    (event,) = parse_events([{"type": "toyDiceRolled", "diceCount": 2}])
    line = json.loads(render_event(7, event, "fermata"))
    assert line == {"type": "toyDiceRolled", "diceCount": 2, "note": None, "seq": 7}
    assert render_event(7, event, "instatic") == b""


def test_a_sample_of_a_new_event_is_made_from_its_class(toy_event: type[Event]) -> None:
    assert make_event_sample(toy_event) == toy_event.from_wire({"type": "toyDiceRolled", "diceCount": 1})


def test_the_document_describes_a_new_event(toy_event: type[Event]) -> None:
    schemas = stream_event_schemas()
    assert schemas["StreamLine"]["discriminator"]["mapping"]["toyDiceRolled"].endswith("/ToyDiceRolledEvent")
    assert schemas["ToyDiceRolledEvent"]["description"] == "Someone rolled the dice."
    assert schemas["ToyDiceRolledEvent"]["required"] == ["type", "diceCount", "seq", "note"]


def test_the_client_ignores_a_new_event(toy_event: type[Event], capsys: pytest.CaptureFixture[str]) -> None:
    line = json.loads(render_event(7, toy_event.from_wire({"type": "toyDiceRolled", "diceCount": 2}), "fermata"))
    before = TurnView()
    after = fold_event(before, line)
    TurnPrinter()(line, after)
    assert after == replace(before, seq=7)
    assert capsys.readouterr().out == ""


def test_an_event_that_no_class_describes_is_refused() -> None:
    with pytest.raises(ValidationError):
        parse_events([{"type": "toyDiceRolled", "diceCount": 2}])


def test_two_events_cannot_have_one_type(toy_event: type[Event]) -> None:
    with pytest.raises(TypeError, match="two events of type 'toyDiceRolled'"):

        class AnotherEvent(Event):
            type: Literal["toyDiceRolled"] = "toyDiceRolled"
