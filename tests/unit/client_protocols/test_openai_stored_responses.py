"""Responses that are read again, followed, cancelled and deleted."""

import json
from typing import Any

import pytest

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
        assert show(requester, made["id"]) == made | {"usage": None}, "what each has used is not known any more"


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
