"""How a conversation is said to Ollama. Every body here is checked as Ollama checks it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.drivers.ollama import OLLAMA
from fermata.words.blocks import BlobBlock, Block, ImageBlock, ReasoningBlock
from fermata.words.messages import Message
from fermata.words.model import Ask
from local.demo_model.strict import Refused
from local.demo_model.strict_ollama import check
from tests.unit.drivers.asks import SCHEMA, TOOLS, ask, call, model, picture, result, user
from tests.unit.drivers.histories import MODELS, histories, remembered

MODEL = MODELS["ollama"]
(THOUGHT,) = remembered("ollama", 1)


def accepted(asked: Ask) -> dict[str, Any]:
    raw = json.dumps(OLLAMA.body_of(asked, frozenset()), ensure_ascii=False).encode("utf-8", "replace")
    body: dict[str, Any] = json.loads(raw)
    check({}, body)
    return body


def messages(*rows: Message, **members: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = accepted(ask(*rows, **{"model": MODEL, "system": ""} | members))["messages"]
    return found


def test_a_whole_request() -> None:
    history = [
        user("Add prices", picture()),
        model(THOUGHT, "Let me look.", call("call_1"), call("call_2", "insertHtml", input={"html": "<p>"})),
        result("call_1", {"html": "<main>"}),
        result("call_2", ok=False, error="No such node", images=(picture(),)),
    ]
    functions = [
        {"name": "read_document", "description": "Reads the page.", "parameters": SCHEMA},
        {"name": "insertHtml", "description": "Inserts HTML.", "parameters": SCHEMA},
    ]
    assert accepted(ask(*history, model=MODEL, volatile="Page: Home", max_tokens=900)) == {
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
                "content": "No such node\n\n"
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
    short, long = (accepted(ask(user("x" * size)))["options"]["num_ctx"] for size in (1, 100_000))
    assert short == long == 32_768
    assert accepted(ask(user("a"), window_tokens=65_536))["options"]["num_ctx"] == 65_536


def test_on_the_last_round_there_are_no_tools() -> None:
    assert "tools" not in accepted(ask(user("a"), call_tools=False))


def test_a_model_is_told_to_think_only_with_a_budget() -> None:
    assert "think" not in accepted(ask(user("a")))
    assert accepted(ask(user("a"), thinking_tokens=2000))["think"] is True


def test_arguments_are_objects_whatever_the_call_held() -> None:
    calls = (call("t1", input=[1]), call("t2", input={"x": 1}, malformed=True))
    said = messages(user("a"), model(*calls), result("t1"), result("t2"))[1]["tool_calls"]
    assert [one["function"]["arguments"] for one in said] == [{}, {}]


@pytest.mark.parametrize("foreign", [*remembered("anthropic", 1), *remembered("openai-compatible", 1)])
def test_r9_thoughts_of_another_provider_are_dropped_whole(foreign: ReasoningBlock) -> None:
    assert not messages(user("a"), model(foreign, call("t1")), result("t1"))[1].get("thinking")


def test_a_request_begins_and_ends_with_a_person() -> None:
    assert [message["role"] for message in messages(model("Hello"))] == ["user", "assistant", "user"]


@pytest.mark.parametrize("block", [BlobBlock(blob="k", of="text", size=1), ImageBlock(mime_type="image/png", blob="k")])
def test_what_still_lies_in_the_bucket_is_our_own_mistake(block: Block) -> None:
    with pytest.raises(ValueError, match="must be fetched"):
        messages(user(block))


@given(rows=histories(), volatile=st.text(max_size=5), tools=st.booleans(), thinking=st.sampled_from([0, 2000]))
def test_any_healed_history_is_accepted(rows: list[Message], volatile: str, tools: bool, thinking: int) -> None:
    asked = ask(*rows, volatile=volatile, tools=TOOLS if tools else (), model=MODEL, thinking_tokens=thinking)
    accepted(asked)


def test_the_strict_check_itself_refuses_what_it_should() -> None:
    """The bodies above prove something only if this one can fail."""
    body = accepted(ask(user("a", picture()), model(call("t1")), result("t1")))
    body["messages"][2]["tool_calls"][0]["function"]["arguments"] = "{}"
    with pytest.raises(Refused, match=r"cannot unmarshal str into Go struct field ToolCallFunction\.arguments"):
        check({}, body)
    body["messages"][1]["images"] = ["data:image/png;base64,aGk="]
    with pytest.raises(Refused, match="illegal base64"):
        check({}, body)
