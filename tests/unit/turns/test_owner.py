"""Owner (design §4): a round has one writer; whoever is no longer it stops, and that is no error."""

from itertools import pairwise
from typing import Any

import pytest

from fermata.turns.work import epoch
from fermata.words.events import RoundStarted
from fermata.words.model import TextDelta
from tests.unit.turns.stage import OK, HandLine, Stage, call, calls, says

MORNING = "2026-01-01T08:00:"


def owners(stage: Stage) -> list[str]:
    return [event.owner for event in stage.events() if isinstance(event, RoundStarted)]


def test_the_first_append_of_a_round_says_who_works_on_it(stage: Stage) -> None:
    stage.start()
    stage.says("Hello.")
    wake = stage.advance()
    assert stage.entries()[1].events == (RoundStarted(round=1, epoch=wake.epoch, owner=wake.owner),)


@pytest.mark.parametrize(
    ("earlier", "later"),
    list(
        pairwise(
            [
                (1, f"{MORNING}00Z", 0),
                (1, f"{MORNING}00.001Z", 0),
                (1, f"{MORNING}00.02Z", 0),
                (1, f"{MORNING}00.02Z", 1),
                (1, f"{MORNING}00.021999Z", 0),
                (1, f"{MORNING}00.1Z", 2),
                (1, f"{MORNING}01Z", 0),
                (1, "2026-01-01T09:00:02+01:00", 0),
                (2, f"{MORNING}00Z", 0),
                (10, f"{MORNING}00Z", 0),
            ]
        )
    ),
)
def test_epochs_sort_as_the_attempts_came_however_their_instants_are_written(earlier: Any, later: Any) -> None:
    assert epoch(*earlier) < epoch(*later)


def test_one_instant_written_in_two_ways_is_one_epoch() -> None:
    assert epoch(1, f"{MORNING}00Z", 0) == epoch(1, f"{MORNING}00.000Z", 0) == epoch(1, "2026-01-01T09:00:00+01:00", 0)


def test_an_attempt_with_a_lower_epoch_returns_at_once(stage: Stage) -> None:
    stage.start()
    late = stage.wake()
    stage.says(calls(call("deleteNode", nodeId="a")))
    stage.advance()
    before = stage.entries()
    stage.advance(late)
    assert stage.entries() == before
    assert len(stage.driver.asks) == 1
    assert late.token in stage.workflow.open


def test_an_older_attempt_that_comes_while_a_newer_one_asks_takes_nothing_over(stage: Stage) -> None:
    stage.start()
    late = stage.wake()
    stage.says([TextDelta(text="Hel"), lambda: stage.advance(late, HandLine()), *says("lo.")])
    newer = stage.advance()
    assert owners(stage) == [newer.owner]
    assert stage.text() == "Hello."
    assert late.token in stage.workflow.open


def test_a_retry_of_a_state_comes_after_its_first_attempt(stage: Stage) -> None:
    stage.start()
    moment = stage.entered()
    first, retry = stage.wake(entered=moment), stage.wake(entered=moment, retry=1)
    stage.says("Hello.")
    stage.advance(retry)
    stage.advance(first)
    assert owners(stage) == [retry.owner]


def test_a_writer_whose_round_was_taken_over_stops_without_an_error(stage: Stage) -> None:
    stage.start()

    def takes_over() -> None:
        stage.says(calls(call("deleteNode", nodeId="a"), text="Hello."))
        stage.advance(newer, HandLine())

    older, newer = stage.wake(), stage.wake()
    stage.says([TextDelta(text="Hel"), takes_over, *calls(call("deleteNode", nodeId="b"), text="lo.")])
    stage.advance(older)
    assert owners(stage) == [older.owner, newer.owner]
    assert [request.input["nodeId"] for request in stage.requests()] == ["a"]
    assert older.token in stage.workflow.open, "the token is the successor's business"
    assert stage.pause().token == newer.token


def test_the_same_attempt_delivered_twice_leaves_one_writer(stage: Stage) -> None:
    stage.start()
    moment = stage.entered()
    first = stage.wake(entered=moment, owner="one")
    again = stage.wake(entered=moment, owner="two")

    def once_more() -> None:
        stage.says("Hello.")
        stage.advance(again, HandLine())

    stage.says([TextDelta(text="Hel"), once_more, *calls(call("deleteNode", nodeId="b"), text="lo.")])
    stage.advance(first)
    assert owners(stage) == ["one", "two"]
    assert stage.types()[-3:] == ["context", "usage", "done"]
    assert not stage.requests()


def test_a_writer_that_finds_the_turn_ended_lets_its_execution_finish(stage: Stage) -> None:
    stage.start()
    stage.says([TextDelta(text="Hel"), stage.cancel, *calls(call("deleteNode", nodeId="b"), text="lo.")])
    wake = stage.advance()
    assert stage.types()[-2:] == ["usage", "cancelled"]
    assert stage.workflow.outputs[wake.token]["next"] == "finish"


def test_an_old_execution_of_a_turn_that_goes_on_in_a_new_one_just_finishes(stage: Stage) -> None:
    stage.start()
    late = stage.wake(n=1)
    stage.workflow.states[stage.turn.id, 1] = ("FAILED", "States.ServiceRestart")
    stage.recover()
    before = stage.entries()
    stage.advance(late)
    assert stage.workflow.outputs[late.token]["next"] == "finish"
    assert stage.entries() == before


def test_nothing_is_written_after_a_token_was_sent(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    go_on = stage.workflow.go_on

    def watched(*given: Any, **how: Any) -> bool:
        lengths.append(len(stage.entries()))
        return go_on(*given, **how)

    monkeypatch.setattr(stage.workflow, "go_on", watched)
    stage.start()
    stage.says(calls(call("deleteNode", nodeId="a")), "Done.")
    stage.run()
    stage.answer(OK)
    assert lengths == [len(stage.entries())]
    stage.run()
    assert lengths[-1] == len(stage.entries())
