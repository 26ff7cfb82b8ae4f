"""Tools with side effects: every call has one effect key, and a call that may have acted is never run again."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Put
from fermata.conversations.message_store import conversation_partition, message_sort_key
from fermata.domain.events import ToolResultEvent, ToolStartedEvent
from fermata.tools.tool import NoInput, ToolContext
from fermata.turns.turn import Turn
from tests.unit.turns import invariants
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.scenarios import make_server_tool
from tests.unit.turns.stage import (
    MAX_THREAD_WAIT_SECONDS,
    OK,
    RecordingConnection,
    Stage,
    reply_with_calls,
    tool_call_block,
)
from tests.unit.turns.state_machine import StateMachine

TRANSACT = "dynamodb.TransactWriteItems"


class Oven:
    """An external system that counts its calls."""

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
    """A stage with a tool that must not act twice, and an idempotent one."""
    stage.add_tools(make_server_tool("bake", oven.bake), make_server_tool("count", oven.bake, idempotent=True))
    return stage


def test_a_tool_with_side_effects_is_marked_before_it_runs(kitchen: Stage, oven: Oven) -> None:
    kitchen.start_turn()
    kitchen.script_replies(reply_with_calls(tool_call_block("bake"), tool_call_block("bake")), "Done.")
    assert kitchen.run_workflow() == "finished"
    turn: Turn = kitchen.turn
    assert [event.type for event in kitchen.events() if isinstance(event, ToolStartedEvent | ToolResultEvent)] == [
        "toolStarted",
        "toolResult",
        "toolStarted",
        "toolResult",
    ]
    assert [event.effect_key for event in kitchen.events() if isinstance(event, ToolStartedEvent)] == [
        f"{turn.id}/1/0",
        f"{turn.id}/1/1",
    ]
    assert oven.baked == 2
    invariants.check_invariants(kitchen)


def test_an_idempotent_tool_is_not_marked(kitchen: Stage) -> None:
    kitchen.start_turn()
    kitchen.script_replies(reply_with_calls(tool_call_block("count"), tool_call_block("count")), "Done.")
    assert kitchen.run_workflow() == "finished"
    assert "toolStarted" not in kitchen.event_types()
    assert kitchen.event_types().count("toolResult") == 2
    invariants.check_invariants(kitchen)


def test_tool_and_browser_get_the_effect_key(stage: Stage) -> None:
    keys: list[str] = []

    def look(_given: NoInput, context: ToolContext) -> object:
        keys.append(context.effect_key)
        return {}

    stage.add_tools(replace(make_server_tool("look", dict), handler=look))
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("look"), tool_call_block("deleteNode", nodeId="n")))
    stage.run_workflow()
    assert keys == [f"{stage.turn.id}/1/0"]
    assert stage.tool_requests()[0].effect_key == f"{stage.turn.id}/1/1"


def test_a_call_that_a_dead_function_started_is_never_run_again(stage: Stage) -> None:
    acts: list[str] = []

    def act() -> object:
        stage.faults.kill_process(TRANSACT, when="before", contains="toolResult")
        acts.append("acted")
        return {}

    stage.add_tools(make_server_tool("bake", act))
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("bake")), "I look first.")
    machine = StateMachine(stage)
    assert machine.run() == "Finished"
    assert acts == ["acted"]
    [result] = stage.results_sent_to_model()
    assert not result.ok
    assert "outcome is unknown" in str(result.error)
    invariants.check_invariants(stage)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_function_that_dies_around_the_mark_runs_the_tool_once_at_most(kitchen: Stage, oven: Oven, when: str) -> None:
    kitchen.start_turn()
    kitchen.script_replies(reply_with_calls(tool_call_block("bake")), "Done.")
    kitchen.faults.kill_process(TRANSACT, when=when, contains="toolStarted")
    assert StateMachine(kitchen).run() == "Finished"
    assert oven.baked == (1 if when == "before" else 0)
    assert kitchen.results_sent_to_model()[0].ok is (when == "before")
    invariants.check_invariants(kitchen)


def test_a_mark_is_recognized_when_its_response_was_lost(kitchen: Stage, oven: Oven) -> None:
    kitchen.start_turn()
    kitchen.script_replies(reply_with_calls(tool_call_block("bake")), "Done.")
    kitchen.faults.lose_response(TRANSACT, contains="toolStarted")
    assert kitchen.run_workflow() == "finished"
    assert oven.baked == 1
    invariants.check_invariants(kitchen)


def test_a_result_is_streamed_once_when_its_response_was_lost(kitchen: Stage, oven: Oven) -> None:
    kitchen.start_turn()
    kitchen.script_replies(reply_with_calls(tool_call_block("bake")), "Done.")
    kitchen.faults.lose_response(TRANSACT, contains="toolResult")
    assert kitchen.run_workflow() == "finished"
    assert oven.baked == 1
    assert kitchen.results_sent_to_model()[0].ok
    invariants.check_invariants(kitchen)


def test_a_newer_invocation_does_not_run_a_tool_that_still_runs(stage: Stage) -> None:
    acts: list[str] = []

    def act() -> object:
        acts.append("acted")
        if len(acts) == 1:
            stage.advance_turn(newer, RecordingConnection())
        return {}

    stage.add_tools(make_server_tool("bake", act))
    stage.start_turn()
    older, newer = stage.make_invocation(), stage.make_invocation()
    stage.script_replies(reply_with_calls(tool_call_block("bake")), "I look first.")
    stage.advance_turn(older)
    assert acts == ["acted"]
    assert "outcome is unknown" in str(stage.results_sent_to_model()[0].error)
    assert older.token in stage.workflow.open_tokens
    invariants.check_invariants(stage)


def test_no_tool_runs_after_a_cancel(stage: Stage) -> None:
    acts: list[str] = []

    def act() -> object:
        acts.append("acted")
        stage.cancel_turn()
        return {}

    stage.add_tools(make_server_tool("bake", act))
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("bake"), tool_call_block("bake")))
    stage.run_workflow()
    assert acts == ["acted"]
    assert stage.event_types()[-4:] == ["toolResult", "toolResult", "usage", "cancelled"]
    invariants.check_invariants(stage)


def test_the_next_prompt_says_that_an_unanswered_calls_outcome_is_unknown(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="n")))
    stage.run_workflow()
    stage.cancel_turn()
    stage.start_turn("And now?")
    stage.script_replies("I look first.")
    stage.run_workflow()
    [result] = stage.results_sent_to_model()
    assert "outcome is unknown" in str(result.error)


def test_a_long_tool_sends_heartbeats(staged: MakeStage) -> None:
    stage = staged(flush_ms=10)
    acts: list[str] = []

    def slow() -> object:
        stage.pass_time(31)
        assert stage.workflow.heartbeat_sent.wait(MAX_THREAD_WAIT_SECONDS)
        acts.append("acted")
        return {}

    stage.add_tools(make_server_tool("bake", slow))
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("bake")), "Done.")
    invocation = stage.advance_turn()
    assert acts == ["acted"]
    assert invocation.token in stage.workflow.heartbeats
    invariants.check_invariants(stage)


def test_a_cancel_during_a_tool_stops_the_tools_behind_it(staged: MakeStage) -> None:
    stage = staged(flush_ms=10)
    acts: list[str] = []
    peeked = threading.Event()

    def slow() -> object:
        acts.append("acted")
        stage.cancel_turn()
        stage.faults.interrupt("dynamodb.GetItem", peeked.set, contains="e#")
        stage.pass_time(1)
        assert peeked.wait(MAX_THREAD_WAIT_SECONDS)
        return {}

    stage.add_tools(make_server_tool("count", slow, idempotent=True))
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("count"), tool_call_block("count"), tool_call_block("count")))
    stage.advance_turn()
    assert acts == ["acted"]
    invariants.check_invariants(stage)


def test_tools_begin_only_with_enough_time_left(kitchen: Stage, oven: Oven) -> None:
    left = iter([900.0, 100.0, 100.0, 100.0, 900.0, 900.0, 900.0, 900.0, 900.0])
    kitchen.start_turn()
    kitchen.script_replies(reply_with_calls(tool_call_block("count"), tool_call_block("count")), "Done.")
    invocation = kitchen.make_invocation()
    kitchen.advance_turn(replace(invocation, remaining_seconds=lambda: next(left)))
    assert oven.baked == 0
    assert kitchen.workflow.outputs[invocation.token]["next"] == "round"
    kitchen.run_workflow()
    assert oven.baked == 2
    invariants.check_invariants(kitchen)


def test_a_batch_of_tools_stops_when_too_little_time_is_left(kitchen: Stage, oven: Oven) -> None:
    kitchen.start_turn()
    kitchen.script_replies(
        reply_with_calls(tool_call_block("deleteNode", nodeId="n"), tool_call_block("count"), tool_call_block("count")),
        "Done.",
    )
    kitchen.run_workflow()
    kitchen.answer_request(OK)
    kitchen.advance_turn(seconds=100)
    assert oven.baked == 1
    assert kitchen.workflow.sent[-1][1] == "round"
    kitchen.run_workflow()
    assert oven.baked == 2
    invariants.check_invariants(kitchen)


def test_an_unused_invocation_runs_a_tool_however_little_time_it_has(kitchen: Stage, oven: Oven) -> None:
    """Otherwise every invocation would leave the call to the next one."""
    kitchen.start_turn()
    kitchen.script_replies(
        reply_with_calls(tool_call_block("deleteNode", nodeId="n"), tool_call_block("bake"), tool_call_block("bake")),
        "Done.",
    )
    kitchen.run_workflow()
    kitchen.answer_request(OK)
    visits = 0
    output: dict[str, Any] = {"next": "round", "hint": None}
    while output["next"] == "round" and visits < 10:
        invocation = kitchen.advance_turn(seconds=30, hint=output["hint"])
        output = kitchen.workflow.outputs[invocation.token]
        visits += 1
    assert output["next"] == "finish"
    assert oven.baked == 2
    invariants.check_invariants(kitchen)


def test_a_call_whose_result_cannot_be_stored_is_not_run_again(stage: Stage) -> None:
    runs: list[str] = []

    def take_the_place_of_the_result(_input: NoInput, context: ToolContext) -> object:
        runs.append(context.effect_key)
        partition = conversation_partition(stage.caller.tenant, stage.conversation.id)
        item = {"pk": partition, "sk": message_sort_key(2), "v": 1}
        stage.resources.tables.write_items(Put(stage.resources.settings.conversations_table, item))
        return {}

    stage.add_tools(replace(make_server_tool("count", dict, idempotent=True), handler=take_the_place_of_the_result))
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("count")))
    stage.advance_turn()
    assert len(runs) == 1
    assert [getattr(event, "code", None) for event in stage.terminal_events()] == ["broken"]
    assert len(stage.driver.requests) == 1
