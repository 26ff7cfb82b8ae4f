"""Responses that are read again, followed, cancelled and deleted."""

import base64
import json
from typing import Any

import pytest

from tests.images import make_image
from tests.tenant_tokens import make_tenant
from tests.unit.client_protocols.conftest import Requester
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block

Json = dict[str, Any]
RESPONSES = "/v1/responses"
LOCATE: Json = {"type": "function", "name": "locate", "parameters": {"type": "object"}}


def respond(requester: Requester, **members: Any) -> Json:
    response = requester.send("POST", RESPONSES, json={"model": "site"} | members)
    assert response.status_code == 200, response.text
    made: Json = response.json()
    return made


def show(requester: Requester, response_id: str, query: str = "") -> Json:
    response = requester.send("GET", f"{RESPONSES}/{response_id}{query}")
    assert response.status_code == 200, response.text
    shown: Json = response.json()
    return shown


def list_events(text: str) -> list[Json]:
    return [json.loads(frame.partition("data: ")[2]) for frame in text.split("\n\n") if "data: " in frame]


def test_a_response_is_read_again_as_it_was(stage: Stage, requester: Requester) -> None:
    stage.script_replies("Hi.")
    made = respond(requester, input="Hello")
    assert show(requester, made["id"]) == made


def test_each_answer_of_a_turn_is_a_response_of_its_own(stage: Stage, requester: Requester) -> None:
    stage.script_replies(reply_with_calls(tool_call_block("locate"), text="I look."), "In Bern.")
    first = respond(requester, input="Where?", tools=[LOCATE])
    call = first["output"][-1]
    second = respond(requester, input=[{"type": "function_call_output", "call_id": call["call_id"], "output": "Bern"}])
    assert second["usage"]["input_tokens"] == first["usage"]["input_tokens"] == 10
    for made in (first, second):
        assert show(requester, made["id"]) == made
        events = list_events(requester.send("GET", f"{RESPONSES}/{made['id']}?stream=true").text)
        assert events[-1]["response"]["usage"] == made["usage"]


def test_a_response_in_the_background_is_there_at_once_and_read_when_it_is_over(
    stage: Stage, requester: Requester
) -> None:
    stage.script_replies("Hi.")
    made = respond(requester, input="Hello", background=True)
    assert made["status"] in ("in_progress", "completed")
    assert show(requester, made["id"])["status"] == "completed"


def test_events_are_sent_again_from_a_number_on(stage: Stage, requester: Requester) -> None:
    stage.script_replies("Hi.")
    sent = requester.send("POST", RESPONSES, json={"model": "site", "input": "Hello", "stream": True}).text
    path = f"{RESPONSES}/resp_{stage.turn.id}?stream=true"
    assert list_events(requester.send("GET", path).text) == list_events(sent)
    rest = list_events(requester.send("GET", f"{path}&starting_after=2").text)
    assert rest == list_events(sent)[3:]
    assert requester.send("GET", f"{path}&starting_after=two").status_code == 400
    last = list_events(sent)[-1]["sequence_number"]
    assert list_events(requester.send("GET", f"{path}&starting_after={last}").text) == []
    ahead = requester.send("GET", f"{path}&starting_after={last + 1}")
    assert (ahead.status_code, f"the last one is number {last}" in ahead.text) == (400, True)


def test_a_response_that_waits_for_tools_is_cancelled(stage: Stage, requester: Requester) -> None:
    stage.script_replies(reply_with_calls(tool_call_block("locate")), "Never.")
    made = respond(requester, input="Where?", tools=[LOCATE])
    for _ in range(2):
        cancelled = requester.send("POST", f"{RESPONSES}/{made['id']}/cancel")
        assert (cancelled.status_code, cancelled.json()["id"]) == (200, made["id"])
    result = {"type": "function_call_output", "call_id": made["output"][-1]["call_id"], "output": "Bern"}
    again = requester.send("POST", RESPONSES, json={"model": "site", "input": [result]})
    assert again.status_code >= 400
    assert len(stage.driver.requests) == 1


def test_a_deleted_response_is_not_found_and_the_conversation_stays(stage: Stage, requester: Requester) -> None:
    stage.script_replies("Hi.", "Again.")
    made = respond(requester, input="Hello", conversation="talk")
    deleted = requester.send("DELETE", f"{RESPONSES}/{made['id']}")
    assert deleted.json() == {"id": made["id"], "object": "response", "deleted": True}
    assert requester.send("GET", f"{RESPONSES}/{made['id']}").status_code == 404
    assert requester.send("DELETE", f"{RESPONSES}/{made['id']}").status_code == 404
    named = requester.send("POST", RESPONSES, json={"model": "site", "input": "x", "previous_response_id": made["id"]})
    assert named.status_code == 400
    respond(requester, input="Hello again", conversation="talk")
    assert len(stage.driver.requests[-1].messages) == 3


@pytest.mark.parametrize("method", ["GET", "DELETE", "POST"])
def test_responses_that_are_not_there_are_not_found(method: str, stage: Stage, requester: Requester) -> None:
    stage.script_replies("Hi.")
    made = respond(requester, input="Hello")["id"]
    rival = Requester(make_tenant(stage.resources, "rival"))
    suffix = "/cancel" if method == "POST" else ""
    for one, name in (
        (rival, made),
        (requester, f"{made}.1"),
        (requester, f"{made}.1d"),
        (requester, "resp_1"),
        (requester, stage.turn.id),
        (requester, "resp_" + "x" * 115),
    ):
        assert one.send(method, f"{RESPONSES}/{name}{suffix}").status_code == 404, name
    assert show(requester, made)["status"] == "completed"


def say(requester: Requester, text: str, previous: str = "", **members: Any) -> str:
    """Return the id of the response."""
    named = {"previous_response_id": previous} if previous else {}
    response = requester.send("POST", RESPONSES, json={"model": "site", "input": text} | named, **members)
    assert response.status_code == 200, response.text
    return str(response.json()["id"])


def list_sent_texts(stage: Stage) -> list[str]:
    messages = stage.driver.requests[-1].messages
    return [block.text for message in messages for block in message.content if block.kind == "text"]


def test_a_conversation_goes_on_from_an_earlier_response_in_a_copy(stage: Stage, requester: Requester) -> None:
    call = reply_with_calls(tool_call_block("list_documents"), text="I look.")
    stage.script_replies(call, "A.", "B.", "C.", "D.")
    first = say(requester, "One")
    origin = stage.turn.conversation
    second = say(requester, "Two", first)
    branched = say(requester, "Three", first)
    copy = stage.turn.conversation
    assert copy != origin
    assert list_sent_texts(stage) == ["One", "I look.", "A.", "Three"]
    say(requester, "Four", branched)
    assert list_sent_texts(stage) == ["One", "I look.", "A.", "Three", "C.", "Four"]
    assert stage.turn.conversation == copy
    stage.script_replies("E.")
    say(requester, "Five", second)
    assert list_sent_texts(stage) == ["One", "I look.", "A.", "Two", "B.", "Five"]
    assert stage.turn.conversation == origin


def test_the_same_request_for_a_branch_again_joins_its_turn(stage: Stage, requester: Requester) -> None:
    stage.script_replies("A.", "B.", "C.", "Never.")
    first = say(requester, "One")
    say(requester, "Two", first)
    key = {"headers": {"idempotency-key": "once"}}
    made = [say(requester, "Three", first, **key) for _ in range(2)]
    assert made[0] == made[1]
    assert len(stage.driver.requests) == 3


def test_a_copy_outlives_the_conversation_that_it_was_made_of(stage: Stage, requester: Requester) -> None:
    long_text = "x" * 50_000
    stage.script_replies(long_text, "B.", "C.", "D.")
    first = say(requester, "One")
    origin = stage.turn.conversation
    say(requester, "Two", first)
    branched = say(requester, "Three", first)
    assert stage.resources.blobs.delete_folder(f"conversations/bakery/{origin}") > 0
    say(requester, "Four", branched)
    assert long_text in list_sent_texts(stage)


def list_items(requester: Requester, response_id: str, query: str = "") -> Json:
    answer = requester.send("GET", f"{RESPONSES}/{response_id}/input_items{query}")
    assert answer.status_code == 200, answer.text
    page: Json = answer.json()
    return page


def test_what_a_request_brought_is_listed(stage: Stage, requester: Requester) -> None:
    stage.script_replies("Hi.", reply_with_calls(tool_call_block("locate"), tool_call_block("locate")), "In Bern.")
    picture = {
        "type": "input_image",
        "image_url": f"data:image/png;base64,{base64.b64encode(make_image(kind='PNG')).decode()}",
    }
    content = [{"type": "input_text", "text": "What is it?"}, picture]
    first = respond(requester, input=[{"role": "user", "content": content}])
    [item] = list_items(requester, first["id"])["data"]
    assert (item["type"], item["role"]) == ("message", "user")
    assert item["content"][0] == {"type": "input_text", "text": "What is it?"}
    assert item["content"][1]["image_url"].startswith("data:image/jpeg;base64,")
    second = respond(requester, input="Where?", tools=[LOCATE], previous_response_id=first["id"])
    assert [one["content"][0]["text"] for one in list_items(requester, second["id"])["data"]] == ["Where?"]
    ids = [call["call_id"] for call in second["output"]]
    results = [{"type": "function_call_output", "call_id": one, "output": one} for one in ids]
    third = respond(requester, input=results)
    listed = list_items(requester, third["id"], "?order=asc")
    assert [(one["call_id"], one["output"]) for one in listed["data"]] == [(one, one) for one in ids]
    assert not listed["has_more"]
    newest = list_items(requester, third["id"], "?limit=1")
    assert (newest["data"], newest["has_more"]) == (listed["data"][1:], True)
    rest = list_items(requester, third["id"], f"?after={newest['last_id']}")
    assert (rest["data"], rest["has_more"]) == (listed["data"][:1], False)
    for query in ("?after=none", "?limit=0", "?limit=101", "?order=up"):
        assert requester.send("GET", f"{RESPONSES}/{third['id']}/input_items{query}").status_code == 400, query
    rival = Requester(make_tenant(stage.resources, "rival"))
    assert rival.send("GET", f"{RESPONSES}/{third['id']}/input_items").status_code == 404


def test_a_long_conversation_goes_on_only_at_its_end_and_says_so(
    stage: Stage, requester: Requester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fermata.client_protocols.openai_branches.MAX_BRANCHED_MESSAGES", 3)
    stage.script_replies("A.", "B.", "C.")
    first = say(requester, "One")
    second = say(requester, "Two", first)
    body = {"model": "site", "input": "Three", "previous_response_id": first}
    refused = requester.send("POST", RESPONSES, json=body)
    assert refused.status_code == 400
    assert "more than 3 messages goes on only at its end" in refused.json()["error"]["message"]
    say(requester, "Three", second)
    assert list_sent_texts(stage)[-1] == "Three"
