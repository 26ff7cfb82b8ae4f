"""At-least-once is the normal case: late attempts, old tokens, lost answers, throttling. Nothing happens twice."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fermata_client import Outcome
from local.cloud import LocalCloud
from tests.e2e import checks
from tests.e2e.faults import Faults
from tests.e2e.model import calls, says, slowly
from tests.e2e.talk import INSERT, OK, Talk
from tests.local.lab import until

FIRST_LOOK = "p#000000"
"""What a round function asks for when it knows nothing of the turn yet."""
GO_ON = json.dumps({"next": "round", "seconds": 0, "hint": None})
LOST = [
    ("dynamodb.PutItem", "roundStarted"),
    ("dynamodb.PutItem", "Flowing"),
    ("dynamodb.TransactWriteItems", "toolRequest"),
    ("dynamodb.TransactWriteItems", "toolResult"),
    ("dynamodb.TransactWriteItems", "REMOVE claim"),
    ("stepfunctions.SendTaskSuccess", "round"),
]
CONFLICT = "TransactionCanceledException:TransactionConflict"
REFUSED = [
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


def wake(talk: Talk, entered: str, *, token: str = "AQCby-hand") -> dict[str, Any]:
    """What the workflow would send to a round function in a state entered at that time."""
    turn = {"v": 1, "tenant": talk.tenant, "turn": talk.bridge, "n": 1}
    return turn | {"token": token, "entered": entered, "retry": 0, "hint": None}


def with_a_browser_tool(talk: Talk) -> Outcome:
    return talk.run(calls(INSERT, text="Flowing."), says("Done."), by="round", executor=lambda _: OK)


def test_an_older_attempt_that_comes_late_changes_nothing(talk: Talk, cloud: LocalCloud) -> None:
    reader = talk.start(slowly("one two three four five six", seconds=1.5))
    reader.wait("text")
    assert cloud.invoke("round", wake(talk, "2000-01-01T00:00:00.000Z")) is None
    reader.finish()
    assert checks.sound(talk, reader).text == "one two three four five six"
    assert len(talk.requests()) == 1


def test_of_two_attempts_at_once_the_newer_one_answers_and_the_older_hangs_up(
    talk: Talk, cloud: LocalCloud, faults: Faults
) -> None:
    with ThreadPoolExecutor(1) as pool, faults.gate("dynamodb.BatchGetItem", contains=FIRST_LOOK) as gate:
        reader = talk.start(slowly(" ".join(["old"] * 100), seconds=20), says("The newer one."))
        gate.reached()
        older = pool.submit(cloud.invoke, "round", wake(talk, "2000-01-01T00:00:00.000Z"))
        reader.wait_for_text(4)
        gate.open()
        reader.finish()
        assert older.result(10) is None
    assert reader.kinds.count("roundRetracted") == 1
    talk.model.closed(talk.script, number=0)
    _, second = talk.requests()
    assert not second["closedByPeerNs"]
    assert checks.sound(talk, reader).text == "The newer one."


def test_an_attempt_that_comes_after_the_end_only_finishes(talk: Talk, cloud: LocalCloud) -> None:
    reader = talk.start(says("The end."))
    reader.finish()
    assert cloud.invoke("round", wake(talk, "2999-01-01T00:00:00.000Z")) is None
    assert cloud.invoke("hold", wake(talk, "2999-01-01T00:00:00.000Z")) is None
    assert len(talk.requests()) == 1
    checks.sound(talk, reader)


def test_a_wake_up_for_another_execution_of_the_turn_changes_nothing(talk: Talk, cloud: LocalCloud) -> None:
    reader = talk.start(calls(INSERT), says("Done."))
    request = reader.wait("toolRequest")
    before = checks.pause(talk)
    assert cloud.invoke("round", wake(talk, "2999-01-01T00:00:00.000Z") | {"n": 2}) is None
    assert checks.pause(talk) == before
    talk.answer(request)
    reader.finish()
    checks.sound(talk, reader)


def test_a_success_nobody_waited_for_wakes_the_round_which_waits_on(talk: Talk, cloud: LocalCloud) -> None:
    reader = talk.start(calls(INSERT), says("Done."))
    request = reader.wait("toolRequest")
    states, token = cloud.client("stepfunctions"), checks.pause(talk).token
    states.send_task_success(taskToken=token, output=GO_ON)
    with pytest.raises(states.exceptions.TaskTimedOut):
        states.send_task_success(taskToken=token, output=GO_ON)
    until(lambda: checks.pause(talk).token not in ("", token), "another token is waited with")
    with pytest.raises(states.exceptions.TaskTimedOut):
        states.send_task_success(taskToken=token, output=GO_ON)
    assert len(talk.requests()) == 1
    talk.answer(request)
    reader.finish()
    checks.sound(talk, reader)


@pytest.mark.parametrize(("call", "contains"), LOST)
def test_a_lost_response_is_found_to_have_happened(talk: Talk, faults: Faults, call: str, contains: str) -> None:
    with faults.once(call, "lost", when="after", contains=contains):
        outcome = with_a_browser_tool(talk)
    assert outcome.status == "done"
    assert len(talk.requests()) == 2
    assert checks.sound(talk).text == "Flowing.\n\nDone."


def test_a_lost_response_of_the_start_is_joined_by_the_same_key_and_the_turn_runs(talk: Talk, faults: Faults) -> None:
    with faults.once("dynamodb.TransactWriteItems", "lost", when="after", contains="bridgeReady"):
        outcome = with_a_browser_tool(talk)
    assert outcome.status == "done"
    assert outcome.seconds < 10
    checks.sound(talk)


@pytest.mark.parametrize(("call", "contains", "error"), REFUSED)
def test_a_call_that_is_throttled_or_in_conflict_does_not_hurt_the_turn(
    talk: Talk, faults: Faults, call: str, contains: str, error: str
) -> None:
    with faults.once(call, f"error:{error}", contains=contains):
        outcome = with_a_browser_tool(talk)
    assert outcome.status == "done"
    assert outcome.view.text == "Flowing.\n\nDone."
    assert checks.sound(talk) == outcome.view
