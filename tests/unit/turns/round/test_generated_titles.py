"""Titles that a model makes beside the first answer of a conversation."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from fermata.domain.blocks import TextBlock
from fermata.domain.events import DataPartEvent
from fermata.domain.model_io import FinishReason, ModelRequest, ModelResponse, StreamPart, TokenUsage
from fermata.turns.round import title_request
from fermata.turns.round.title_request import clean_title
from tests.agent_definitions import make_definition, push_definitions, start_agent_turn
from tests.unit.turns.stage import ADA, Stage, make_provider_error, reply_with_text


@dataclass
class TitleDriver:
    """Answers requests for titles, which come from a thread of their own."""

    answer: Any = '"Bread and butter."'
    requests: list[ModelRequest] = field(default_factory=list)

    def stream(self, request: ModelRequest, _connection: Any, _endpoint: Any) -> Iterator[StreamPart]:
        self.requests.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        blocks = (TextBlock(text=self.answer),)
        yield ModelResponse(blocks=blocks, stop=FinishReason.END, tokens=TokenUsage(prompt=7, completion=3))


@pytest.fixture
def titles(monkeypatch: pytest.MonkeyPatch) -> TitleDriver:
    driver = TitleDriver()
    monkeypatch.setattr(title_request, "get_provider", lambda _provider: driver)
    return driver


def start(stage: Stage, *, generate_title: bool = True) -> None:
    definition = make_definition(credential=stage.credential.id, properties={"generateTitle": generate_title})
    push_definitions(stage.resources, ADA, definition)
    start_agent_turn(stage, "helper", "How do I bake bread?")


def shown_titles(stage: Stage) -> list[Any]:
    return [event.data for event in stage.events() if isinstance(event, DataPartEvent)]


def test_the_first_turn_of_a_conversation_gives_it_a_title(stage: Stage, titles: TitleDriver) -> None:
    start(stage)
    stage.script_replies("Mix flour and water.")
    stage.run_workflow()
    assert shown_titles(stage) == [{"title": "Bread and butter"}]
    assert stage.load_conversation().title == "Bread and butter"
    [request] = titles.requests
    assert (request.max_tokens, request.tools) == (20, ())
    rows = [row for row in stage.ledger_rows() if "prompt" in row]
    assert sorted((row["prompt"], row["completion"]) for row in rows) == [(7, 3), (10, 5)]
    assert stage.load_conversation().context_tokens == 10


def test_a_later_turn_makes_none(stage: Stage, titles: TitleDriver) -> None:
    start(stage)
    stage.script_replies("Mix flour and water.")
    stage.run_workflow()
    start_agent_turn(stage, "helper", "And then?", conversation=stage.conversation)
    stage.script_replies("Bake it.")
    stage.run_workflow()
    assert len(titles.requests) == 1
    assert shown_titles(stage) == []


def test_an_agent_that_wants_none_asks_for_none(stage: Stage, titles: TitleDriver) -> None:
    start(stage, generate_title=False)
    stage.script_replies("Mix flour and water.")
    stage.run_workflow()
    assert titles.requests == []


@pytest.mark.parametrize("answer", [make_provider_error("provider_overloaded"), "  \n"])
def test_a_title_that_fails_is_a_warning(stage: Stage, titles: TitleDriver, answer: Any) -> None:
    titles.answer = answer
    start(stage)
    stage.script_replies("Mix flour and water.")
    stage.run_workflow()
    assert [event.message for event in stage.events() if event.type == "warning"] == [
        "The conversation got no title of its own."
    ]
    assert stage.terminal_events()[-1].type == "done"
    assert stage.load_conversation().title == "How do I bake bread?"


def test_a_cancelled_turn_still_has_a_ledger_row_for_its_title(stage: Stage, titles: TitleDriver) -> None:
    start(stage)
    stage.script_replies([stage.cancel_turn, *reply_with_text("Mix.")])
    stage.run_workflow()
    assert [event.type for event in stage.terminal_events()] == ["cancelled"]
    assert len([row for row in stage.ledger_rows() if row["sk"].endswith("t90")]) == 1


@pytest.mark.parametrize(
    ("text", "title"), [("**Title: A day**", "A day"), ("„Brot\nbacken“", "Brot backen"), ("x" * 200, "x" * 80)]
)
def test_titles_are_cleaned(text: str, title: str) -> None:
    assert clean_title(text)[:80] == title
