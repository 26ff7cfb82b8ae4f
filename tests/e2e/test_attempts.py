"""Test at-least-once delivery: late attempts, old tokens, lost responses, throttling. Nothing is done twice."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fermata_client import TurnOutcome, TurnView
from local.cloud import LocalCloud
from tests.e2e import turn_checks
from tests.e2e.chat_session import INSERT_CALL, OK_RESULT, ChatSession
from tests.e2e.demo_model_client import held_text_step, text_step, tool_call_step, unfinished_text_step
from tests.e2e.fault_rules import FaultRules
from tests.waiting import BACKSTOP_SECONDS, wait_until

FIRST_LOOK = "p#000000"
"""What a round function asks for when it knows nothing of the turn yet."""
CONTINUE_OUTPUT = json.dumps({"next": "round", "seconds": 0, "hint": None})
LOST_CALLS = [
    ("dynamodb.PutItem", "roundStarted"),
    ("dynamodb.PutItem", "Flowing"),
    ("dynamodb.TransactWriteItems", "toolRequest"),
    ("dynamodb.TransactWriteItems", "toolResult"),
    ("dynamodb.TransactWriteItems", "REMOVE claim"),
    ("stepfunctions.SendTaskSuccess", "round"),
]
CONFLICT = "TransactionCanceledException:TransactionConflict"
REFUSED_CALLS = [
    ("dynamodb.TransactWriteItems", "bridgeReady", CONFLICT),
    ("dynamodb.TransactWriteItems", "toolRequest", CONFLICT),
    ("dynamodb.TransactWriteItems", "toolResult", CONFLICT),
    ("dynamodb.TransactWriteItems", "REMOVE claim", CONFLICT),
    ("dynamodb.TransactWriteItems", "bridgeReady", "ThrottlingException"),
    ("dynamodb.TransactWriteItems", "toolResult", "TransactionCanceledException"),
    ("dynamodb.TransactWriteItems", "REMOVE claim", "ThrottlingException"),
    ("dynamodb.PutItem", "roundStarted", "ProvisionedThroughputExceededException"),
    ("dynamodb.PutItem", "Flowing", "ThrottlingException"),
    ("dynamodb.BatchGetItem", FIRST_LOOK, "ThrottlingException"),
    ("dynamodb.BatchGetItem", "e#", "ThrottlingException"),
    ("stepfunctions.SendTaskSuccess", "round", "ThrottlingException"),
    ("stepfunctions.SendTaskSuccess", "finish", "ThrottlingException"),
]


def invocation_payload(session: ChatSession, entered: str, *, token: str = "AQCby-hand") -> dict[str, Any]:
    """Make the payload that the workflow sends to a round function, for a state entered at that time."""
    turn = {"v": 1, "tenant": session.tenant, "turn": session.bridge, "n": 1}
    return turn | {"token": token, "entered": entered, "retry": 0, "hint": None}


@pytest.fixture
def run_browser_tool_turn(session: ChatSession, tmp_path: Path) -> Callable[[], TurnOutcome]:
    """A turn whose model calls a tool once its words are shown. So these are stored by a write of their own."""
    words_are_shown = tmp_path / "shown"
    step = tool_call_step(INSERT_CALL, text="Flowing.", after=len("Flowing"), holdUntilFile=str(words_are_shown))

    def note(event: dict[str, Any], _view: TurnView) -> None:
        if event["type"] == "text":
            words_are_shown.touch()

    steps = step, text_step("Done.")
    return partial(session.run_turn, *steps, by="round", executor=lambda _: OK_RESULT, on_event=note)


def test_a_late_older_attempt_changes_nothing(session: ChatSession, cloud: LocalCloud, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    reader = session.start_turn(held_text_step("one two three four five six", gate))
    reader.wait_for_event("text")
    assert cloud.invoke_function("round", invocation_payload(session, "2000-01-01T00:00:00.000Z")) is None
    gate.touch()
    reader.wait_for_end()
    assert turn_checks.check_turn(session, reader).text == "one two three four five six"
    assert len(session.model_requests()) == 1


def test_of_two_concurrent_attempts_the_newer_answers_and_the_older_aborts(
    session: ChatSession, cloud: LocalCloud, faults: FaultRules
) -> None:
    with ThreadPoolExecutor(1) as pool, faults.hold_call("dynamodb.BatchGetItem", contains=FIRST_LOOK) as gate:
        reader = session.start_turn(unfinished_text_step(" ".join(["old"] * 100)), text_step("The newer one."))
        gate.wait_reached()
        older = pool.submit(cloud.invoke_function, "round", invocation_payload(session, "2000-01-01T00:00:00.000Z"))
        reader.wait_for_text(4)
        gate.open()
        reader.wait_for_end()
        assert older.result(BACKSTOP_SECONDS) is None
    assert reader.event_types.count("roundRetracted") == 1
    session.model.wait_for_close(session.script, number=0)
    _, second = session.model_requests()
    assert not second["closedByPeerNs"]
    assert turn_checks.check_turn(session, reader).text == "The newer one."


def test_an_attempt_after_the_end_only_finishes_its_execution(session: ChatSession, cloud: LocalCloud) -> None:
    reader = session.start_turn(text_step("The end."))
    reader.wait_for_end()
    assert cloud.invoke_function("round", invocation_payload(session, "2999-01-01T00:00:00.000Z")) is None
    assert cloud.invoke_function("store_hold_token", invocation_payload(session, "2999-01-01T00:00:00.000Z")) is None
    assert len(session.model_requests()) == 1
    turn_checks.check_turn(session, reader)


def test_a_wake_up_for_another_execution_of_the_turn_changes_nothing(session: ChatSession, cloud: LocalCloud) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    before = turn_checks.load_current_pause(session)
    assert cloud.invoke_function("round", invocation_payload(session, "2999-01-01T00:00:00.000Z") | {"n": 2}) is None
    assert turn_checks.load_current_pause(session) == before
    session.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(session, reader)


def test_an_unexpected_task_success_wakes_the_round_which_waits_again(session: ChatSession, cloud: LocalCloud) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    states, token = cloud.get_client("stepfunctions"), turn_checks.load_current_pause(session).callback_token
    states.send_task_success(taskToken=token, output=CONTINUE_OUTPUT)
    with pytest.raises(states.exceptions.TaskTimedOut):
        states.send_task_success(taskToken=token, output=CONTINUE_OUTPUT)
    wait_until(
        lambda: turn_checks.load_current_pause(session).callback_token not in ("", token),
        "another token is waited with",
    )
    with pytest.raises(states.exceptions.TaskTimedOut):
        states.send_task_success(taskToken=token, output=CONTINUE_OUTPUT)
    assert len(session.model_requests()) == 1
    session.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(session, reader)


@pytest.mark.parametrize(("call", "contains"), LOST_CALLS)
def test_a_write_whose_response_was_lost_is_not_repeated(
    session: ChatSession,
    faults: FaultRules,
    run_browser_tool_turn: Callable[[], TurnOutcome],
    call: str,
    contains: str,
) -> None:
    with faults.expect_fault(call, "lost", when="after", contains=contains):
        outcome = run_browser_tool_turn()
    assert outcome.status == "done", outcome.error
    assert len(session.model_requests()) == 2
    assert turn_checks.check_turn(session).text == "Flowing.\n\nDone."


@pytest.mark.usefixtures("without_sweep")
def test_a_repeated_start_after_a_lost_response_joins_the_turn_and_runs_it(
    session: ChatSession, faults: FaultRules, run_browser_tool_turn: Callable[[], TurnOutcome]
) -> None:
    with faults.expect_fault("dynamodb.TransactWriteItems", "lost", when="after", contains="bridgeReady"):
        outcome = run_browser_tool_turn()
    assert outcome.status == "done", outcome.error
    turn_checks.check_turn(session)


@pytest.mark.parametrize(("call", "contains", "error"), REFUSED_CALLS)
def test_a_throttled_or_conflicting_call_does_not_fail_the_turn(
    session: ChatSession,
    faults: FaultRules,
    run_browser_tool_turn: Callable[[], TurnOutcome],
    call: str,
    contains: str,
    error: str,
) -> None:
    with faults.expect_fault(call, f"error:{error}", contains=contains):
        outcome = run_browser_tool_turn()
    assert outcome.status == "done", outcome.error
    assert outcome.view.text == "Flowing.\n\nDone."
    assert turn_checks.check_turn(session) == outcome.view
