"""Test that a conversation runs one turn at a time: double clicks, repeated requests, reloaded tabs."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.cloud import LocalCloud
from tests.e2e import turn_checks
from tests.e2e.chat_session import DELETE_CALL, INSERT_CALL, ChatSession, open_http
from tests.e2e.demo_model_client import held_text_step, slow_text_step, text_step, tool_call_step
from tests.e2e.fault_rules import FaultRules
from tests.e2e.stream_reader import API_PREFIX, StreamReader
from tests.waiting import wait_until

ASK = {"accept": "application/json"}


def post_concurrently(session: ChatSession, prompt: str, times: int, **headers: str) -> list[httpx.Response]:
    """Post the same prompt so many times concurrently."""
    body = {"conversationId": session.conversation, "prompt": prompt}
    with open_http(session.cloud, session.token) as bare, ThreadPoolExecutor(times) as pool:
        ask = [pool.submit(bare.post, "/chat/site", json=body, headers=ASK | headers) for _ in range(times)]
        return [one.result() for one in ask]


def test_of_two_concurrent_prompts_one_becomes_a_turn_and_the_other_gets_a_conflict(session: ChatSession) -> None:
    """The turn waits for its browser until both requests are answered. Repeated twenty times."""
    for _ in range(20):
        answers = post_concurrently(
            session, session.scripted_prompt(tool_call_step(INSERT_CALL), text_step("Only once.")), 2
        )
        assert sorted(answer.status_code for answer in answers) == [202, 409]
        (refused,) = [answer for answer in answers if answer.status_code == 409]
        assert int(refused.headers["retry-after"]) >= 1
        assert "already generating" in refused.json()["error"]
        (started,) = [answer for answer in answers if answer.status_code == 202]
        session.bridge = started.json()["bridgeId"]
        reader = session.open_reader()
        session.answer_request(reader.wait_for_event("toolRequest"))
        assert reader.wait_for_end()[-1]["type"] == "done"
        assert len(session.model_requests()) == 2
    turn_checks.check_turn(session, reader)


def test_concurrent_requests_with_the_same_key_and_body_join_one_turn(session: ChatSession) -> None:
    prompt = session.scripted_prompt(tool_call_step(INSERT_CALL), text_step("Once."))
    answers = post_concurrently(session, prompt, 5, **{"idempotency-key": "k-1"})
    assert {answer.status_code for answer in answers} == {202}
    (session.bridge,) = {answer.json()["bridgeId"] for answer in answers}
    reader = session.open_reader()
    session.answer_request(reader.wait_for_event("toolRequest"))
    reader.wait_for_end()
    (later,) = post_concurrently(session, prompt, 1, **{"idempotency-key": "k-1"})
    assert later.json()["bridgeId"] == session.bridge
    assert len(session.model_requests()) == 2
    turn_checks.check_turn(session, reader)


def test_an_idempotency_key_of_another_request_is_refused(session: ChatSession) -> None:
    (first,) = post_concurrently(session, session.scripted_prompt(text_step("One.")), 1, **{"idempotency-key": "k-2"})
    session.bridge = first.json()["bridgeId"]
    (other,) = post_concurrently(session, "Something else.", 1, **{"idempotency-key": "k-2"})
    assert other.status_code == 409
    assert "Idempotency-Key" in other.json()["error"]
    turn_checks.check_turn(session)


def test_a_streamed_prompt_joined_by_its_key_reads_the_same_turn(session: ChatSession) -> None:
    prompt = session.scripted_prompt(slow_text_step("one two three four five", seconds=1))
    body = {"conversationId": session.conversation, "prompt": prompt}
    tabs = []
    for _ in range(2):
        key = {"idempotency-key": "k-3"}
        tabs.append(StreamReader(session.cloud.url, session.token, f"{API_PREFIX}/chat/site", body=body, headers=key))
        tabs[-1].wait_for_event("bridgeReady")
    session.bridge = tabs[0].events[0]["bridgeId"]
    for tab in tabs:
        tab.wait_for_end()
    turn_checks.check_turn(session, *tabs)


def test_a_start_that_accepts_json_gets_202_with_bridge_and_event_number(session: ChatSession) -> None:
    (answer,) = post_concurrently(session, session.scripted_prompt(text_step("Detached.")), 1)
    assert answer.status_code == 202
    assert answer.json().keys() == {"bridgeId", "seq"}
    assert answer.json()["seq"] == 1
    session.bridge = answer.json()["bridgeId"]
    turn_checks.check_turn(session)


def test_a_reloaded_tab_finds_the_turn_its_pending_request_and_its_deadline(session: ChatSession) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL, DELETE_CALL, text="Two things."), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    active = session.client.get_conversation(session.conversation)["activeTurn"]
    assert active == {"bridgeId": session.bridge, "seq": request["seq"], "state": "paused"}
    bridge = session.client.get_bridge(session.bridge)
    assert (bridge["status"], bridge["round"], bridge["seq"]) == ("paused", 1, request["seq"])
    (pending,) = bridge["pending"]
    expected = {name: value for name, value in request.items() if name not in ("type", "seq")}
    assert pending == expected
    assert pending["deadline"].endswith("Z")
    session.answer_request(pending)
    session.answer_request(reader.wait_for_event("toolRequest", 2))
    reader.wait_for_end()
    turn_checks.check_turn(session, reader)


def test_a_tab_reloaded_in_mid_text_sees_that_the_turn_runs_and_reads_the_rest(
    session: ChatSession, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    reader = session.start_turn(held_text_step("one two three four five six seven eight", gate))
    reader.wait_for_event("text")
    active = session.client.get_conversation(session.conversation)["activeTurn"]
    assert active["state"] == "running"
    again = session.open_reader(after=active["seq"])
    gate.touch()
    reader.wait_for_end()
    again.wait_for_end()
    seen = [event for event in reader.events if event["seq"] <= active["seq"]] + again.events
    turn_checks.check_turn(session, reader, seen)


def test_the_prompt_is_stored_before_the_first_text_of_its_answer(session: ChatSession, faults: FaultRules) -> None:
    with faults.hold_call("dynamodb.PutItem", contains="Late.") as gate:
        reader = session.start_turn(text_step("Late."), words="Remember me.")
        gate.wait_reached()
        (row,) = session.client.get_conversation(session.conversation)["messages"]
    assert row["role"] == "user"
    assert "Remember me." in row["content"][0]["text"]
    reader.wait_for_end()
    turn_checks.check_turn(session, reader)


def test_a_prompt_during_a_paused_turn_gets_a_conflict(session: ChatSession) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    (refused,) = post_concurrently(session, "Hello?", 1)
    assert refused.status_code == 409
    session.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(session, reader)


def test_an_instatic_editors_next_prompt_ends_the_turn_before_it(editor: ChatSession) -> None:
    """Instatic's browsers stop a turn by closing the connection. While one reads, another's prompt is a conflict."""
    reader = editor.start_turn(tool_call_step(INSERT_CALL), text_step("Never."))
    reader.wait_for_event("toolRequest")
    (refused,) = post_concurrently(editor, "From another tab.", 1)
    assert refused.status_code == 409
    reader.drop_connection()
    answers: list[Any] = []

    def taken() -> bool:
        answers.extend(post_concurrently(editor, "And now?", 1))
        return bool(answers[-1].status_code == 202)

    wait_until(taken, "the next prompt is taken")
    editor.bridge = answers[-1].json()["bridgeId"]
    turn_checks.check_turn(editor)


@pytest.mark.parametrize("verb", ["get", "post"])
def test_a_conversation_is_visible_to_its_user_only(
    session: ChatSession, cloud: LocalCloud, stranger: str, verb: str
) -> None:
    for token in (cloud.sign_token(sub="bob"), stranger):
        with open_http(cloud, token) as bare:
            if verb == "get":
                answer = bare.get(f"/conversations/{session.conversation}")
            else:
                answer = bare.post("/chat/site", json={"conversationId": session.conversation, "prompt": "Hello"})
        assert answer.status_code == 404
        assert answer.json() == {"error": "Conversation not found"}
