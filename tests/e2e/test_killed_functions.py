"""The function that works on a turn dies: wherever that happens, the turn goes on as if it had not."""

from typing import Any

import pytest

from local.cloud import LocalCloud
from tests.e2e import checks
from tests.e2e.faults import Faults
from tests.e2e.model import calls, says, slowly
from tests.e2e.reader import Event
from tests.e2e.talk import DELETE, DOCUMENTS, INSERT, OK, Talk, said, snapshot_of
from tests.local.lab import until

LONG = " ".join(f"word{number}" for number in range(100))
ROUND, ANSWER, END = "toolRequest", "toolResult", "REMOVE claim"
"""What a transaction holds that is one of these commits."""


def test_killed_in_mid_text_the_client_sees_one_clean_answer(talk: Talk, cloud: LocalCloud) -> None:
    reader = talk.start(slowly(LONG, seconds=20), says("The whole answer."))
    reader.wait_for_text(20)
    assert cloud.kill_workers("round") == 1
    reader.finish()
    assert reader.kinds.count("roundRetracted") == 1
    view = checks.sound(talk, reader)
    assert view.text == "The whole answer."
    assert len(talk.requests()) == 2


def test_killed_before_the_first_byte_the_round_is_asked_for_again(talk: Talk, cloud: LocalCloud) -> None:
    reader = talk.start(says("Never said.", firstMs=30_000), says("Said."))
    talk.model.asked(talk.script)
    assert cloud.kill_workers("round") == 1
    reader.finish()
    assert "roundRetracted" not in reader.kinds
    assert checks.sound(talk, reader).text == "Said."


def test_killed_while_an_instant_tool_runs_the_round_is_asked_for_again(
    talk: Talk, cloud: LocalCloud, faults: Faults
) -> None:
    """Its result and the reply that asked for it are one commit; test_hosts.py kills a round in a tool that waits."""
    look = calls(DOCUMENTS, text="Let me look.")
    with faults.gate("s3.GetObject", contains="/turns/") as gate:
        reader = talk.start(look, look, says("Done."), snapshot=snapshot_of("Home"))
        gate.reached()
        assert cloud.kill_workers("round") == 1
    reader.finish()
    assert reader.kinds.count("roundRetracted") == 1
    assert "Home" in said(talk.results()[0])
    assert len(talk.requests()) == 3
    view = checks.sound(talk, reader)
    assert [badge.name for badge in view.tools] == ["list_documents"]


def test_killed_twice_in_the_same_round_the_turn_ends_with_an_error_and_keeps_its_text(
    talk: Talk, cloud: LocalCloud
) -> None:
    reader = talk.start(slowly(LONG, seconds=20), slowly(LONG, seconds=20), repeat_last=True)
    reader.wait_for_text(20)
    cloud.kill_workers("round")
    reader.wait("roundRetracted")
    talk.model.asked(talk.script, 2)
    retracted = len(reader.text)
    reader.wait_for_text(retracted + 20)
    cloud.kill_workers("round")
    reader.finish()
    assert reader.events[-1]["retryable"] is True
    view = checks.sound(talk, reader, ends="error")
    assert view.text
    assert LONG.startswith(view.text)


def test_killed_right_after_the_calls_were_committed_nothing_is_asked_twice(talk: Talk, faults: Faults) -> None:
    with faults.once("dynamodb.TransactWriteItems", "exit", when="after", contains=ROUND):
        reader = talk.start(calls(INSERT), says("Done."))
        request = reader.wait("toolRequest")
        talk.answer(request)
        reader.finish()
    assert reader.kinds.count("toolRequest") == 1
    assert len(talk.requests()) == 2
    checks.sound(talk, reader)


def test_killed_right_after_the_calls_were_committed_a_late_answer_is_taken_too(
    talk: Talk, cloud: LocalCloud, faults: Faults
) -> None:
    """The function's successor holds the same request open with a token of its own."""
    with faults.once("dynamodb.TransactWriteItems", "exit", when="after", contains=ROUND):
        reader = talk.start(calls(INSERT), says("Done."))
        request = reader.wait("toolRequest")
        first = checks.pause(talk).token
        until(lambda: checks.pause(talk).token not in ("", first), "another attempt holds the pause")
    talk.answer(request)
    reader.finish()
    checks.sound(talk, reader)


def test_killed_right_after_the_end_was_committed_the_execution_still_finishes(talk: Talk, faults: Faults) -> None:
    with faults.once("dynamodb.TransactWriteItems", "exit", when="after", contains=END):
        reader = talk.start(says("Good bye."))
        reader.finish()
    assert checks.sound(talk, reader).text == "Good bye."
    assert len(talk.requests()) == 1
    (execution,) = checks.executions(talk.cloud, talk.bridge).values()
    assert execution["status"] == "SUCCEEDED"


def test_killed_before_the_end_is_committed_the_round_is_asked_for_again(talk: Talk, faults: Faults) -> None:
    with faults.once("dynamodb.TransactWriteItems", "exit", when="before", contains=END):
        reader = talk.start(says("First."), says("Second."))
        reader.finish()
    assert checks.sound(talk, reader).text == "Second."


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_around_the_first_step_of_a_round_it_is_begun_again(talk: Talk, faults: Faults, when: str) -> None:
    with faults.once("dynamodb.PutItem", "exit", when=when, contains="roundStarted"):
        reader = talk.start(says("Here."))
        reader.finish()
    assert checks.sound(talk, reader).text == "Here."
    assert len(talk.requests()) == 1


def test_the_answering_function_dies_after_its_commit_and_the_same_answer_again_wakes_the_turn(
    talk: Talk, faults: Faults
) -> None:
    reader = talk.start(calls(INSERT), says("Done."))
    request = reader.wait("toolRequest")
    with faults.once("dynamodb.TransactWriteItems", "exit", when="after", contains=ANSWER):
        assert talk.post_answer(request).status_code == 502
    assert len(talk.requests()) == 1
    again = talk.post_answer(request)
    assert (again.status_code, again.json()) == (200, {"ok": True})
    reader.finish()
    checks.sound(talk, reader)


def test_the_answering_function_dies_before_its_commit_and_the_answer_is_given_again(
    talk: Talk, faults: Faults
) -> None:
    reader = talk.start(calls(INSERT, DELETE), says("Done."))
    request = reader.wait("toolRequest")
    with faults.once("dynamodb.TransactWriteItems", "exit", contains=ANSWER):
        assert talk.post_answer(request).status_code == 502
    assert talk.post_answer(request, {"ok": True, "data": "another"}).status_code == 200
    talk.answer(reader.wait("toolRequest", 2), OK)
    reader.finish()
    checks.sound(talk, reader)


def test_a_browser_acts_once_although_its_answer_has_to_be_sent_again(talk: Talk, faults: Faults) -> None:
    acted: list[str] = []

    def act(request: Event) -> dict[str, Any]:
        acted.append(request["effectKey"])
        return OK

    with faults.once("dynamodb.TransactWriteItems", "exit", contains=ANSWER):
        outcome = talk.run(calls(INSERT, DELETE), says("Done."), executor=act)
    assert outcome.status == "done"
    assert acted == [f"{talk.bridge}/1/0", f"{talk.bridge}/1/1"]
    assert checks.sound(talk) == outcome.view
