"""Bodies of Responses requests; each is checked as the real APIs check it."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.domain.blocks import BlobBlock, Block, ImageBlock, ReasoningBlock
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest
from fermata.drivers.adjustments import OMIT_REASONING_ITEMS
from fermata.drivers.provider import Provider
from fermata.drivers.registry import get_provider
from local.demo_model.request_checks.errors import RequestRejected
from local.demo_model.request_checks.openai_responses import check_request
from tests.unit.drivers.conversation_builders import (
    SCHEMA,
    TOOLS,
    image_block,
    model_message,
    model_request,
    tool_call,
    tool_result,
    user_message,
)
from tests.unit.drivers.history_strategies import MODELS, histories, reasoning_blocks

HEADERS = {"authorization": "Bearer k"}
NONE: frozenset[str] = frozenset()
OPENAI, OPENROUTER = get_provider("openai"), get_provider("openrouter")
EITHER = pytest.mark.parametrize("provider", [OPENAI, OPENROUTER], ids=["openai", "openrouter"])


def build_accepted_body(
    request: ModelRequest, provider: Provider = OPENAI, adjusted: frozenset[str] = NONE
) -> dict[str, Any]:
    raw = json.dumps(provider.build_body(request, adjusted), ensure_ascii=False).encode("utf-8", "replace")
    body: dict[str, Any] = json.loads(raw)
    check_request(HEADERS, body, is_openrouter=provider is OPENROUTER)
    return body


def openai(*rows: Message, **members: Any) -> ModelRequest:
    return model_request(*rows, **{"model": MODELS["openai"]} | members)


def items(*rows: Message, provider: Provider = OPENAI, **members: Any) -> list[dict[str, Any]]:
    input_items: list[dict[str, Any]] = build_accepted_body(openai(*rows, **members), provider)["input"]
    return input_items


def text_content(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


HISTORY = (
    user_message("Add prices", image_block()),
    model_message(
        *reasoning_blocks("openai", 1),
        "Let me look.",
        tool_call("call_1"),
        tool_call("call_2", "insertHtml", input={"html": "<p>"}),
    ),
    tool_result("call_1", {"html": "<main>"}),
    tool_result("call_2", ok=False, error="No such node"),
)


def test_a_whole_request_to_openai() -> None:
    tools = [
        {"type": "function", "name": name, "description": text, "parameters": SCHEMA, "strict": False}
        for name, text in (("read_document", "Reads the page."), ("insertHtml", "Inserts HTML."))
    ]
    assert build_accepted_body(openai(*HISTORY, volatile="Page: Home", scope="site", max_tokens=900)) == {
        "model": "gpt-5.2",
        "stream": True,
        "store": False,
        "instructions": "You edit pages.",
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [
                    text_content("Add prices"),
                    {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"},
                    text_content("<context>\nPage: Home\n</context>"),
                ],
            },
            {"type": "reasoning", "summary": [], "encrypted_content": "sealed:gpt-5.2:1"},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Let me look."}],
                "phase": "commentary",
            },
            {"type": "function_call", "call_id": "call_1", "name": "read_document", "arguments": "{}"},
            {"type": "function_call", "call_id": "call_2", "name": "insertHtml", "arguments": '{"html":"<p>"}'},
            {"type": "function_call_output", "call_id": "call_1", "output": '{"html":"<main>"}'},
            {"type": "function_call_output", "call_id": "call_2", "output": "No such node"},
        ],
        "tools": tools,
        "max_output_tokens": 25_900,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": build_accepted_body(openai(user_message("x"), scope="site"))["prompt_cache_key"],
    }


def test_openrouter_gets_items_with_ids_and_no_cache_key() -> None:
    name = MODELS["openrouter"]
    rows = (
        user_message("a"),
        model_message(*reasoning_blocks("openrouter", 1), "Reading.", tool_call("call_1")),
        tool_result("call_1", 1),
    )
    body = build_accepted_body(model_request(*rows, model=name, scope="site"), OPENROUTER)
    assert "prompt_cache_key" not in body
    assert body["max_output_tokens"] == 8192 * 2
    thought, message, called, _ = body["input"][1:]
    assert thought == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": f"sealed:{name}:1",
        "format": "x-v1",
    }
    assert (message["id"], message["status"]) == ("msg_1", "completed")
    assert called["id"] == "fc_call_1"


def test_a_model_without_reasoning_is_asked_for_none() -> None:
    body = build_accepted_body(openai(user_message("a"), model="gpt-4.1", thinking_tokens=5000))
    assert not body.keys() & {"include", "reasoning"}
    assert body["max_output_tokens"] == 8192
    chat = build_accepted_body(openai(user_message("a"), model="gpt-5-chat-latest"))
    assert "include" not in chat


@pytest.mark.parametrize(("tokens", "effort"), [(1, "low"), (5000, "medium"), (20_000, "high")])
def test_a_thinking_budget_becomes_an_effort_and_raises_the_limit(tokens: int, effort: str) -> None:
    body = build_accepted_body(openai(user_message("a"), thinking_tokens=tokens))
    assert body["reasoning"] == {"effort": effort, "summary": "auto"}
    assert body["max_output_tokens"] == 8192 + tokens


@EITHER
def test_without_tools_and_system_there_is_only_the_conversation(provider: Provider) -> None:
    body = build_accepted_body(openai(user_message("a"), system=" ", tools=(), model="gpt-4.1", max_tokens=1), provider)
    assert not body.keys() & {"tools", "instructions", "tool_choice"}
    assert body["max_output_tokens"] >= 16


@EITHER
def test_on_the_last_round_the_tools_stay_but_may_not_be_called(provider: Provider) -> None:
    body = build_accepted_body(openai(user_message("a"), call_tools=False), provider)
    assert body["tool_choice"] == "none"
    assert body["tools"] == build_accepted_body(openai(user_message("a")), provider)["tools"]


@EITHER
def test_a_success_without_data_says_so_and_an_empty_error_says_something(provider: Provider) -> None:
    rows = (
        user_message("a"),
        model_message(tool_call("t1"), tool_call("t2")),
        tool_result("t1"),
        tool_result("t2", ok=False, error=" "),
    )
    assert [item["output"] for item in items(*rows, provider=provider)[-2:]] == [
        '{"ok":true}',
        "The tool failed.",
    ]


@EITHER
def test_a_malformed_call_is_sent_back_without_arguments(provider: Provider) -> None:
    broken = model_message(tool_call("t1", input={"x": 1}, malformed=True), tool_call("t2", input=[1]))
    rows = (
        user_message("a"),
        broken,
        tool_result("t1", ok=False, error="cut off"),
        tool_result("t2", ok=False, error="Expected object"),
    )
    calls = [item for item in items(*rows, provider=provider) if item["type"] == "function_call"]
    assert [one["arguments"] for one in calls] == ["{}", "{}"]


@EITHER
@pytest.mark.parametrize("foreign", [*reasoning_blocks("anthropic", 1), *reasoning_blocks("ollama", 1)])
def test_r9_reasoning_of_another_provider_is_dropped(foreign: ReasoningBlock, provider: Provider) -> None:
    rows = (user_message("a"), model_message(foreign, tool_call("t1")), tool_result("t1"))
    assert [item["type"] for item in items(*rows, provider=provider)] == [
        "message",
        "function_call",
        "function_call_output",
    ]


@EITHER
def test_r9_reasoning_of_another_model_is_dropped(provider: Provider) -> None:
    rows = (
        user_message("a"),
        model_message(*reasoning_blocks(provider.name, 1), "b", tool_call("t1")),
        tool_result("t1"),
    )
    sent = items(*rows, provider=provider, model="o4-mini")
    assert "reasoning" not in [item["type"] for item in sent]
    assert "phase" not in sent[1]


@EITHER
def test_r11_reasoning_that_nothing_follows_is_left_out(provider: Provider) -> None:
    """Its calls may have been dropped, or the output limit came before the answer."""
    name = MODELS[provider.name]
    rows = (user_message("a"), model_message(*reasoning_blocks(provider.name, 1)), user_message("b"))
    assert [item["role"] for item in items(*rows, provider=provider, model=name)] == ["user"]


def test_r12_an_item_id_occurs_once_in_a_request() -> None:
    twice = reasoning_blocks("openrouter", 7)[0]
    rows = (
        user_message("a"),
        model_message(twice, tool_call("t1")),
        tool_result("t1"),
        model_message(twice, tool_call("t2")),
        tool_result("t2"),
    )
    sent = items(*rows, provider=OPENROUTER, model=MODELS["openrouter"])
    assert [item["id"] for item in sent if item["type"] == "reasoning"] == ["rs_7"]


def test_reasoning_without_encrypted_content_is_of_no_use_to_openai() -> None:
    bare = ReasoningBlock(provider="openai", model=MODELS["openai"], payload={"type": "reasoning", "id": "rs_1"})
    rows = (user_message("a"), model_message(bare, tool_call("t1")), tool_result("t1"))
    assert "reasoning" not in [item["type"] for item in items(*rows)]


@EITHER
def test_reasoning_items_can_be_left_out(provider: Provider) -> None:
    rows = (
        user_message("a"),
        model_message(*reasoning_blocks(provider.name, 1), "b", tool_call("t1")),
        tool_result("t1"),
    )
    body = build_accepted_body(
        model_request(*rows, model=MODELS[provider.name]), provider, frozenset({OMIT_REASONING_ITEMS})
    )
    assert "reasoning" not in [item["type"] for item in body["input"]]


@EITHER
def test_call_ids_of_other_providers_become_short_and_unique(provider: Provider) -> None:
    long = "x" * 90
    rows = [user_message("a")]
    for _ in range(2):
        rows += [
            model_message(tool_call("call:0|fc"), tool_call(long)),
            tool_result("call:0|fc", 1),
            tool_result(long, 2),
        ]
    call_ids = [item["call_id"] for item in items(*rows, provider=provider) if "call_id" in item]
    assert call_ids[:2] == call_ids[2:4]
    assert call_ids[4:6] == call_ids[6:8] == ["call_0_fc_2", "x" * 62 + "_2"]


@EITHER
def test_results_follow_their_calls_even_with_text_in_between(provider: Provider) -> None:
    rows = (
        user_message("a"),
        model_message(tool_call("t1"), tool_call("t2")),
        tool_result("t1", 1),
        user_message("stop!"),
        tool_result("t2", 2),
    )
    assert [item.get("call_id", item.get("role")) for item in items(*rows, provider=provider)] == [
        "user",
        *["t1", "t2"] * 2,
        "user",
    ]


@EITHER
def test_a_request_begins_and_ends_with_the_user(provider: Provider) -> None:
    def content(*rows: Message) -> list[Any]:
        return [item["content"] for item in items(*rows, provider=provider)]

    assert content(model_message("Hello"))[0] == [text_content("Continue.")]
    assert content(user_message("a"), model_message("half an ans"))[-1] == [text_content("Continue.")]
    assert content() == [[text_content("Continue.")]]


@EITHER
@pytest.mark.parametrize(
    "block", [BlobBlock(blob="k", replaced_kind="text", size=1), ImageBlock(mime_type="image/png", blob="k")]
)
def test_a_blob_that_was_not_fetched_is_a_programming_error(block: Block, provider: Provider) -> None:
    with pytest.raises(ValueError, match="must be fetched"):
        provider.build_body(openai(user_message(block)), NONE)


def _turn(number: int, rounds: int) -> tuple[list[Message], list[int]]:
    """Return one turn's rows, and after how many of them a request is sent."""
    rows, request_points = [user_message(f"Prompt {number}")], [1]
    for at in range(rounds):
        name = f"t{number}_{at}"
        rows += [model_message(*reasoning_blocks("openai", number * 10 + at), tool_call(name)), tool_result(name, at)]
        request_points.append(len(rows))
    return [*rows, model_message("Done")], request_points


@EITHER
def test_kc1_within_a_turn_each_request_begins_with_the_last_one_to_the_byte(provider: Provider) -> None:
    before: list[Message] = []
    for number in range(3):
        rows, request_points = _turn(number, 3)
        requests = [
            [json.dumps(item) for item in items(*before, *rows[:at], provider=provider, volatile=f"It is {number}")]
            for at in request_points
        ]
        for shorter, longer in itertools.pairwise(requests):
            assert longer[: len(shorter)] == shorter
        before += rows


@EITHER
def test_kc1_volatile_text_follows_the_newest_prompt_only(provider: Provider) -> None:
    first, _ = _turn(0, 1)
    second, _ = _turn(1, 1)
    body = build_accepted_body(openai(*first, *second[:-1], volatile="It is late"), provider)
    texts = [json.dumps(item) for item in body["input"]]
    assert [at for at, text in enumerate(texts) if "It is late" in text] == [
        at for at, text in enumerate(texts) if "Prompt 1" in text
    ]
    assert body["instructions"] == "You edit pages."


@EITHER
@given(rows=histories(), volatile=st.text(max_size=5), tools=st.booleans(), name=st.sampled_from([*MODELS.values()]))
def test_any_compiled_history_is_accepted(
    provider: Provider, rows: list[Message], volatile: str, tools: bool, name: str
) -> None:
    build_accepted_body(model_request(*rows, volatile=volatile, tools=TOOLS if tools else (), model=name), provider)


def test_the_strict_check_itself_refuses_invalid_bodies() -> None:
    """The tests above prove something only if the check can fail."""

    def refusal(change: Any) -> str:
        body = build_accepted_body(openai(*HISTORY))
        change(body)
        with pytest.raises(RequestRejected) as caught:
            check_request(HEADERS, body)
        return caught.value.message

    assert "No tool output found" in refusal(lambda body: body["input"].pop())
    assert "No tool call found" in refusal(lambda body: body["input"].pop(3))
    assert "not found" in refusal(lambda body: body["input"][1].update(id="rs_1"))
    assert "summary" in refusal(lambda body: body["input"][1].pop("summary"))
    assert "could not be verified" in refusal(lambda body: body.update(model="o3"))
    assert "following item" in refusal(lambda body: body["input"].insert(0, body["input"].pop(1)))
    assert "would become required" in refusal(lambda body: body["tools"][0].pop("strict"))
    assert "Unknown parameter" in refusal(lambda body: body.update(max_tokens=1))
    assert "Supported values" in refusal(lambda body: body["input"][2]["content"][0].update(type="input_text"))
