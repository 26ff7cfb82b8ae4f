"""The official Python client of OpenAI talks to agents: completions and responses, whole and streamed, with tools."""

import json
from collections.abc import Iterator
from typing import Any

import openai
import pydantic
import pytest

from fermata.aws.resources import Resources
from fermata.conversations.message_store import load_messages
from local.cloud import LocalCloud
from local.seed import TENANT
from tests.e2e.chat_session import open_http
from tests.e2e.demo_model_client import DemoModelClient, script_marker, text_step, tool_call_step
from tests.waiting import BACKSTOP_SECONDS

Json = dict[str, Any]
WEATHER: Json = {
    "name": "get_weather",
    "description": "Tells the weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CHAT_TOOLS: list[Any] = [{"type": "function", "function": WEATHER}]
RESPONSE_TOOLS: list[Any] = [{"type": "function", **WEATHER}]
TWO_CALLS = tool_call_step(("get_weather", {"city": "Bern"}), ("get_weather", {"city": "Rome"}), text="I look.")


@pytest.fixture(scope="module")
def api_key(cloud: LocalCloud) -> str:
    """A key of the tenant, as a program has it."""
    new = {"label": "OpenAI client", "capabilities": ["ai.chat", "ai.tools.write"]}
    with open_http(cloud) as http:
        made = http.post("/api-keys", json=new)
    assert made.status_code == 201, made.text
    return str(made.json()["key"])


@pytest.fixture(scope="module")
def client(cloud: LocalCloud, api_key: str) -> Iterator[openai.OpenAI]:
    http = openai.DefaultHttpxClient(trust_env=False, timeout=BACKSTOP_SECONDS)
    with openai.OpenAI(base_url=f"{cloud.url}/v1", api_key=api_key, http_client=http, max_retries=0) as client:
        yield client


def scripted(model: DemoModelClient, *steps: Json, words: str = "Hello.") -> str:
    return f"{words} {script_marker(model.add_script(*steps))}"


def read_key(prompt: str) -> str:
    return prompt.partition("[[script:")[2].rstrip("]")


def test_agents_are_listed_as_models(client: openai.OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert {"site", "content"} <= set(names)
    assert "planner" not in names
    assert client.models.retrieve("site").owned_by == "fermata"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nobody")


def test_a_completion_is_whole_or_streamed_with_its_usage(client: openai.OpenAI, model: DemoModelClient) -> None:
    prompt = scripted(model, text_step("Good morning to you."), text_step("Good evening to you."))
    messages: list[Any] = [{"role": "system", "content": "Be polite."}, {"role": "user", "content": prompt}]
    whole = client.chat.completions.create(model="site", messages=messages)
    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == ("Good morning to you.", "stop")
    assert whole.usage is not None
    assert whole.usage.prompt_tokens > 0
    assert whole.usage.completion_tokens > 0
    assert "Be polite." in json.dumps(model.list_requests(read_key(prompt))[0]["body"])

    options: Any = {"include_usage": True}
    chunks = list(client.chat.completions.create(model="site", messages=messages, stream=True, stream_options=options))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "Good evening to you."
    assert [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason] == ["stop"]
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens > 0
    assert chunks[0].choices[0].delta.role == "assistant"


@pytest.mark.parametrize("is_streamed", [False, True])
def test_tools_of_the_client_run_between_two_completions(
    is_streamed: bool, client: openai.OpenAI, model: DemoModelClient
) -> None:
    prompt = scripted(model, TWO_CALLS, text_step("Sun in both."))
    messages: list[Any] = [{"role": "user", "content": prompt}]
    first = complete(client, messages, is_streamed=is_streamed)
    assert (first["content"], first["finish_reason"]) == ("I look.", "tool_calls")
    calls = first["tool_calls"]
    assert [json.loads(call["function"]["arguments"]) for call in calls] == [{"city": "Bern"}, {"city": "Rome"}]
    messages.append({"role": "assistant", "content": first["content"], "tool_calls": calls})

    with pytest.raises(openai.BadRequestError, match="needs its result"):
        complete(client, [*messages, {"role": "tool", "tool_call_id": calls[0]["id"], "content": "sun"}])
    messages += [{"role": "tool", "tool_call_id": call["id"], "content": '{"sky":"sun"}'} for call in calls]
    second = complete(client, messages, is_streamed=is_streamed)
    assert (second["content"], second["finish_reason"]) == ("Sun in both.", "stop")
    assert second["usage"]["completion_tokens"] > 0
    assert complete(client, messages)["content"] == "Sun in both.", "the same request again"

    asked = model.list_requests(read_key(prompt))
    assert len(asked) == 2
    assert json.dumps(asked[1]["body"]).count('{\\"sky\\":\\"sun\\"}') == 2


def complete(client: openai.OpenAI, messages: list[Any], *, is_streamed: bool = False) -> Json:
    """Return the message of a completion with its finish reason and usage, as if it had come whole."""
    if not is_streamed:
        made = client.chat.completions.create(model="site", messages=messages, tools=CHAT_TOOLS)
        choice = made.choices[0]
        assert made.usage is not None
        message = choice.message.model_dump(exclude_none=True)
        return message | {"finish_reason": choice.finish_reason, "usage": made.usage.model_dump()}
    with client.chat.completions.stream(
        model="site", messages=messages, tools=CHAT_TOOLS, stream_options={"include_usage": True}
    ) as stream:
        final = stream.get_final_completion()
    message = final.choices[0].message.model_dump(exclude_none=True, exclude={"parsed"})
    for call in message.get("tool_calls", ()):
        call.pop("index", None)
        call["function"].pop("parsed_arguments", None)
    assert final.usage is not None
    return message | {"finish_reason": final.choices[0].finish_reason, "usage": final.usage.model_dump()}


def list_conversations(cloud: LocalCloud, api_key: str) -> list[Json]:
    with open_http(cloud, api_key) as http:
        return list(http.get("/conversations", params={"scope": "site"}).json()["conversations"])


def test_messages_sent_again_go_on_with_their_conversation_and_changed_ones_begin_another(
    cloud: LocalCloud, resources: Resources, client: openai.OpenAI, api_key: str, model: DemoModelClient
) -> None:
    prompt = scripted(model, text_step("One."), text_step("Two."), text_step("Three."))
    messages: list[Any] = [{"role": "user", "content": prompt}]

    def ask(words: str) -> str | None:
        return (
            client.chat.completions.create(model="site", messages=[*messages, user(words)]).choices[0].message.content
        )

    def user(words: str) -> Json:
        return {"role": "user", "content": f"{words} {script_marker(read_key(prompt))}"}

    answer = client.chat.completions.create(model="site", messages=messages).choices[0].message
    before = list_conversations(cloud, api_key)
    messages.append({"role": "assistant", "content": answer.content})
    assert ask("And then?") == "Two."
    assert len(list_conversations(cloud, api_key)) == len(before)

    assert ask("And otherwise?") == "Three.", "the conversation has gone on, so this is another one"
    after = list_conversations(cloud, api_key)
    assert len(after) == len(before) + 1
    new_id = next(one["id"] for one in after if one["id"] not in {other["id"] for other in before})
    stored = load_messages(resources, TENANT, new_id)
    assert [message.role for message in stored] == ["user", "assistant", "user", "assistant"]
    sent = json.dumps(model.list_requests(read_key(prompt))[-1]["body"]["messages"])
    assert "One." in sent
    assert "And then?" not in sent


def test_a_conversation_can_be_named(
    cloud: LocalCloud, client: openai.OpenAI, api_key: str, model: DemoModelClient
) -> None:
    prompt = scripted(model, text_step("One."), text_step("Two."))
    count = len(list_conversations(cloud, api_key))
    for expected in ("One.", "Two."):
        made = client.chat.completions.create(
            model="site", messages=[{"role": "user", "content": prompt}], metadata={"conversation": "my chat"}
        )
        assert made.choices[0].message.content == expected
    assert len(list_conversations(cloud, api_key)) == count + 1


def test_errors_are_those_that_the_client_knows(
    cloud: LocalCloud, client: openai.OpenAI, model: DemoModelClient
) -> None:
    hello: list[Any] = [{"role": "user", "content": "Hello"}]
    with pytest.raises(openai.AuthenticationError) as wrong_key:
        client.with_options(api_key="fmk_local_0000000000000000_x").chat.completions.create(
            model="site", messages=hello
        )
    assert wrong_key.value.code == "invalid_api_key"
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="nobody", messages=hello)
    with pytest.raises(openai.BadRequestError, match="cannot be read"):
        client.chat.completions.create(
            model="site",
            messages=[{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}],  # type: ignore[typeddict-item,list-item]
        )
    refused = scripted(model, {"status": 400, "error": {"type": "invalid_request_error", "message": "No such thing."}})
    with pytest.raises(openai.BadRequestError, match="No such thing"):
        client.chat.completions.create(model="site", messages=[{"role": "user", "content": refused}])
    refused = scripted(model, {"status": 400, "error": {"type": "invalid_request_error", "message": "No such thing."}})
    with pytest.raises(openai.APIError, match="No such thing"):
        list(client.chat.completions.create(model="site", messages=[{"role": "user", "content": refused}], stream=True))


@pytest.mark.parametrize("is_streamed", [False, True])
def test_responses_name_the_one_before_and_call_tools_of_the_client(
    is_streamed: bool, client: openai.OpenAI, model: DemoModelClient
) -> None:
    prompt = scripted(
        model, TWO_CALLS, text_step("Sun in both."), text_step("You asked about Bern."), text_step("Rome.")
    )
    first = respond(client, is_streamed, input=prompt, instructions="Be polite.", tools=RESPONSE_TOOLS)
    assert first.output_text == "I look."
    calls = [item for item in first.output if item.type == "function_call"]
    assert [json.loads(call.arguments) for call in calls] == [{"city": "Bern"}, {"city": "Rome"}]
    results = [{"type": "function_call_output", "call_id": call.call_id, "output": "sun"} for call in calls]
    second = respond(client, is_streamed, input=results, previous_response_id=first.id)
    assert (second.output_text, second.status) == ("Sun in both.", "completed")
    assert second.usage is not None
    assert second.usage.output_tokens > 0
    assert second.id != first.id
    again = f"Which cities? {script_marker(read_key(prompt))}"
    third = respond(client, is_streamed, input=again, previous_response_id=second.id)
    assert third.output_text == "You asked about Bern."
    assert "Sun in both." in json.dumps(model.list_requests(read_key(prompt))[-1]["body"]["messages"])
    branch = respond(
        client, False, input=f"And Rome? {script_marker(read_key(prompt))}", previous_response_id=second.id
    )
    assert branch.status == "completed"
    sent = json.dumps(model.list_requests(read_key(prompt))[-1]["body"]["messages"])
    assert ("Sun in both." in sent, "Which cities?" in sent) == (True, False)
    with pytest.raises(openai.BadRequestError, match="not found"):
        respond(client, False, input="x", previous_response_id="resp_nothing")


def respond(client: openai.OpenAI, is_streamed: bool, **members: Any) -> Any:
    if not is_streamed:
        return client.responses.create(model="site", **members)
    with client.responses.stream(model="site", **members) as stream:
        for _ in stream:
            pass
        return stream.get_final_response()


def test_answers_of_a_schema_are_parsed_by_the_package(client: openai.OpenAI, model: DemoModelClient) -> None:
    class Place(pydantic.BaseModel):
        city: str

    prompt = scripted(model, text_step('{"city": "Bern"}'), text_step('{"city": "Rome"}'))
    messages: list[Any] = [{"role": "user", "content": prompt}]
    completion = client.chat.completions.parse(model="site", messages=messages, response_format=Place)
    assert completion.choices[0].message.parsed == Place(city="Bern")
    response = client.responses.parse(model="site", input=prompt, text_format=Place)
    assert response.output_parsed == Place(city="Rome")


def test_a_response_is_read_followed_and_deleted_by_the_package(client: openai.OpenAI, model: DemoModelClient) -> None:
    made = client.responses.create(model="site", input=scripted(model, text_step("Good morning.")), background=True)
    with client.responses.retrieve(made.id, stream=True) as stream:
        last = list(stream)[-1]
    assert last.type == "response.completed"
    assert last.response.output_text == "Good morning."
    assert client.responses.retrieve(made.id).output_text == "Good morning."
    assert client.responses.cancel(made.id).status == "completed"
    client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)


def test_a_person_approves_a_call_through_the_package(
    cloud: LocalCloud, client: openai.OpenAI, model: DemoModelClient
) -> None:
    rule = {"rules": [{"effect": "ask", "tools": ["get_weather"]}]}
    with open_http(cloud) as http:
        key = http.post("/api-keys", json={"label": "Approver", "capabilities": ["ai.chat", "ai.tools.approve"]}).json()
        assert http.put("/approval-policy", json=rule).status_code == 200
    try:
        prompt = scripted(model, tool_call_step(("get_weather", {"city": "Bern"})), text_step("Sun."))
        approver = client.with_options(api_key=key["key"])
        first = respond(approver, True, input=prompt, tools=RESPONSE_TOOLS)
        asked = first.output[-1]
        assert (asked.type, asked.name, json.loads(asked.arguments)) == (
            "mcp_approval_request",
            "get_weather",
            {"city": "Bern"},
        )
        yes: Any = {"type": "mcp_approval_response", "approval_request_id": asked.id, "approve": True}
        second = respond(approver, False, input=[yes], previous_response_id=first.id)
        call = second.output[-1]
        assert call.type == "function_call"
        result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "sun"}
        assert respond(approver, True, input=[result], previous_response_id=second.id).output_text == "Sun."
    finally:
        with open_http(cloud) as http:
            http.put("/approval-policy", json={}).raise_for_status()
