"""One conversation, one turn at a time: double clicks, repeated requests, reloaded tabs."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.cloud import LocalCloud
from tests.e2e import turn_checks
from tests.e2e.conversation_driver import DELETE_CALL, INSERT_CALL, ConversationDriver, open_http
from tests.e2e.demo_model_client import held_text_step, slow_text_step, text_step, tool_call_step
from tests.e2e.fault_rules import FaultRules
from tests.e2e.stream_reader import API_PREFIX, StreamReader
from tests.waiting import wait_until

ASK = {"accept": "application/json"}


def post_concurrently(talk: ConversationDriver, prompt: str, times: int, **headers: str) -> list[httpx.Response]:
    """The same prompt so often at once."""
    body = {"conversationId": talk.conversation, "prompt": prompt}
    with open_http(talk.cloud, talk.token) as bare, ThreadPoolExecutor(times) as pool:
        ask = [pool.submit(bare.post, "/chat/site", json=body, headers=ASK | headers) for _ in range(times)]
        return [one.result() for one in ask]


def test_of_two_prompts_at_once_one_becomes_a_turn_and_the_other_is_told_to_wait(talk: ConversationDriver) -> None:
    """Twenty times: the turn waits for its browser until both have been answered."""
    for _ in range(20):
        answers = post_concurrently(talk, talk.scripted_prompt(tool_call_step(INSERT_CALL), text_step("Only once.")), 2)
        assert sorted(answer.status_code for answer in answers) == [202, 409]
        (refused,) = [answer for answer in answers if answer.status_code == 409]
        assert int(refused.headers["retry-after"]) >= 1
        assert "already generating" in refused.json()["error"]
        (started,) = [answer for answer in answers if answer.status_code == 202]
        talk.bridge = started.json()["bridgeId"]
        reader = talk.open_reader()
        talk.answer_request(reader.wait_for_event("toolRequest"))
        assert reader.wait_for_end()[-1]["type"] == "done"
        assert len(talk.model_requests()) == 2
    turn_checks.check_turn(talk, reader)


def test_the_same_key_and_body_join_the_same_turn_however_many_come_at_once(talk: ConversationDriver) -> None:
    prompt = talk.scripted_prompt(tool_call_step(INSERT_CALL), text_step("Once."))
    answers = post_concurrently(talk, prompt, 5, **{"idempotency-key": "k-1"})
    assert {answer.status_code for answer in answers} == {202}
    (talk.bridge,) = {answer.json()["bridgeId"] for answer in answers}
    reader = talk.open_reader()
    talk.answer_request(reader.wait_for_event("toolRequest"))
    reader.wait_for_end()
    (later,) = post_concurrently(talk, prompt, 1, **{"idempotency-key": "k-1"})
    assert later.json()["bridgeId"] == talk.bridge
    assert len(talk.model_requests()) == 2
    turn_checks.check_turn(talk, reader)


def test_a_key_that_stands_for_another_request_is_refused(talk: ConversationDriver) -> None:
    (first,) = post_concurrently(talk, talk.scripted_prompt(text_step("One.")), 1, **{"idempotency-key": "k-2"})
    talk.bridge = first.json()["bridgeId"]
    (other,) = post_concurrently(talk, "Something else.", 1, **{"idempotency-key": "k-2"})
    assert other.status_code == 409
    assert "Idempotency-Key" in other.json()["error"]
    turn_checks.check_turn(talk)


def test_a_streamed_prompt_joined_by_its_key_reads_the_same_turn(talk: ConversationDriver) -> None:
    prompt = talk.scripted_prompt(slow_text_step("one two three four five", seconds=1))
    body = {"conversationId": talk.conversation, "prompt": prompt}
    tabs = []
    for _ in range(2):
        key = {"idempotency-key": "k-3"}
        tabs.append(StreamReader(talk.cloud.url, talk.token, f"{API_PREFIX}/chat/site", body=body, headers=key))
        tabs[-1].wait_for_event("bridgeReady")
    talk.bridge = tabs[0].events[0]["bridgeId"]
    for tab in tabs:
        tab.wait_for_end()
    turn_checks.check_turn(talk, *tabs)


def test_asked_for_json_the_service_answers_202_with_the_turns_bridge_and_number(talk: ConversationDriver) -> None:
    (answer,) = post_concurrently(talk, talk.scripted_prompt(text_step("Detached.")), 1)
    assert answer.status_code == 202
    assert answer.json().keys() == {"bridgeId", "seq"}
    assert answer.json()["seq"] == 1
    talk.bridge = answer.json()["bridgeId"]
    turn_checks.check_turn(talk)


def test_a_reloaded_tab_finds_the_turn_what_it_waits_for_and_until_when(talk: ConversationDriver) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL, DELETE_CALL, text="Two things."), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    active = talk.client.get_conversation(talk.conversation)["activeTurn"]
    assert active == {"bridgeId": talk.bridge, "seq": request["seq"], "state": "paused"}
    bridge = talk.client.get_bridge(talk.bridge)
    assert (bridge["status"], bridge["round"], bridge["seq"]) == ("paused", 1, request["seq"])
    (pending,) = bridge["pending"]
    expected = {name: value for name, value in request.items() if name not in ("type", "seq")}
    assert pending == expected
    assert pending["deadline"].endswith("Z")
    talk.answer_request(pending)
    talk.answer_request(reader.wait_for_event("toolRequest", 2))
    reader.wait_for_end()
    turn_checks.check_turn(talk, reader)


def test_while_text_flows_a_reloaded_tab_is_told_that_it_runs_and_sees_the_rest(
    talk: ConversationDriver, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    reader = talk.start_turn(held_text_step("one two three four five six seven eight", gate))
    reader.wait_for_event("text")
    active = talk.client.get_conversation(talk.conversation)["activeTurn"]
    assert active["state"] == "running"
    again = talk.open_reader(after=active["seq"])
    gate.touch()
    reader.wait_for_end()
    again.wait_for_end()
    seen = [event for event in reader.events if event["seq"] <= active["seq"]] + again.events
    turn_checks.check_turn(talk, reader, seen)


def test_the_prompt_is_kept_before_the_first_word_of_its_answer(talk: ConversationDriver, faults: FaultRules) -> None:
    with faults.hold_call("dynamodb.PutItem", contains="Late.") as gate:
        reader = talk.start_turn(text_step("Late."), words="Remember me.")
        gate.wait_reached()
        (row,) = talk.client.get_conversation(talk.conversation)["messages"]
    assert row["role"] == "user"
    assert "Remember me." in row["content"][0]["text"]
    reader.wait_for_end()
    turn_checks.check_turn(talk, reader)


def test_a_prompt_meets_a_paused_turn_and_is_told_to_wait(talk: ConversationDriver) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    (refused,) = post_concurrently(talk, "Hello?", 1)
    assert refused.status_code == 409
    talk.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(talk, reader)


def test_an_instatic_editors_next_prompt_ends_the_turn_before_it(editor: ConversationDriver) -> None:
    """Its browser stops by closing the connection; only within a double click's time it is told to wait."""
    reader = editor.start_turn(tool_call_step(INSERT_CALL), text_step("Never."))
    reader.wait_for_event("toolRequest")
    (refused,) = post_concurrently(editor, "At once.", 1)
    assert refused.status_code == 409
    answers: list[Any] = []

    def taken() -> bool:
        answers.extend(post_concurrently(editor, "And now?", 1))
        return bool(answers[-1].status_code == 202)

    wait_until(taken, "the next prompt is taken")
    reader.wait_for_end()
    assert reader.event_types[-3:] == ["toolResult", "usage", "done"]
    editor.bridge = answers[-1].json()["bridgeId"]
    turn_checks.check_turn(editor)


@pytest.mark.parametrize("verb", ["get", "post"])
def test_a_conversation_is_its_users_alone(
    talk: ConversationDriver, cloud: LocalCloud, stranger: str, verb: str
) -> None:
    for token in (cloud.sign_token(sub="bob"), stranger):
        with open_http(cloud, token) as bare:
            if verb == "get":
                answer = bare.get(f"/conversations/{talk.conversation}")
            else:
                answer = bare.post("/chat/site", json={"conversationId": talk.conversation, "prompt": "Hello"})
        assert answer.status_code == 404
        assert answer.json() == {"error": "Conversation not found"}
