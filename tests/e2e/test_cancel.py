"""Test cancelling: it ends the turn for all readers, closes the connection to the provider, and can be repeated."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from local.cloud import LocalCloud
from tests.e2e import turn_checks
from tests.e2e.chat_session import DELETE_CALL, DOCUMENTS_CALL, INSERT_CALL, ChatSession, make_snapshot
from tests.e2e.demo_model_client import NEVER_MS, slow_text_step, text_step, tool_call_step, unfinished_text_step
from tests.e2e.fault_rules import FaultRules

LONG_TEXT = " ".join(f"word{number}" for number in range(100))


def cancel(session: ChatSession, token: str | None = None) -> None:
    answer = session.cancel_turn(token)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"bridgeId": session.bridge, "status": "cancelled"}


def test_cancelled_in_mid_text_the_connection_to_the_provider_is_closed(session: ChatSession) -> None:
    reader = session.start_turn(unfinished_text_step(LONG_TEXT))
    reader.wait_for_text(20)
    cancel(session)
    session.model.wait_for_close(session.script)
    reader.wait_for_end()
    view = turn_checks.check_turn(session, reader, ends="cancelled")
    assert LONG_TEXT.startswith(view.text)
    assert view.text


def test_cancelled_before_the_first_byte_the_connection_to_the_provider_is_closed_too(session: ChatSession) -> None:
    reader = session.start_turn(text_step("Never.", firstMs=NEVER_MS))
    session.model.wait_for_requests(session.script)
    cancel(session)
    session.model.wait_for_close(session.script)
    reader.wait_for_end()
    assert turn_checks.check_turn(session, reader, ends="cancelled").text == ""


def test_cancelled_while_paused_the_open_calls_are_closed_and_a_late_answer_is_a_404(session: ChatSession) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL, DELETE_CALL, text="Two things."), text_step("Never."))
    request = reader.wait_for_event("toolRequest")
    cancel(session)
    reader.wait_for_end()
    assert [event["ok"] for event in reader.events_of_type("toolResult")] == [False, False]
    assert session.post_answer(request).status_code == 404
    assert len(session.model_requests()) == 1
    turn_checks.check_turn(session, reader, ends="cancelled")


def test_cancelled_while_a_server_tool_runs_its_result_is_dropped(session: ChatSession, faults: FaultRules) -> None:
    with faults.hold_call("s3.GetObject", contains="/turns/") as gate:
        reader = session.start_turn(tool_call_step(DOCUMENTS_CALL), text_step("Never."), snapshot=make_snapshot("Home"))
        gate.wait_reached()
        cancel(session)
    reader.wait_for_end()
    assert len(session.model_requests()) == 1
    turn_checks.check_turn(session, reader, ends="cancelled")


def test_cancelled_between_provider_retries_no_further_request_is_made(session: ChatSession) -> None:
    reader = session.start_turn(text_step("", status=529, retryAfter=20), text_step("Never."))
    session.model.wait_for_requests(session.script)
    cancel(session)
    reader.wait_for_end()
    assert len(session.model_requests()) == 1
    turn_checks.check_turn(session, reader, ends="cancelled")


def test_cancelling_an_ended_turn_returns_how_it_ended(session: ChatSession) -> None:
    reader = session.start_turn(text_step("Over."))
    reader.wait_for_end()
    assert session.cancel_turn().json() == {"bridgeId": session.bridge, "status": "done"}
    turn_checks.check_turn(session, reader)


def test_five_concurrent_cancels_end_the_turn_once(session: ChatSession) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Never."))
    reader.wait_for_event("toolRequest")
    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(lambda _: session.cancel_turn(), range(5)))
    assert [(answer.status_code, answer.json()["status"]) for answer in answers] == [(200, "cancelled")] * 5
    reader.wait_for_end()
    turn_checks.check_turn(session, reader, ends="cancelled")


def test_cancelled_from_a_resumed_reader_every_reader_sees_the_same_end(session: ChatSession) -> None:
    first = session.start_turn(slow_text_step(LONG_TEXT, seconds=120))
    first.wait_for_text(10)
    first.drop_connection()
    resumed, second = session.open_reader(after=first.last_seq), session.open_reader()
    resumed.wait_for_event("text")
    cancel(session)
    resumed.wait_for_end()
    second.wait_for_end()
    assert resumed.event_types[-1] == second.event_types[-1] == "cancelled"
    turn_checks.check_turn(session, second, first.events + resumed.events, ends="cancelled")


def test_a_concurrent_answer_and_cancel_leave_one_terminal_event(session: ChatSession) -> None:
    for _ in range(3):
        reader = session.start_turn(tool_call_step(INSERT_CALL), unfinished_text_step(LONG_TEXT))
        request = reader.wait_for_event("toolRequest")
        with ThreadPoolExecutor(2) as pool:
            answer, stop = pool.submit(session.post_answer, request), pool.submit(session.cancel_turn)
        assert answer.result().status_code in (200, 404)
        assert stop.result().json()["status"] == "cancelled"
        reader.wait_for_end()
        turn_checks.check_turn(session, reader, ends="cancelled")


def test_a_user_who_manages_turns_may_cancel_another_users_turn(session: ChatSession, cloud: LocalCloud) -> None:
    reader = session.start_turn(unfinished_text_step(LONG_TEXT))
    reader.wait_for_event("text")
    cancel(session, cloud.sign_token(sub="meg", capabilities=["ai.turns.manage"]))
    reader.wait_for_end()
    turn_checks.check_turn(session, reader, ends="cancelled")


@pytest.mark.parametrize(("capabilities", "status"), [(["ai.chat", "ai.tools.write"], 404), (["ai.audit.read"], 403)])
def test_no_other_user_may_cancel_a_turn(
    session: ChatSession, cloud: LocalCloud, stranger: str, capabilities: list[str], status: int
) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    assert session.cancel_turn(cloud.sign_token(sub="bob", capabilities=capabilities)).status_code == status
    assert session.cancel_turn(stranger).status_code == 404
    session.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(session, reader)
