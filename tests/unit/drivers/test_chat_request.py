"""Bodies of chat-completions requests; each is checked as real servers check it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.domain.blocks import BlobBlock, Block, ImageBlock, ReasoningBlock
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest
from fermata.domain.tools import ToolSpec
from fermata.drivers.adjustments import ADD_PLACEHOLDER_SIGNATURES, NINE_CHARACTER_CALL_IDS
from fermata.drivers.protocols.chat_completions.request import (
    ADD_EMPTY_REASONING,
    OMIT_REASONING_FIELDS,
)
from fermata.drivers.providers import openai_compatible
from local.demo_model.request_checks.chat_completions import check_request
from local.demo_model.request_checks.errors import RequestRejected
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

MODEL = MODELS["openai-compatible"]
THOUGHT, SIGNATURE = reasoning_blocks("openai-compatible", 1)


def build_accepted_body(request: ModelRequest, *adjusted: str) -> dict[str, Any]:
    raw = json.dumps(openai_compatible.PROVIDER.build_body(request, frozenset(adjusted)), ensure_ascii=False)
    body: dict[str, Any] = json.loads(raw.encode("utf-8", "replace"))
    check_request({}, body)
    return body


def build_messages(*rows: Message, adjusted: tuple[str, ...] = (), **members: Any) -> list[dict[str, Any]]:
    request = model_request(*rows, **{"model": MODEL, "system": ""} | members)
    messages: list[dict[str, Any]] = build_accepted_body(request, *adjusted)["messages"]
    return messages


def build_roles(*rows: Message) -> list[str]:
    return [message["role"] for message in build_messages(*rows)]


def test_a_whole_request() -> None:
    history = [
        user_message("Add prices", image_block()),
        model_message(
            THOUGHT,
            "Let me look.",
            tool_call("call_1"),
            SIGNATURE,
            tool_call("call_2", "insertHtml", input={"html": "<p>"}),
        ),
        tool_result("call_1", {"html": "<main>"}),
        tool_result("call_2", ok=False, error="No such node"),
        user_message("And", "now?"),
    ]
    assert build_accepted_body(model_request(*history, model=MODEL, volatile="Page: Home", max_tokens=900)) == {
        "model": MODEL,
        "messages": [
            {"role": "system", "content": "You edit pages."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Add prices"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
                ],
            },
            {
                "role": "assistant",
                "content": "Let me look.",
                "reasoning_content": "Hm.",
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "read_document", "arguments": "{}"}},
                    {
                        "id": "call_2",
                        "type": "function",
                        "function": {"name": "insertHtml", "arguments": '{"html":"<p>"}'},
                        "extra_content": {"google": {"thought_signature": "c2"}},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": '{"html":"<main>"}'},
            {"role": "tool", "tool_call_id": "call_2", "content": "No such node"},
            {"role": "user", "content": "And now?\n\n<context>\nPage: Home\n</context>"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 900,
        "tools": [
            {
                "type": "function",
                "function": {"name": "read_document", "description": "Reads the page.", "parameters": SCHEMA},
            },
            {
                "type": "function",
                "function": {"name": "insertHtml", "description": "Inserts HTML.", "parameters": SCHEMA},
            },
        ],
    }


def test_consecutive_messages_of_one_side_become_one_message() -> None:
    rows = [
        user_message("a"),
        user_message("b"),
        model_message("c"),
        model_message(tool_call("t1")),
        tool_result("t1"),
        user_message("d"),
    ]
    assert build_roles(*rows) == ["user", "assistant", "tool", "user"]
    assert build_messages(*rows)[0]["content"] == "a b"


def test_parallel_calls_are_one_message_followed_by_their_results() -> None:
    rows = [
        user_message("a"),
        model_message(tool_call("t1"), tool_call("t2")),
        tool_result("t1", 1),
        user_message("stop!"),
        tool_result("t2", 2),
    ]
    assert build_roles(*rows) == ["user", "assistant", "tool", "tool", "user"]


def test_calls_without_text_have_empty_content() -> None:
    assert build_messages(user_message("a"), model_message(tool_call("t1")), tool_result("t1"))[1]["content"] == ""


def test_a_request_begins_and_ends_with_the_user() -> None:
    assert build_messages(model_message("Hello"))[0] == {"role": "user", "content": "Continue."}
    assert build_messages(user_message("a"), model_message("half an ans"))[-1] == {
        "role": "user",
        "content": "Continue.",
    }
    assert build_messages() == [{"role": "user", "content": "Continue."}]


def test_volatile_text_follows_the_users_prompt_and_not_a_filler() -> None:
    messages = build_messages(user_message("a"), model_message("half an ans"), volatile="It is late")
    assert [("It is late" in message["content"]) for message in messages] == [True, False, False]


def test_a_tool_without_arguments_has_empty_properties() -> None:
    bare = ToolSpec(name="list_tokens", description="", input_schema={"type": "object"})
    function = build_accepted_body(model_request(user_message("a"), tools=(bare,)))["tools"][0]["function"]
    assert function == {"name": "list_tokens", "parameters": {"type": "object", "properties": {}}}


def test_a_note_says_that_images_of_results_are_left_out() -> None:
    rows = (
        user_message("a"),
        model_message(tool_call("t1")),
        tool_result("t1", {"n": 1}, images=(image_block(), image_block())),
    )
    assert build_messages(*rows)[-1]["content"] == (
        '{"n":1}' + "\n\n[2 screenshot(s) omitted: this provider delivers tool results as text only.]"
    )


def test_reasoning_is_sent_back_only_with_the_calls_it_led_to() -> None:
    rows = (
        user_message("a"),
        model_message(THOUGHT, "b"),
        user_message("c"),
        model_message(THOUGHT, tool_call("t1")),
        tool_result("t1"),
    )
    assert ["reasoning_content" in message for message in build_messages(*rows)] == [False, False, False, True, False]


@pytest.mark.parametrize(
    "foreign", [*reasoning_blocks("anthropic", 1), *reasoning_blocks("openai", 1), *reasoning_blocks("ollama", 1)]
)
def test_r9_reasoning_of_another_provider_is_dropped(foreign: ReasoningBlock) -> None:
    message = build_messages(user_message("a"), model_message(foreign, tool_call("t1")), tool_result("t1"))[1]
    assert message.keys() == {"role", "content", "tool_calls"}
    assert message["tool_calls"][0].keys() == {"id", "type", "function"}


def test_r9_reasoning_of_another_model_is_dropped() -> None:
    rows = (user_message("a"), model_message(THOUGHT, SIGNATURE, tool_call("t1")), tool_result("t1"))
    assert build_messages(*rows, model="other")[1].keys() == {"role", "content", "tool_calls"}


def test_call_ids_of_other_providers_become_short_and_unique() -> None:
    rows = [user_message("a")]
    for _ in range(2):
        rows += [
            model_message(tool_call("functions.read:0"), tool_call("x" * 90)),
            tool_result("functions.read:0", 1),
            tool_result("x" * 90, 2),
        ]
    messages = build_messages(*rows)
    assert [call["id"] for message in messages for call in message.get("tool_calls", ())] == [
        "functions_read_0",
        "x" * 40,
        "functions_read_0_2",
        "x" * 38 + "_2",
    ]


def test_an_openai_model_at_another_address_gets_max_completion_tokens() -> None:
    body = build_accepted_body(model_request(user_message("a"), model="gpt-5.2"))
    assert "max_tokens" not in body
    assert body["max_completion_tokens"] == 8192 + 25_000


def test_on_the_last_round_the_tools_stay_but_may_not_be_called() -> None:
    body = build_accepted_body(model_request(user_message("a"), call_tools=False))
    assert body["tool_choice"] == "none"
    assert body["tools"]
    assert "tool_choice" not in build_accepted_body(model_request(user_message("a"), tools=(), call_tools=False))


@pytest.mark.parametrize(
    "block", [BlobBlock(blob="k", replaced_kind="text", size=1), ImageBlock(mime_type="image/png", blob="k")]
)
def test_a_blob_that_was_not_fetched_is_a_programming_error(block: Block) -> None:
    with pytest.raises(ValueError, match="must be fetched"):
        build_messages(user_message(block))


# What single servers want


def test_call_ids_can_have_nine_characters() -> None:
    rows = (
        user_message("a"),
        model_message(tool_call("abcDEF123"), tool_call("toolu_1")),
        tool_result("abcDEF123"),
        tool_result("toolu_1"),
    )
    messages = build_messages(*rows, *rows[1:], adjusted=(NINE_CHARACTER_CALL_IDS.name,))
    ids = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    assert ids[0] == "abcDEF123"
    assert len(set(ids)) == 4
    assert all(len(call_id) == 9 and call_id.isalnum() for call_id in ids)
    assert ids == [message["tool_call_id"] for message in messages if message["role"] == "tool"]


def test_every_call_can_have_reasoning_even_those_of_another_model() -> None:
    rows = (
        user_message("a"),
        model_message(tool_call("t1")),
        tool_result("t1"),
        model_message(THOUGHT, tool_call("t2")),
        tool_result("t2"),
        model_message("Done."),
    )
    messages = [
        message for message in build_messages(*rows, adjusted=(ADD_EMPTY_REASONING,)) if message["role"] == "assistant"
    ]
    assert [message.get("reasoning_content") for message in messages] == ["", "Hm.", ""]


def test_every_call_can_have_a_signature_even_those_of_another_model() -> None:
    rows = (
        user_message("a"),
        model_message(tool_call("t1"), SIGNATURE, tool_call("t2")),
        tool_result("t1"),
        tool_result("t2"),
    )
    calls = build_messages(*rows, adjusted=(ADD_PLACEHOLDER_SIGNATURES,))[1]["tool_calls"]
    assert [call["extra_content"]["google"]["thought_signature"] for call in calls] == [
        "skip_thought_signature_validator",
        "c2",
    ]


def test_reasoning_fields_can_be_left_out() -> None:
    rows = (user_message("a"), model_message(THOUGHT, tool_call("t1")), tool_result("t1"))
    assert "reasoning_content" not in build_messages(*rows, adjusted=(OMIT_REASONING_FIELDS,))[1]


# Prefixes and any history


def test_kc1_within_a_turn_each_request_begins_with_the_last_one_to_the_byte() -> None:
    rows = [user_message("Prompt")]
    before: list[str] = []
    for at in range(4):
        messages = [json.dumps(message) for message in build_messages(*rows, volatile="Now")]
        assert messages[: len(before)] == before
        before = messages
        rows += [model_message(THOUGHT, tool_call(f"t{at}")), tool_result(f"t{at}", at)]


def test_kc1_volatile_text_follows_the_newest_prompt_only() -> None:
    rows = (
        user_message("One"),
        model_message("Done"),
        user_message("Two"),
        model_message(tool_call("t1")),
        tool_result("t1"),
    )
    texts = [str(message["content"]) for message in build_messages(*rows, volatile="It is late")]
    assert [at for at, text in enumerate(texts) if "It is late" in text] == [2]


@given(
    rows=histories(),
    volatile=st.text(max_size=5),
    tools=st.booleans(),
    adjusted=st.sets(
        st.sampled_from(
            [NINE_CHARACTER_CALL_IDS.name, ADD_EMPTY_REASONING, ADD_PLACEHOLDER_SIGNATURES, OMIT_REASONING_FIELDS]
        )
    ),
)
def test_any_compiled_history_is_accepted(rows: list[Message], volatile: str, tools: bool, adjusted: set[str]) -> None:
    build_accepted_body(model_request(*rows, volatile=volatile, tools=TOOLS if tools else (), model=MODEL), *adjusted)


def test_the_strict_check_itself_refuses_invalid_bodies() -> None:
    """The tests above prove something only if the check can fail."""
    rows = (
        user_message("a"),
        model_message("b", tool_call("t1"), tool_call("t2")),
        tool_result("t1"),
        tool_result("t2"),
    )

    def refusal(change: Any) -> str:
        body = build_accepted_body(model_request(*rows))
        change(body["messages"])
        with pytest.raises(RequestRejected) as caught:
            check_request({}, body)
        return caught.value.message

    assert "did not have response messages" in refusal(lambda messages: messages.pop())
    assert "must be a response" in refusal(lambda messages: messages.pop(2))
    assert "alternate" in refusal(lambda messages: messages.insert(1, {"role": "user", "content": "x"}))
    assert "got null" in refusal(lambda messages: messages[2].update(content=None))
    assert "maximum length 40" in refusal(lambda messages: messages[2]["tool_calls"][0].update(id="x" * 41))
    assert "a user message is expected" in refusal(lambda messages: messages.pop(1))
    assert "from an assistant" in refusal(lambda messages: messages.append({"role": "assistant", "content": "x"}))
