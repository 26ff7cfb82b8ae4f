"""At-least-once is the normal case: late attempts, old tokens, lost answers, throttling. Nothing happens twice."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fermata_client import TurnOutcome
from local.cloud import LocalCloud
from tests.e2e import turn_checks
from tests.e2e.conversation_driver import INSERT_CALL, OK_RESULT, ConversationDriver
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


def invocation_payload(talk: ConversationDriver, entered: str, *, token: str = "AQCby-hand") -> dict[str, Any]:
    """What the workflow would send to a round function in a state entered at that time."""
    turn = {"v": 1, "tenant": talk.tenant, "turn": talk.bridge, "n": 1}
    return turn | {"token": token, "entered": entered, "retry": 0, "hint": None}


def run_browser_tool_turn(talk: ConversationDriver) -> TurnOutcome:
    return talk.run_turn(
        tool_call_step(INSERT_CALL, text="Flowing."), text_step("Done."), by="round", executor=lambda _: OK_RESULT
    )


@pytest.fixture
def without_sweep(cloud: LocalCloud) -> Iterator[None]:
    """Disable the schedule that starts turns whose execution was never started."""
    events = cloud.get_client("events")
    (name,) = (rule["Name"] for rule in events.list_rules()["Rules"] if "RecoverFunctionSweep" in rule["Name"])
    events.disable_rule(Name=name)
    yield
    events.enable_rule(Name=name)


def test_an_older_attempt_that_comes_late_changes_nothing(
    talk: ConversationDriver, cloud: LocalCloud, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    reader = talk.start_turn(held_text_step("one two three four five six", gate))
    reader.wait_for_event("text")
    assert cloud.invoke_function("round", invocation_payload(talk, "2000-01-01T00:00:00.000Z")) is None
    gate.touch()
    reader.wait_for_end()
    assert turn_checks.check_turn(talk, reader).text == "one two three four five six"
    assert len(talk.model_requests()) == 1


def test_of_two_attempts_at_once_the_newer_one_answers_and_the_older_hangs_up(
    talk: ConversationDriver, cloud: LocalCloud, faults: FaultRules
) -> None:
    with ThreadPoolExecutor(1) as pool, faults.hold_call("dynamodb.BatchGetItem", contains=FIRST_LOOK) as gate:
        reader = talk.start_turn(unfinished_text_step(" ".join(["old"] * 100)), text_step("The newer one."))
        gate.wait_reached()
        older = pool.submit(cloud.invoke_function, "round", invocation_payload(talk, "2000-01-01T00:00:00.000Z"))
        reader.wait_for_text(4)
        gate.open()
        reader.wait_for_end()
        assert older.result(BACKSTOP_SECONDS) is None
    assert reader.event_types.count("roundRetracted") == 1
    talk.model.wait_for_close(talk.script, number=0)
    _, second = talk.model_requests()
    assert not second["closedByPeerNs"]
    assert turn_checks.check_turn(talk, reader).text == "The newer one."


def test_an_attempt_that_comes_after_the_end_only_finishes(talk: ConversationDriver, cloud: LocalCloud) -> None:
    reader = talk.start_turn(text_step("The end."))
    reader.wait_for_end()
    assert cloud.invoke_function("round", invocation_payload(talk, "2999-01-01T00:00:00.000Z")) is None
    assert cloud.invoke_function("hold", invocation_payload(talk, "2999-01-01T00:00:00.000Z")) is None
    assert len(talk.model_requests()) == 1
    turn_checks.check_turn(talk, reader)


def test_a_wake_up_for_another_execution_of_the_turn_changes_nothing(
    talk: ConversationDriver, cloud: LocalCloud
) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    before = turn_checks.load_current_pause(talk)
    assert cloud.invoke_function("round", invocation_payload(talk, "2999-01-01T00:00:00.000Z") | {"n": 2}) is None
    assert turn_checks.load_current_pause(talk) == before
    talk.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(talk, reader)


def test_a_success_nobody_waited_for_wakes_the_round_which_waits_on(
    talk: ConversationDriver, cloud: LocalCloud
) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    states, token = cloud.get_client("stepfunctions"), turn_checks.load_current_pause(talk).token
    states.send_task_success(taskToken=token, output=CONTINUE_OUTPUT)
    with pytest.raises(states.exceptions.TaskTimedOut):
        states.send_task_success(taskToken=token, output=CONTINUE_OUTPUT)
    wait_until(lambda: turn_checks.load_current_pause(talk).token not in ("", token), "another token is waited with")
    with pytest.raises(states.exceptions.TaskTimedOut):
        states.send_task_success(taskToken=token, output=CONTINUE_OUTPUT)
    assert len(talk.model_requests()) == 1
    talk.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(talk, reader)


@pytest.mark.parametrize(("call", "contains"), LOST_CALLS)
def test_a_lost_response_is_found_to_have_happened(
    talk: ConversationDriver, faults: FaultRules, call: str, contains: str
) -> None:
    with faults.expect_fault(call, "lost", when="after", contains=contains):
        outcome = run_browser_tool_turn(talk)
    assert outcome.status == "done"
    assert len(talk.model_requests()) == 2
    assert turn_checks.check_turn(talk).text == "Flowing.\n\nDone."


@pytest.mark.usefixtures("without_sweep")
def test_a_lost_response_of_the_start_is_joined_by_the_same_key_and_the_turn_runs(
    talk: ConversationDriver, faults: FaultRules
) -> None:
    with faults.expect_fault("dynamodb.TransactWriteItems", "lost", when="after", contains="bridgeReady"):
        outcome = run_browser_tool_turn(talk)
    assert outcome.status == "done"
    turn_checks.check_turn(talk)


@pytest.mark.parametrize(("call", "contains", "error"), REFUSED_CALLS)
def test_a_call_that_is_throttled_or_in_conflict_does_not_hurt_the_turn(
    talk: ConversationDriver, faults: FaultRules, call: str, contains: str, error: str
) -> None:
    with faults.expect_fault(call, f"error:{error}", contains=contains):
        outcome = run_browser_tool_turn(talk)
    assert outcome.status == "done"
    assert outcome.view.text == "Flowing.\n\nDone."
    assert turn_checks.check_turn(talk) == outcome.view
