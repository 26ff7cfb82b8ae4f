"""Bodies of requests to Ollama; each is checked as Ollama checks it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.domain.blocks import BlobBlock, Block, ImageBlock, ReasoningBlock
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest
from fermata.drivers.providers import ollama
from local.demo_model.request_checks.errors import RequestRejected
from local.demo_model.request_checks.ollama_chat import check_request
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

MODEL = MODELS["ollama"]
(THOUGHT,) = reasoning_blocks("ollama", 1)


def build_accepted_body(request: ModelRequest) -> dict[str, Any]:
    raw = json.dumps(ollama.PROVIDER.build_body(request, frozenset()), ensure_ascii=False).encode("utf-8", "replace")
    body: dict[str, Any] = json.loads(raw)
    check_request({}, body)
    return body


def build_messages(*rows: Message, **members: Any) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = build_accepted_body(
        model_request(*rows, **{"model": MODEL, "system": ""} | members)
    )["messages"]
    return messages


def test_a_whole_request() -> None:
    history = [
        user_message("Add prices", image_block()),
        model_message(
            THOUGHT, "Let me look.", tool_call("call_1"), tool_call("call_2", "insertHtml", input={"html": "<p>"})
        ),
        tool_result("call_1", {"html": "<main>"}),
        tool_result("call_2", ok=False, error="No such node", images=(image_block(),)),
    ]
    functions = [
        {"name": "read_document", "description": "Reads the page.", "parameters": SCHEMA},
        {"name": "insertHtml", "description": "Inserts HTML.", "parameters": SCHEMA},
    ]
    assert build_accepted_body(model_request(*history, model=MODEL, volatile="Page: Home", max_tokens=900)) == {
        "model": MODEL,
        "messages": [
            {"role": "system", "content": "You edit pages."},
            {"role": "user", "content": "Add prices\n\n<context>\nPage: Home\n</context>", "images": ["aGk="]},
            {
                "role": "assistant",
                "content": "Let me look.",
                "thinking": "Hm.",
                "tool_calls": [
                    {"id": "call_1", "function": {"index": 0, "name": "read_document", "arguments": {}}},
                    {"id": "call_2", "function": {"index": 1, "name": "insertHtml", "arguments": {"html": "<p>"}}},
                ],
            },
            {
                "role": "tool",
                "tool_name": "read_document",
                "tool_call_id": "call_1",
                "content": '{"html":"<main>"}',
            },
            {
                "role": "tool",
                "tool_name": "insertHtml",
                "tool_call_id": "call_2",
                "content": "No such node" + "\n\n"
                "[1 screenshot(s) omitted: this provider delivers tool results as text only.]",
            },
        ],
        "stream": True,
        "truncate": False,
        "shift": False,
        "options": {"num_ctx": 32_768, "num_predict": 900 + 8192},
        "tools": [{"type": "function", "function": function} for function in functions],
    }


def test_pp13_every_request_asks_for_the_same_window_so_that_the_model_stays_loaded() -> None:
    short, long = (
        build_accepted_body(model_request(user_message("x" * size)))["options"]["num_ctx"] for size in (1, 100_000)
    )
    assert short == long == 32_768
    assert build_accepted_body(model_request(user_message("a"), window_tokens=65_536))["options"]["num_ctx"] == 65_536


def test_on_the_last_round_there_are_no_tools() -> None:
    assert "tools" not in build_accepted_body(model_request(user_message("a"), call_tools=False))


def test_thinking_is_requested_only_with_a_budget() -> None:
    assert "think" not in build_accepted_body(model_request(user_message("a")))
    assert build_accepted_body(model_request(user_message("a"), thinking_tokens=2000))["think"] is True


def test_arguments_are_always_objects() -> None:
    calls = (tool_call("t1", input=[1]), tool_call("t2", input={"x": 1}, malformed=True))
    sent_calls = build_messages(user_message("a"), model_message(*calls), tool_result("t1"), tool_result("t2"))[1][
        "tool_calls"
    ]
    assert [call["function"]["arguments"] for call in sent_calls] == [{}, {}]


@pytest.mark.parametrize("foreign", [*reasoning_blocks("anthropic", 1), *reasoning_blocks("openai-compatible", 1)])
def test_r9_reasoning_of_another_provider_is_dropped(foreign: ReasoningBlock) -> None:
    assert not build_messages(user_message("a"), model_message(foreign, tool_call("t1")), tool_result("t1"))[1].get(
        "thinking"
    )


def test_a_request_begins_and_ends_with_the_user() -> None:
    assert [message["role"] for message in build_messages(model_message("Hello"))] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    "block", [BlobBlock(blob="k", replaced_kind="text", size=1), ImageBlock(mime_type="image/png", blob="k")]
)
def test_a_blob_that_was_not_fetched_is_a_programming_error(block: Block) -> None:
    with pytest.raises(ValueError, match="must be fetched"):
        build_messages(user_message(block))


@given(rows=histories(), volatile=st.text(max_size=5), tools=st.booleans(), thinking=st.sampled_from([0, 2000]))
def test_any_compiled_history_is_accepted(rows: list[Message], volatile: str, tools: bool, thinking: int) -> None:
    request = model_request(
        *rows, volatile=volatile, tools=TOOLS if tools else (), model=MODEL, thinking_tokens=thinking
    )
    build_accepted_body(request)


def test_the_strict_check_itself_refuses_invalid_bodies() -> None:
    """The tests above prove something only if the check can fail."""
    body = build_accepted_body(
        model_request(user_message("a", image_block()), model_message(tool_call("t1")), tool_result("t1"))
    )
    body["messages"][2]["tool_calls"][0]["function"]["arguments"] = "{}"
    with pytest.raises(RequestRejected, match=r"cannot unmarshal str into Go struct field ToolCallFunction\.arguments"):
        check_request({}, body)
    body["messages"][1]["images"] = ["data:image/png;base64,aGk="]
    with pytest.raises(RequestRejected, match="illegal base64"):
        check_request({}, body)
