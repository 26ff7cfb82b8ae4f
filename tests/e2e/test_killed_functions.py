"""Kill functions at any moment. The turn continues as if they had not died."""

from pathlib import Path
from typing import Any

import pytest

from local.cloud import LocalCloud
from tests.e2e import turn_checks
from tests.e2e.chat_session import (
    DELETE_CALL,
    DOCUMENTS_CALL,
    INSERT_CALL,
    OK_RESULT,
    ChatSession,
    make_snapshot,
    result_text,
)
from tests.e2e.demo_model_client import NEVER_MS, text_step, tool_call_step, unfinished_text_step
from tests.e2e.fault_rules import FaultRules
from tests.e2e.stream_reader import Event
from tests.waiting import wait_until

LONG = " ".join(f"word{number}" for number in range(100))
ROUND, ANSWER, END = "toolRequest", "toolResult", "REMOVE claim"
"""What a transaction holds that is one of these commits."""


def test_killed_in_mid_text_the_client_sees_one_clean_answer(session: ChatSession, cloud: LocalCloud) -> None:
    reader = session.start_turn(unfinished_text_step(LONG), text_step("The whole answer."))
    reader.wait_for_text(20)
    assert cloud.kill_workers("round") >= 1
    reader.wait_for_end()
    assert reader.event_types.count("roundRetracted") == 1
    view = turn_checks.check_turn(session, reader)
    assert view.text == "The whole answer."
    assert len(session.model_requests()) == 2


def test_killed_before_the_first_byte_the_request_is_repeated(session: ChatSession, cloud: LocalCloud) -> None:
    reader = session.start_turn(text_step("Never said.", firstMs=NEVER_MS), text_step("Said."))
    session.model.wait_for_requests(session.script)
    assert cloud.kill_workers("round") >= 1
    reader.wait_for_end()
    assert "roundRetracted" not in reader.event_types
    assert turn_checks.check_turn(session, reader).text == "Said."


def test_killed_while_an_instant_tool_runs_the_request_is_repeated(
    session: ChatSession, cloud: LocalCloud, faults: FaultRules, tmp_path: Path
) -> None:
    """An instant tool's result and its call are one commit. test_hosts.py kills a round in a slow tool."""
    text_is_shown = tmp_path / "shown"
    look = tool_call_step(DOCUMENTS_CALL, text="Let me look.", after=8, holdUntilFile=str(text_is_shown))
    with faults.hold_call("s3.GetObject", contains="/turns/") as gate:
        reader = session.start_turn(look, look, text_step("Done."), snapshot=make_snapshot("Home"))
        reader.wait_for_text(8)
        text_is_shown.touch()
        gate.wait_reached()
        assert cloud.kill_workers("round") >= 1
    reader.wait_for_end()
    assert reader.event_types.count("roundRetracted") == 1
    assert "Home" in result_text(session.tool_results()[0])
    assert len(session.model_requests()) == 3
    view = turn_checks.check_turn(session, reader)
    assert [badge.name for badge in view.tool_calls] == ["list_documents"]


def test_killed_twice_in_the_same_round_the_turn_ends_with_an_error_and_keeps_its_text(
    session: ChatSession, cloud: LocalCloud
) -> None:
    reader = session.start_turn(unfinished_text_step(LONG), unfinished_text_step(LONG), repeat_last=True)
    reader.wait_for_text(20)
    cloud.kill_workers("round")
    reader.wait_for_event("roundRetracted")
    session.model.wait_for_requests(session.script, 2)
    reader.wait_for_text(20, after="roundRetracted")
    cloud.kill_workers("round")
    reader.wait_for_end()
    assert reader.events[-1]["retryable"] is True
    view = turn_checks.check_turn(session, reader, ends="error")
    assert view.text
    assert LONG.startswith(view.text)


def test_killed_right_after_the_calls_were_committed_nothing_is_requested_twice(
    session: ChatSession, faults: FaultRules
) -> None:
    with faults.expect_fault("dynamodb.TransactWriteItems", "exit", when="after", contains=ROUND):
        reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
        request = reader.wait_for_event("toolRequest")
        session.answer_request(request)
        reader.wait_for_end()
    assert reader.event_types.count("toolRequest") == 1
    assert len(session.model_requests()) == 2
    turn_checks.check_turn(session, reader)


def test_killed_right_after_the_calls_were_committed_a_late_answer_is_accepted(
    session: ChatSession, cloud: LocalCloud, faults: FaultRules
) -> None:
    """The function's successor waits for the same request with its own token."""
    with faults.expect_fault("dynamodb.TransactWriteItems", "exit", when="after", contains=ROUND):
        reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
        request = reader.wait_for_event("toolRequest")
        wait_until(lambda: turn_checks.load_current_pause(session).is_held, "its successor holds the pause")
    session.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(session, reader)


def test_killed_right_after_the_end_was_committed_the_execution_still_finishes(
    session: ChatSession, faults: FaultRules
) -> None:
    with faults.expect_fault("dynamodb.TransactWriteItems", "exit", when="after", contains=END):
        reader = session.start_turn(text_step("Good bye."))
        reader.wait_for_end()
    assert turn_checks.check_turn(session, reader).text == "Good bye."
    assert len(session.model_requests()) == 1
    (execution,) = turn_checks.describe_executions(session.cloud, session.bridge).values()
    assert execution["status"] == "SUCCEEDED"


def test_killed_before_the_end_is_committed_the_request_is_repeated(session: ChatSession, faults: FaultRules) -> None:
    with faults.expect_fault("dynamodb.TransactWriteItems", "exit", when="before", contains=END):
        reader = session.start_turn(text_step("First."), text_step("Second."))
        reader.wait_for_end()
    assert turn_checks.check_turn(session, reader).text == "Second."


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_around_the_first_step_of_a_round_the_round_is_started_again(
    session: ChatSession, faults: FaultRules, when: str
) -> None:
    with faults.expect_fault("dynamodb.PutItem", "exit", when=when, contains="roundStarted"):
        reader = session.start_turn(text_step("Here."))
        reader.wait_for_end()
    assert turn_checks.check_turn(session, reader).text == "Here."
    assert len(session.model_requests()) == 1


def test_after_the_answering_function_dies_a_repeated_answer_wakes_the_turn(
    session: ChatSession, faults: FaultRules
) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    with faults.expect_fault("dynamodb.TransactWriteItems", "exit", when="after", contains=ANSWER):
        assert session.post_answer(request).status_code == 502
    assert len(session.model_requests()) == 1
    again = session.post_answer(request)
    assert (again.status_code, again.json()) == (200, {"ok": True})
    reader.wait_for_end()
    turn_checks.check_turn(session, reader)


def test_the_answering_function_dies_before_its_commit_and_the_answer_is_repeated(
    session: ChatSession, faults: FaultRules
) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL, DELETE_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    with faults.expect_fault("dynamodb.TransactWriteItems", "exit", contains=ANSWER):
        assert session.post_answer(request).status_code == 502
    assert session.post_answer(request, {"ok": True, "data": "another"}).status_code == 200
    session.answer_request(reader.wait_for_event("toolRequest", 2), OK_RESULT)
    reader.wait_for_end()
    turn_checks.check_turn(session, reader)


def test_a_browser_runs_a_tool_once_although_its_answer_is_repeated(session: ChatSession, faults: FaultRules) -> None:
    acted: list[str] = []

    def act(request: Event) -> dict[str, Any]:
        acted.append(request["effectKey"])
        return OK_RESULT

    with faults.expect_fault("dynamodb.TransactWriteItems", "exit", contains=ANSWER):
        outcome = session.run_turn(tool_call_step(INSERT_CALL, DELETE_CALL), text_step("Done."), executor=act)
    assert outcome.status == "done"
    assert acted == [f"{session.bridge}/1/0", f"{session.bridge}/1/1"]
    assert turn_checks.check_turn(session) == outcome.view
