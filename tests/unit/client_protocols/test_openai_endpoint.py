"""Requests of OpenAI's clients over HTTP: which conversation and turn they are about, and what is refused."""

import json
from typing import Any

import httpx
import pytest

from fermata.conversations.conversation_store import list_conversations
from fermata.conversations.message_store import load_messages
from fermata.domain.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from tests.agent_definitions import make_definition, push_definitions
from tests.tenant_tokens import make_tenant
from tests.unit.client_protocols.conftest import Requester
from tests.unit.turns.stage import Stage, make_provider_error, reply_with_calls, tool_call_block

Json = dict[str, Any]
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
LOCATE: Json = {
    "type": "function",
    "function": {"name": "locate", "description": "Finds out where the user is.", "parameters": {"type": "object"}},
}
HELLO: Json = {"role": "user", "content": "Hello"}


@pytest.fixture
def rival(stage: Stage) -> Requester:
    return Requester(make_tenant(stage.resources, "rival"))


def ask(requester: Requester, *messages: Json, path: str = CHAT, **members: Any) -> httpx.Response:
    body = {"model": "site", "messages": [*messages]} | members
    return requester.send("POST", path, json=body, headers=members.pop("headers", {}))


def read_answer(response: httpx.Response) -> Json:
    assert response.status_code == 200, response.text
    choice = response.json()["choices"][0]
    return choice["message"] | {"finish_reason": choice["finish_reason"]}


def read_error(response: httpx.Response) -> tuple[int, str, str]:
    error = response.json()["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    return response.status_code, error["type"], error["message"]


def count_conversations(stage: Stage, scope: str = "site") -> int:
    """Count the conversations besides the stage's own."""
    return len(list_conversations(stage.resources, stage.caller, scope, limit=50).conversations) - 1


def call_client_tool(stage: Stage, requester: Requester) -> list[Json]:
    """Return the messages of a chat whose model has called the client's tool twice."""
    calls = reply_with_calls(tool_call_block("locate", exact=True), tool_call_block("locate"))
    stage.script_replies(calls, "You are in Bern.")
    first = read_answer(ask(requester, HELLO, tools=[LOCATE]))
    assert first["finish_reason"] == "tool_calls"
    return [HELLO, {"role": "assistant", "content": None, "tool_calls": first["tool_calls"]}]


def result(call: Json, content: str = "Bern") -> Json:
    return {"role": "tool", "tool_call_id": call["id"], "content": content}


def test_results_go_on_with_the_turn_and_may_be_sent_twice(stage: Stage, requester: Requester) -> None:
    messages = call_client_tool(stage, requester)
    messages += [result(call) for call in messages[-1]["tool_calls"]]
    assert read_answer(ask(requester, *messages))["content"] == "You are in Bern."
    assert read_answer(ask(requester, *messages))["content"] == "You are in Bern."
    assert len(stage.driver.requests) == 2
    assert count_conversations(stage) == 1
    stored = load_messages(stage.resources, "bakery", stage.turn.conversation)
    results = [block.data for row in stored for block in row.content if isinstance(block, ToolResultBlock)]
    assert results == ["Bern", "Bern"]


def test_one_result_of_two_is_refused_and_changes_nothing(stage: Stage, requester: Requester) -> None:
    messages = call_client_tool(stage, requester)
    first, second = messages[-1]["tool_calls"]
    status, kind, message = read_error(ask(requester, *messages, result(first)))
    assert (status, kind) == (400, "invalid_request_error")
    assert second["id"] in message
    assert first["id"] not in message
    assert len(stage.driver.requests) == 1


def test_results_of_calls_that_nobody_made_are_refused(stage: Stage, requester: Requester) -> None:
    messages = call_client_tool(stage, requester)
    turn = stage.turn.id
    for call_id in ("toolu_1", f"call_{turn}_7", "call_nothing_0", f"call_{turn}x_0"):
        response = ask(requester, *messages, {"role": "tool", "tool_call_id": call_id, "content": "x"})
        assert read_error(response)[:2] == (400, "invalid_request_error"), call_id


def test_results_for_a_turn_of_another_tenant_are_refused(stage: Stage, requester: Requester, rival: Requester) -> None:
    messages = call_client_tool(stage, requester)
    results = [result(call) for call in messages[-1]["tool_calls"]]
    assert read_error(ask(rival, *messages, *results))[0] == 400
    assert len(stage.driver.requests) == 1


def test_messages_find_their_conversation_also_after_calls(stage: Stage, requester: Requester) -> None:
    messages = call_client_tool(stage, requester)
    messages += [result(call) for call in messages[-1]["tool_calls"]]
    answer = read_answer(ask(requester, *messages))
    stage.script_replies("Of course.")
    again = [*messages, {"role": "assistant", "content": f"{answer['content']} "}, {"role": "user", "content": "Sure?"}]
    assert read_answer(ask(requester, *again))["content"] == "Of course."
    assert count_conversations(stage) == 1


def test_a_changed_history_begins_a_conversation_that_holds_it(stage: Stage, requester: Requester) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "x"}'}}
    stage.script_replies("Yes.")
    said = [
        {"role": "user", "content": "Look there"},
        {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"seen": true}'},
        {"role": "assistant", "content": "It is there."},
        {"role": "user", "content": "Really?"},
    ]
    assert read_answer(ask(requester, *said))["content"] == "Yes."
    sent = stage.driver.requests[-1].messages
    blocks = [block for message in sent for block in message.content]
    assert [block.text for block in blocks if isinstance(block, TextBlock)][:4] == [
        "Look there",
        "I look.",
        "It is there.",
        "Really?",
    ]
    assert [block.input for block in blocks if isinstance(block, ToolCallBlock)] == [{"at": "x"}]
    assert [block.data for block in blocks if isinstance(block, ToolResultBlock)] == [{"seen": True}]


def test_a_long_history_that_is_not_known_is_refused(stage: Stage, requester: Requester) -> None:
    pair = [HELLO, {"role": "assistant", "content": "Hi."}]
    assert read_error(ask(requester, *pair * 201, HELLO))[0] == 400


def test_a_conversation_of_another_caller_is_not_reached_by_its_id(
    stage: Stage, requester: Requester, rival: Requester
) -> None:
    stage.script_replies("Hi.")
    ask(requester, HELLO)
    turn = stage.turn
    assert ask(rival, HELLO, conversation=turn.conversation).status_code == 400
    response = ask(rival, path=RESPONSES, input="Hello", previous_response_id=f"resp_{turn.id}")
    assert read_error(response)[2].endswith("not found.")
    assert len(load_messages(stage.resources, "bakery", turn.conversation)) == 2


def test_the_same_idempotency_key_joins_the_turn(stage: Stage, requester: Requester) -> None:
    stage.script_replies("Hi.", "Never.")
    key = {"idempotency-key": "once"}
    answers = [read_answer(ask(requester, HELLO, headers=key))["content"] for _ in range(2)]
    assert answers == ["Hi.", "Hi."]
    assert count_conversations(stage) == 1


def test_instructions_reach_the_model_behind_those_of_the_agent(stage: Stage, requester: Requester) -> None:
    stage.script_replies("Hi.")
    ask(requester, {"role": "system", "content": "Rhyme."}, HELLO)
    request = stage.driver.requests[-1]
    assert "Rhyme." not in request.system
    assert "Rhyme." in request.volatile


def test_an_agent_of_the_tenant_is_a_model(stage: Stage, requester: Requester) -> None:
    push_definitions(stage.resources, stage.caller, make_definition(credential=stage.credential.id))
    for name in ("helper", "agent:helper"):
        stage.script_replies("Hi.")
        assert read_answer(ask(requester, HELLO, model=name))["content"] == "Hi."
        assert stage.turn.scope == "agent:helper"
    assert read_error(ask(requester, HELLO, model="nobody"))[0] == 404
    assert read_error(ask(requester, HELLO, model="planner"))[0] == 404


@pytest.mark.parametrize(
    ("code", "retryable", "status"),
    [
        ("provider_overloaded", True, 503),
        ("provider_request", False, 400),
        ("provider_quota", True, 429),
        ("provider_quota", False, 402),
    ],
)
def test_a_failure_has_a_status_by_which_clients_know_whether_to_repeat_it(
    code: str, retryable: bool, status: int, stage: Stage, requester: Requester
) -> None:
    failed = make_provider_error(code, retryable=retryable)
    stage.script_replies([failed], [failed], [failed])
    assert read_error(ask(requester, HELLO))[0] == status


def test_an_error_in_a_stream_is_its_last_event(stage: Stage, requester: Requester) -> None:
    stage.script_replies([make_provider_error("provider_request", retryable=False)])
    response = ask(requester, HELLO, stream=True)
    assert response.status_code == 200
    assert "error" in json.loads(response.text.strip().rpartition("data: ")[2])


@pytest.mark.parametrize(
    "members",
    [
        {"response_format": {"type": "grammar"}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "fact"}}},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a b", "schema": {}}}},
        {"n": 2},
        {"tools": [{"type": "web_search"}]},
        {"messages": []},
        {"messages": "Hello"},
    ],
)
def test_what_an_agent_cannot_do_is_refused_in_openais_form(members: Json, requester: Requester) -> None:
    assert read_error(ask(requester, HELLO, **members))[:2] == (400, "invalid_request_error")


@pytest.mark.parametrize("members", [{"temperature": 0.2}, {"max_tokens": 5}, {"unknown": {"a": 1}}, {"stream": None}])
def test_what_says_nothing_to_an_agent_is_ignored(members: Json, stage: Stage, requester: Requester) -> None:
    stage.script_replies("Hi.")
    assert read_answer(ask(requester, HELLO, **members))["content"] == "Hi."


def test_a_caller_without_a_token_gets_openais_error(requester: Requester) -> None:
    response = requester.send("POST", CHAT, json={}, headers={"authorization": "Bearer wrong"})
    assert read_error(response)[:2] == (401, "authentication_error")
    assert response.json()["error"]["code"] == "invalid_api_key"


def test_usage_counts_what_one_response_has_used(stage: Stage, requester: Requester) -> None:
    messages = call_client_tool(stage, requester)
    messages += [result(call) for call in messages[-1]["tool_calls"]]
    usage = ask(requester, *messages).json()["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (10, 5, 15)


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
def test_tools_may_be_called_round_after_round(path: str, stage: Stage, requester: Requester) -> None:
    stage.script_replies(
        reply_with_calls(tool_call_block("locate"), text="One."),
        reply_with_calls(tool_call_block("locate"), tool_call_block("locate"), text="Two."),
        "Three.",
    )
    said: list[Json] = [HELLO]
    texts = []
    for expected in (1, 2, 0):
        text, calls = run_step(requester, path, said)
        texts.append(text)
        assert len(calls) == expected
    assert texts == ["One.", "Two.", "Three."]
    assert len(stage.driver.requests) == 3


def run_step(requester: Requester, path: str, said: list[Json]) -> tuple[str, list[Json]]:
    """Send all messages or items, append the answer and results for its calls, and return text and calls."""
    if path == CHAT:
        message = read_answer(ask(requester, *said, tools=[LOCATE]))
        calls = message.get("tool_calls", [])
        said += [message, *map(result, calls)]
        return message["content"], calls
    tools = [{"type": "function", **LOCATE["function"]}]
    output = requester.send("POST", path, json={"model": "site", "input": said, "tools": tools}).json()["output"]
    calls = [item for item in output if item["type"] == "function_call"]
    said += [*output, *({"type": "function_call_output", "call_id": one["call_id"], "output": "x"} for one in calls)]
    return "".join(part["text"] for item in output if item["type"] == "message" for part in item["content"]), calls


def test_a_result_and_a_new_prompt_at_once_begin_a_conversation_with_both(stage: Stage, requester: Requester) -> None:
    messages = call_client_tool(stage, requester)
    messages += [result(call) for call in messages[-1]["tool_calls"]]
    stage.driver.scripts.clear()
    stage.script_replies("In Bern, as I said.")
    assert read_answer(ask(requester, *messages, {"role": "user", "content": "Where?"}))["content"].startswith(
        "In Bern"
    )
    assert count_conversations(stage) == 2


CITY: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
def test_an_answer_has_the_form_that_the_client_asks_for(path: str, stage: Stage, requester: Requester) -> None:
    stage.script_replies('{"town": "Bern"}', '```json\n{"city": "Bern"}\n```')
    if path == CHAT:
        form = {"type": "json_schema", "json_schema": {"name": "place", "schema": CITY}}
        text = read_answer(ask(requester, HELLO, response_format=form))["content"]
    else:
        form = {"type": "json_schema", "name": "place", "schema": CITY}
        text = read_texts(ask(requester, path=path, input="Where?", text={"format": form}).json())
    assert text == '{"city":"Bern"}'
    assert len(stage.driver.requests) == 2, "an answer of another form is asked for once more"
    output = stage.driver.requests[0].output
    assert output is not None
    assert (output.name, output.json_schema) == ("place", CITY)


def read_texts(response: Json) -> str:
    return "".join(part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"])


def test_an_answer_that_is_asked_for_as_json_is_an_object(stage: Stage, requester: Requester) -> None:
    stage.script_replies("[1]", '{"a": 1}')
    assert read_answer(ask(requester, HELLO, response_format={"type": "json_object"}))["content"] == '{"a":1}'


def test_the_form_holds_behind_the_results_of_calls(stage: Stage, requester: Requester) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "place", "schema": CITY}}
    stage.script_replies(reply_with_calls(tool_call_block("locate")), '{"city": "Bern"}')
    first = read_answer(ask(requester, HELLO, tools=[LOCATE], response_format=form))
    said = [HELLO, first, *map(result, first["tool_calls"])]
    assert read_answer(ask(requester, *said, response_format=form))["content"] == '{"city":"Bern"}'


def test_a_form_cannot_be_set_once_the_answer_has_begun(stage: Stage, requester: Requester) -> None:
    messages = call_client_tool(stage, requester)
    messages += [result(call) for call in messages[-1]["tool_calls"]]
    response = ask(requester, *messages, response_format={"type": "json_object"})
    assert "when it begins" in read_error(response)[2]


def test_an_agent_whose_answers_have_a_form_keeps_it(stage: Stage, requester: Requester) -> None:
    definition = make_definition(credential=stage.credential.id, properties={"output": {"type": "object"}})
    push_definitions(stage.resources, stage.caller, definition)
    response = ask(requester, HELLO, model="helper", response_format={"type": "json_object"})
    assert read_error(response)[:2] == (400, "invalid_request_error")
    assert not stage.driver.requests


def test_a_huge_schema_is_refused(requester: Requester) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"description": "x" * 50_001}}}
    assert read_error(ask(requester, HELLO, response_format=form))[0] == 413


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"logprobs": True}, "'logprobs' must be"),
        ({"functions": [{"name": "f"}]}, "'functions'"),
        ({"modalities": ["text", "audio"]}, "'modalities.1' must be"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "x"}}}}, "$.type"),
    ],
)
def test_what_an_answer_could_not_have_is_refused_before_a_turn_starts(
    stage: Stage, requester: Requester, members: Json, words: str
) -> None:
    status, _, message = read_error(ask(requester, HELLO, **members))
    assert status == 400
    assert words in message
    assert not stage.driver.requests


def test_a_response_that_could_not_have_its_probabilities_is_refused(stage: Stage, requester: Requester) -> None:
    body = {"model": "site", "input": "Hello", "top_logprobs": 3}
    status, _, message = read_error(requester.send("POST", "/v1/responses", json=body))
    assert (status, "'top_logprobs' must be" in message) == (400, True)
    assert not stage.driver.requests


def test_members_without_a_value_are_left_out(stage: Stage, requester: Requester) -> None:
    stage.script_replies("Hi.")
    left_out = {"logprobs": False, "functions": None, "modalities": ["text"], "stream_options": {"include_usage": None}}
    assert read_answer(ask(requester, HELLO, **left_out))["content"] == "Hi."


def test_results_that_are_sent_again_while_later_calls_wait_follow_the_same_answer(
    stage: Stage, requester: Requester
) -> None:
    stage.script_replies(reply_with_calls(tool_call_block("locate")), reply_with_calls(tool_call_block("locate")))
    first = read_answer(ask(requester, HELLO, tools=[LOCATE]))
    said = [HELLO, first, *map(result, first["tool_calls"])]
    second = read_answer(ask(requester, *said))
    assert read_answer(ask(requester, *said))["tool_calls"] == second["tool_calls"]


def test_what_is_wrong_with_a_body_is_said_by_the_names_that_the_client_knows(requester: Requester) -> None:
    empty = requester.send("POST", CHAT, json={"model": "site", "messages": []})
    assert read_error(empty)[2] == "Invalid request body. 'messages' must not be empty."
    odd = requester.send("POST", RESPONSES, json={"model": "site", "input": [7]})
    assert read_error(odd)[2] == "Invalid request body. 'input' must be a string. 'input.0' must be an object."
