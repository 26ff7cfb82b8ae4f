"""Side effects (design §4): every call has one key, and one that may have acted is never run again."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from fermata.tools.tool import NoInput, ToolContext
from fermata.turns.turn import Turn
from fermata.words.events import ToolResult, ToolStarted
from tests.unit.turns import truth
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.machine import Machine
from tests.unit.turns.scenes import server_tool
from tests.unit.turns.stage import OK, PATIENCE, HandLine, Stage, call, calls

TRANSACT = "dynamodb.TransactWriteItems"


class Oven:
    """Something outside that counts what was done to it."""

    def __init__(self) -> None:
        self.baked = 0

    def bake(self) -> dict[str, int]:
        self.baked += 1
        return {"loaves": self.baked}


@pytest.fixture
def oven() -> Oven:
    return Oven()


@pytest.fixture
def kitchen(stage: Stage, oven: Oven) -> Stage:
    """A stage with a tool that must not act twice and one that may."""
    stage.learn(server_tool("bake", oven.bake), server_tool("count", oven.bake, idempotent=True))
    return stage


def test_a_tool_with_side_effects_is_marked_as_started_before_it_runs(kitchen: Stage, oven: Oven) -> None:
    kitchen.start()
    kitchen.says(calls(call("bake"), call("bake")), "Done.")
    assert kitchen.run() == "finished"
    turn: Turn = kitchen.turn
    assert [event.type for event in kitchen.events() if isinstance(event, ToolStarted | ToolResult)] == [
        "toolStarted",
        "toolResult",
        "toolStarted",
        "toolResult",
    ]
    assert [event.effect_key for event in kitchen.events() if isinstance(event, ToolStarted)] == [
        f"{turn.id}/1/0",
        f"{turn.id}/1/1",
    ]
    assert oven.baked == 2
    truth.check(kitchen)


def test_an_idempotent_tool_needs_no_mark(kitchen: Stage) -> None:
    kitchen.start()
    kitchen.says(calls(call("count"), call("count")), "Done.")
    assert kitchen.run() == "finished"
    assert "toolStarted" not in kitchen.types()
    assert kitchen.types().count("toolResult") == 2
    truth.check(kitchen)


def test_a_tool_and_the_browser_are_given_the_calls_key(stage: Stage) -> None:
    keys: list[str] = []

    def look(_given: NoInput, context: ToolContext) -> object:
        keys.append(context.effect_key)
        return {}

    stage.learn(replace(server_tool("look", dict), run=look))
    stage.start()
    stage.says(calls(call("look"), call("deleteNode", nodeId="n")))
    stage.run()
    assert keys == [f"{stage.turn.id}/1/0"]
    assert stage.requests()[0].effect_key == f"{stage.turn.id}/1/1"


def test_a_call_started_by_a_function_that_died_is_never_run_again(stage: Stage) -> None:
    acts: list[str] = []

    def act() -> object:
        stage.seam.die(TRANSACT, when="before", contains="toolResult")
        acts.append("acted")
        return {}

    stage.learn(server_tool("bake", act))
    stage.start()
    stage.says(calls(call("bake")), "I look first.")
    machine = Machine(stage)
    assert machine.run() == "Finished"
    assert acts == ["acted"]
    [result] = stage.read_by_the_model()
    assert not result.ok
    assert "outcome is unknown" in str(result.error)
    truth.check(stage)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_function_that_dies_around_the_mark_never_runs_the_tool_twice(kitchen: Stage, oven: Oven, when: str) -> None:
    kitchen.start()
    kitchen.says(calls(call("bake")), "Done.")
    kitchen.seam.die(TRANSACT, when=when, contains="toolStarted")
    assert Machine(kitchen).run() == "Finished"
    assert oven.baked == (1 if when == "before" else 0)
    assert kitchen.read_by_the_model()[0].ok is (when == "before")
    truth.check(kitchen)


def test_a_mark_whose_answer_was_lost_is_our_own(kitchen: Stage, oven: Oven) -> None:
    kitchen.start()
    kitchen.says(calls(call("bake")), "Done.")
    kitchen.seam.lose(TRANSACT, contains="toolStarted")
    assert kitchen.run() == "finished"
    assert oven.baked == 1
    truth.check(kitchen)


def test_a_result_whose_answer_was_lost_is_told_once(kitchen: Stage, oven: Oven) -> None:
    kitchen.start()
    kitchen.says(calls(call("bake")), "Done.")
    kitchen.seam.lose(TRANSACT, contains="toolResult")
    assert kitchen.run() == "finished"
    assert oven.baked == 1
    assert kitchen.read_by_the_model()[0].ok
    truth.check(kitchen)


def test_what_runs_while_a_newer_attempt_takes_over_is_not_run_by_it(stage: Stage) -> None:
    acts: list[str] = []

    def act() -> object:
        acts.append("acted")
        if len(acts) == 1:
            stage.advance(newer, HandLine())
        return {}

    stage.learn(server_tool("bake", act))
    stage.start()
    older, newer = stage.wake(), stage.wake()
    stage.says(calls(call("bake")), "I look first.")
    stage.advance(older)
    assert acts == ["acted"]
    assert "outcome is unknown" in str(stage.read_by_the_model()[0].error)
    assert older.token in stage.workflow.open
    truth.check(stage)


def test_no_tool_is_run_after_the_turn_was_cancelled(stage: Stage) -> None:
    acts: list[str] = []

    def act() -> object:
        acts.append("acted")
        stage.cancel()
        return {}

    stage.learn(server_tool("bake", act))
    stage.start()
    stage.says(calls(call("bake"), call("bake")))
    stage.run()
    assert acts == ["acted"]
    assert stage.types()[-4:] == ["toolResult", "toolResult", "usage", "cancelled"]
    truth.check(stage)


def test_a_healed_call_of_the_browser_says_that_its_outcome_is_unknown(stage: Stage) -> None:
    stage.start()
    stage.says(calls(call("deleteNode", nodeId="n")))
    stage.run()
    stage.cancel()
    stage.start("And now?")
    stage.says("I look first.")
    stage.run()
    [result] = stage.read_by_the_model()
    assert "outcome is unknown" in str(result.error)


def test_a_tool_that_works_longer_than_the_alarm_clock_keeps_its_token_alive(staged: MakeStage) -> None:
    stage = staged(flush_ms=10)
    acts: list[str] = []

    def slow() -> object:
        stage.pass_time(31)
        assert stage.workflow.beaten.wait(PATIENCE)
        acts.append("acted")
        return {}

    stage.learn(server_tool("bake", slow))
    stage.start()
    stage.says(calls(call("bake")), "Done.")
    wake = stage.advance()
    assert acts == ["acted"]
    assert wake.token in stage.workflow.beats
    truth.check(stage)


def test_a_cancel_while_a_tool_works_is_noticed_before_the_next_one_runs(staged: MakeStage) -> None:
    stage = staged(flush_ms=10)
    acts: list[str] = []
    peeked = threading.Event()

    def slow() -> object:
        acts.append("acted")
        stage.cancel()
        stage.seam.meanwhile("dynamodb.GetItem", peeked.set, contains="e#")
        stage.pass_time(1)
        assert peeked.wait(PATIENCE)
        return {}

    stage.learn(server_tool("count", slow, idempotent=True))
    stage.start()
    stage.says(calls(call("count"), call("count"), call("count")))
    stage.advance()
    assert acts == ["acted"]
    truth.check(stage)


def test_tools_are_not_begun_without_the_time_to_finish_them(kitchen: Stage, oven: Oven) -> None:
    left = iter([900.0, 100.0, 100.0, 100.0, 900.0, 900.0, 900.0, 900.0, 900.0])
    kitchen.start()
    kitchen.says(calls(call("count"), call("count")), "Done.")
    wake = kitchen.wake()
    kitchen.advance(replace(wake, remaining=lambda: next(left)))
    assert oven.baked == 0
    assert kitchen.workflow.outputs[wake.token]["next"] == "round"
    kitchen.run()
    assert oven.baked == 2
    truth.check(kitchen)


def test_a_batch_of_tools_ends_where_the_time_does(kitchen: Stage, oven: Oven) -> None:
    kitchen.start()
    kitchen.says(calls(call("deleteNode", nodeId="n"), call("count"), call("count")), "Done.")
    kitchen.run()
    kitchen.answer(OK)
    kitchen.advance(seconds=100)
    assert oven.baked == 1
    assert kitchen.workflow.sent[-1][1] == "round"
    kitchen.run()
    assert oven.baked == 2
    truth.check(kitchen)


def test_a_fresh_function_runs_a_tool_however_short_its_time_is(kitchen: Stage, oven: Oven) -> None:
    """Or it would hand the call on to the next one for ever."""
    kitchen.start()
    kitchen.says(calls(call("deleteNode", nodeId="n"), call("bake"), call("bake")), "Done.")
    kitchen.run()
    kitchen.answer(OK)
    visits = 0
    output: dict[str, Any] = {"next": "round", "hint": None}
    while output["next"] == "round" and visits < 10:
        wake = kitchen.advance(seconds=30, hint=output["hint"])
        output = kitchen.workflow.outputs[wake.token]
        visits += 1
    assert output["next"] == "finish"
    assert oven.baked == 2
    truth.check(kitchen)
