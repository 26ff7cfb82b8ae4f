"""One conversation, one turn at a time: double clicks, repeated requests, reloaded tabs."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from local.cloud import LocalCloud
from tests.e2e import checks
from tests.e2e.model import calls, says, slowly
from tests.e2e.reader import AI, Reader
from tests.e2e.talk import DELETE, INSERT, Talk, http
from tests.local.lab import until

ASK = {"accept": "application/json"}


def posted(talk: Talk, prompt: str, times: int, **headers: str) -> list[httpx.Response]:
    """The same prompt so often at once."""
    body = {"conversationId": talk.conversation, "prompt": prompt}
    with http(talk.cloud, talk.token) as bare, ThreadPoolExecutor(times) as pool:
        ask = [pool.submit(bare.post, "/chat/site", json=body, headers=ASK | headers) for _ in range(times)]
        return [one.result() for one in ask]


def test_of_two_prompts_at_once_one_becomes_a_turn_and_the_other_is_told_to_wait(talk: Talk) -> None:
    """Twenty times: the turn waits for its browser until both have been answered."""
    for _ in range(20):
        answers = posted(talk, talk.prompt(calls(INSERT), says("Only once.")), 2)
        assert sorted(answer.status_code for answer in answers) == [202, 409]
        (refused,) = [answer for answer in answers if answer.status_code == 409]
        assert int(refused.headers["retry-after"]) >= 1
        assert "already generating" in refused.json()["error"]
        (started,) = [answer for answer in answers if answer.status_code == 202]
        talk.bridge = started.json()["bridgeId"]
        reader = talk.reader()
        talk.answer(reader.wait("toolRequest"))
        assert reader.finish()[-1]["type"] == "done"
        assert len(talk.requests()) == 2
    checks.sound(talk, reader)


def test_the_same_key_and_body_join_the_same_turn_however_many_come_at_once(talk: Talk) -> None:
    prompt = talk.prompt(calls(INSERT), says("Once."))
    answers = posted(talk, prompt, 5, **{"idempotency-key": "k-1"})
    assert {answer.status_code for answer in answers} == {202}
    (talk.bridge,) = {answer.json()["bridgeId"] for answer in answers}
    reader = talk.reader()
    talk.answer(reader.wait("toolRequest"))
    reader.finish()
    (later,) = posted(talk, prompt, 1, **{"idempotency-key": "k-1"})
    assert later.json()["bridgeId"] == talk.bridge
    assert len(talk.requests()) == 2
    checks.sound(talk, reader)


def test_a_key_that_stands_for_another_request_is_refused(talk: Talk) -> None:
    (first,) = posted(talk, talk.prompt(says("One.")), 1, **{"idempotency-key": "k-2"})
    talk.bridge = first.json()["bridgeId"]
    (other,) = posted(talk, "Something else.", 1, **{"idempotency-key": "k-2"})
    assert other.status_code == 409
    assert "Idempotency-Key" in other.json()["error"]
    checks.sound(talk)


def test_a_streamed_prompt_joined_by_its_key_reads_the_same_turn(talk: Talk) -> None:
    prompt = talk.prompt(slowly("one two three four five", seconds=1))
    body = {"conversationId": talk.conversation, "prompt": prompt}
    tabs = []
    for _ in range(2):
        key = {"idempotency-key": "k-3"}
        tabs.append(Reader(talk.cloud.url, talk.token, f"{AI}/chat/site", body=body, headers=key))
        tabs[-1].wait("bridgeReady")
    talk.bridge = tabs[0].events[0]["bridgeId"]
    for tab in tabs:
        tab.finish()
    checks.sound(talk, *tabs)


def test_asked_for_json_the_service_answers_202_with_the_turns_bridge_and_number(talk: Talk) -> None:
    (answer,) = posted(talk, talk.prompt(says("Detached.")), 1)
    assert answer.status_code == 202
    assert answer.json().keys() == {"bridgeId", "seq"}
    assert answer.json()["seq"] == 1
    talk.bridge = answer.json()["bridgeId"]
    checks.sound(talk)


def test_a_reloaded_tab_finds_the_turn_what_it_waits_for_and_until_when(talk: Talk) -> None:
    reader = talk.start(calls(INSERT, DELETE, text="Two things."), says("Done."))
    request = reader.wait("toolRequest")
    active = talk.client.conversation(talk.conversation)["activeTurn"]
    assert active == {"bridgeId": talk.bridge, "seq": request["seq"], "state": "paused"}
    bridge = talk.client.bridge(talk.bridge)
    assert (bridge["status"], bridge["round"], bridge["seq"]) == ("paused", 1, request["seq"])
    (pending,) = bridge["pending"]
    expected = {name: value for name, value in request.items() if name not in ("type", "seq")}
    assert pending == expected
    assert pending["deadline"].endswith("Z")
    talk.answer(pending)
    talk.answer(reader.wait("toolRequest", 2))
    reader.finish()
    checks.sound(talk, reader)


def test_while_text_flows_a_reloaded_tab_is_told_that_it_runs_and_sees_the_rest(talk: Talk) -> None:
    reader = talk.start(slowly("one two three four five six seven eight", seconds=1))
    reader.wait("text")
    active = talk.client.conversation(talk.conversation)["activeTurn"]
    assert active["state"] == "running"
    again = talk.reader(after=active["seq"])
    reader.finish()
    again.finish()
    seen = [event for event in reader.events if event["seq"] <= active["seq"]] + again.events
    checks.sound(talk, reader, seen)


def test_the_prompt_is_kept_before_the_first_word_of_its_answer(talk: Talk) -> None:
    reader = talk.start(says("Late.", firstMs=1000), words="Remember me.")
    talk.model.asked(talk.script)
    (row,) = talk.client.conversation(talk.conversation)["messages"]
    assert row["role"] == "user"
    assert "Remember me." in row["content"][0]["text"]
    reader.finish()
    checks.sound(talk, reader)


def test_a_prompt_meets_a_paused_turn_and_is_told_to_wait(talk: Talk) -> None:
    reader = talk.start(calls(INSERT), says("Done."))
    request = reader.wait("toolRequest")
    (refused,) = posted(talk, "Hello?", 1)
    assert refused.status_code == 409
    talk.answer(request)
    reader.finish()
    checks.sound(talk, reader)


def test_an_instatic_editors_next_prompt_ends_the_turn_before_it(editor: Talk) -> None:
    """Its browser stops by closing the connection; only within a double click's time it is told to wait."""
    reader = editor.start(calls(INSERT), says("Never."))
    reader.wait("toolRequest")
    (refused,) = posted(editor, "At once.", 1)
    assert refused.status_code == 409
    answers: list[Any] = []

    def taken() -> bool:
        answers.extend(posted(editor, "And now?", 1))
        return bool(answers[-1].status_code == 202)

    until(taken, "the next prompt is taken")
    reader.finish()
    assert reader.kinds[-3:] == ["toolResult", "usage", "done"]
    editor.bridge = answers[-1].json()["bridgeId"]
    checks.sound(editor)


@pytest.mark.parametrize("verb", ["get", "post"])
def test_a_conversation_is_its_users_alone(talk: Talk, cloud: LocalCloud, stranger: str, verb: str) -> None:
    for token in (cloud.sign(sub="bob"), stranger):
        with http(cloud, token) as bare:
            if verb == "get":
                answer = bare.get(f"/conversations/{talk.conversation}")
            else:
                answer = bare.post("/chat/site", json={"conversationId": talk.conversation, "prompt": "Hello"})
        assert answer.status_code == 404
        assert answer.json() == {"error": "Conversation not found"}
