"""Stop is a verb of its own: it ends the turn for every reader, hangs up on the provider, and can be said again."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from local.cloud import LocalCloud
from tests.e2e import turn_checks
from tests.e2e.conversation_driver import DELETE_CALL, DOCUMENTS_CALL, INSERT_CALL, ConversationDriver, make_snapshot
from tests.e2e.demo_model_client import NEVER_MS, slow_text_step, text_step, tool_call_step, unfinished_text_step
from tests.e2e.fault_rules import FaultRules

LONG_TEXT = " ".join(f"word{number}" for number in range(100))


def cancel(talk: ConversationDriver, token: str | None = None) -> None:
    answer = talk.cancel_turn(token)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"bridgeId": talk.bridge, "status": "cancelled"}


def test_cancelled_in_mid_text_the_connection_to_the_provider_is_closed(talk: ConversationDriver) -> None:
    reader = talk.start_turn(unfinished_text_step(LONG_TEXT))
    reader.wait_for_text(20)
    cancel(talk)
    talk.model.wait_for_close(talk.script)
    reader.wait_for_end()
    view = turn_checks.check_turn(talk, reader, ends="cancelled")
    assert LONG_TEXT.startswith(view.text)
    assert view.text


def test_cancelled_before_the_first_byte_the_connection_to_the_provider_is_closed_too(talk: ConversationDriver) -> None:
    reader = talk.start_turn(text_step("Never.", firstMs=NEVER_MS))
    talk.model.wait_for_requests(talk.script)
    cancel(talk)
    talk.model.wait_for_close(talk.script)
    reader.wait_for_end()
    assert turn_checks.check_turn(talk, reader, ends="cancelled").text == ""


def test_cancelled_while_paused_the_open_calls_are_closed_and_a_late_answer_is_a_404(talk: ConversationDriver) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL, DELETE_CALL, text="Two things."), text_step("Never."))
    request = reader.wait_for_event("toolRequest")
    cancel(talk)
    reader.wait_for_end()
    assert [event["ok"] for event in reader.events_of_type("toolResult")] == [False, False]
    assert talk.post_answer(request).status_code == 404
    assert len(talk.model_requests()) == 1
    turn_checks.check_turn(talk, reader, ends="cancelled")


def test_cancelled_while_a_server_tool_runs_its_result_is_dropped(talk: ConversationDriver, faults: FaultRules) -> None:
    with faults.hold_call("s3.GetObject", contains="/turns/") as gate:
        reader = talk.start_turn(tool_call_step(DOCUMENTS_CALL), text_step("Never."), snapshot=make_snapshot("Home"))
        gate.wait_reached()
        cancel(talk)
    reader.wait_for_end()
    assert len(talk.model_requests()) == 1
    turn_checks.check_turn(talk, reader, ends="cancelled")


def test_cancelled_between_provider_retries_no_further_request_is_made(talk: ConversationDriver) -> None:
    reader = talk.start_turn(text_step("", status=529, retryAfter=20), text_step("Never."))
    talk.model.wait_for_requests(talk.script)
    cancel(talk)
    reader.wait_for_end()
    assert len(talk.model_requests()) == 1
    turn_checks.check_turn(talk, reader, ends="cancelled")


def test_cancelling_an_ended_turn_says_how_it_ended(talk: ConversationDriver) -> None:
    reader = talk.start_turn(text_step("Over."))
    reader.wait_for_end()
    assert talk.cancel_turn().json() == {"bridgeId": talk.bridge, "status": "done"}
    turn_checks.check_turn(talk, reader)


def test_cancelling_five_times_at_once_ends_the_turn_once(talk: ConversationDriver) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL), text_step("Never."))
    reader.wait_for_event("toolRequest")
    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(lambda _: talk.cancel_turn(), range(5)))
    assert [(answer.status_code, answer.json()["status"]) for answer in answers] == [(200, "cancelled")] * 5
    reader.wait_for_end()
    turn_checks.check_turn(talk, reader, ends="cancelled")


def test_cancelled_from_a_resumed_reader_every_reader_sees_the_same_end(talk: ConversationDriver) -> None:
    first = talk.start_turn(slow_text_step(LONG_TEXT, seconds=120))
    first.wait_for_text(10)
    first.drop_connection()
    resumed, second = talk.open_reader(after=first.last_seq), talk.open_reader()
    resumed.wait_for_event("text")
    cancel(talk)
    resumed.wait_for_end()
    second.wait_for_end()
    assert resumed.event_types[-1] == second.event_types[-1] == "cancelled"
    turn_checks.check_turn(talk, second, first.events + resumed.events, ends="cancelled")


def test_an_answer_and_a_cancel_at_once_leave_one_end(talk: ConversationDriver) -> None:
    for _ in range(3):
        reader = talk.start_turn(tool_call_step(INSERT_CALL), unfinished_text_step(LONG_TEXT))
        request = reader.wait_for_event("toolRequest")
        with ThreadPoolExecutor(2) as pool:
            answer, stop = pool.submit(talk.post_answer, request), pool.submit(talk.cancel_turn)
        assert answer.result().status_code in (200, 404)
        assert stop.result().json()["status"] == "cancelled"
        reader.wait_for_end()
        turn_checks.check_turn(talk, reader, ends="cancelled")


def test_who_manages_turns_may_cancel_another_users(talk: ConversationDriver, cloud: LocalCloud) -> None:
    reader = talk.start_turn(unfinished_text_step(LONG_TEXT))
    reader.wait_for_event("text")
    cancel(talk, cloud.sign_token(sub="meg", capabilities=["ai.turns.manage"]))
    reader.wait_for_end()
    turn_checks.check_turn(talk, reader, ends="cancelled")


@pytest.mark.parametrize(("capabilities", "status"), [(["ai.chat", "ai.tools.write"], 404), (["ai.audit.read"], 403)])
def test_nobody_else_may(
    talk: ConversationDriver, cloud: LocalCloud, stranger: str, capabilities: list[str], status: int
) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    assert talk.cancel_turn(cloud.sign_token(sub="bob", capabilities=capabilities)).status_code == status
    assert talk.cancel_turn(stranger).status_code == 404
    talk.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(talk, reader)
