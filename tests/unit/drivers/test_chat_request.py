"""How a conversation is said in chat completions. Every body here is checked as real servers check it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.drivers.chat.request import EMPTY_SIGNATURES, EMPTY_THOUGHTS, NINE_CHARACTERS, WITHOUT_THOUGHTS
from fermata.drivers.openai_compatible import OPENAI_COMPATIBLE
from fermata.words.blocks import BlobBlock, Block, ImageBlock, ReasoningBlock
from fermata.words.messages import Message
from fermata.words.model import Ask
from fermata.words.tools import ToolSpec
from local.demo_model.strict import Refused
from local.demo_model.strict_chat import check
from tests.unit.drivers.asks import SCHEMA, TOOLS, ask, call, model, picture, result, user
from tests.unit.drivers.histories import MODELS, histories, remembered

MODEL = MODELS["openai-compatible"]
THOUGHT, SIGNATURE = remembered("openai-compatible", 1)


def accepted(asked: Ask, *adjusted: str) -> dict[str, Any]:
    raw = json.dumps(OPENAI_COMPATIBLE.body_of(asked, frozenset(adjusted)), ensure_ascii=False)
    body: dict[str, Any] = json.loads(raw.encode("utf-8", "replace"))
    check({}, body)
    return body


def messages(*rows: Message, adjusted: tuple[str, ...] = (), **members: Any) -> list[dict[str, Any]]:
    asked = ask(*rows, **{"model": MODEL, "system": ""} | members)
    found: list[dict[str, Any]] = accepted(asked, *adjusted)["messages"]
    return found


def roles(*rows: Message) -> list[str]:
    return [message["role"] for message in messages(*rows)]


def test_a_whole_request() -> None:
    history = [
        user("Add prices", picture()),
        model(THOUGHT, "Let me look.", call("call_1"), SIGNATURE, call("call_2", "insertHtml", input={"html": "<p>"})),
        result("call_1", {"html": "<main>"}),
        result("call_2", ok=False, error="No such node"),
        user("And", "now?"),
    ]
    assert accepted(ask(*history, model=MODEL, volatile="Page: Home", max_tokens=900)) == {
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


def test_rows_of_one_side_become_one_message() -> None:
    rows = [user("a"), user("b"), model("c"), model(call("t1")), result("t1"), user("d")]
    assert roles(*rows) == ["user", "assistant", "tool", "user"]
    assert messages(*rows)[0]["content"] == "a b"


def test_parallel_calls_stand_in_one_message_with_their_results_behind_it() -> None:
    rows = [user("a"), model(call("t1"), call("t2")), result("t1", 1), user("stop!"), result("t2", 2)]
    assert roles(*rows) == ["user", "assistant", "tool", "tool", "user"]


def test_calls_without_words_have_empty_content() -> None:
    assert messages(user("a"), model(call("t1")), result("t1"))[1]["content"] == ""


def test_a_request_begins_and_ends_with_a_person() -> None:
    assert messages(model("Hello"))[0] == {"role": "user", "content": "Continue."}
    assert messages(user("a"), model("half an ans"))[-1] == {"role": "user", "content": "Continue."}
    assert messages() == [{"role": "user", "content": "Continue."}]


def test_volatile_text_stands_behind_what_a_person_said_not_behind_our_nudge() -> None:
    said = messages(user("a"), model("half an ans"), volatile="It is late")
    assert [("It is late" in message["content"]) for message in said] == [True, False, False]


def test_a_tool_without_members_says_so() -> None:
    bare = ToolSpec(name="list_tokens", description="", input_schema={"type": "object"})
    function = accepted(ask(user("a"), tools=(bare,)))["tools"][0]["function"]
    assert function == {"name": "list_tokens", "parameters": {"type": "object", "properties": {}}}


def test_images_of_results_are_told_of() -> None:
    rows = (user("a"), model(call("t1")), result("t1", {"n": 1}, images=(picture(), picture())))
    assert messages(*rows)[-1]["content"] == (
        '{"n":1}\n\n[2 screenshot(s) omitted: this provider delivers tool results as text only.]'
    )


def test_thoughts_go_back_only_with_the_calls_they_led_to() -> None:
    rows = (user("a"), model(THOUGHT, "b"), user("c"), model(THOUGHT, call("t1")), result("t1"))
    assert ["reasoning_content" in message for message in messages(*rows)] == [False, False, False, True, False]


@pytest.mark.parametrize("foreign", [*remembered("anthropic", 1), *remembered("openai", 1), *remembered("ollama", 1)])
def test_r9_thoughts_of_another_provider_are_dropped_whole(foreign: ReasoningBlock) -> None:
    message = messages(user("a"), model(foreign, call("t1")), result("t1"))[1]
    assert message.keys() == {"role", "content", "tool_calls"}
    assert message["tool_calls"][0].keys() == {"id", "type", "function"}


def test_r9_thoughts_of_another_model_are_dropped_whole() -> None:
    rows = (user("a"), model(THOUGHT, SIGNATURE, call("t1")), result("t1"))
    assert messages(*rows, model="other")[1].keys() == {"role", "content", "tool_calls"}


def test_ids_other_providers_gave_are_made_to_fit_and_unique_with_their_results() -> None:
    rows = [user("a")]
    for _ in range(2):
        rows += [model(call("functions.read:0"), call("x" * 90)), result("functions.read:0", 1), result("x" * 90, 2)]
    said = messages(*rows)
    assert [call["id"] for message in said for call in message.get("tool_calls", ())] == [
        "functions_read_0",
        "x" * 40,
        "functions_read_0_2",
        "x" * 38 + "_2",
    ]


def test_openais_own_models_behind_another_address_are_told_their_limit_in_their_way() -> None:
    body = accepted(ask(user("a"), model="gpt-5.2"))
    assert "max_tokens" not in body
    assert body["max_completion_tokens"] == 8192 + 25_000


def test_on_the_last_round_the_tools_stay_but_may_not_be_called() -> None:
    body = accepted(ask(user("a"), call_tools=False))
    assert body["tool_choice"] == "none"
    assert body["tools"]
    assert "tool_choice" not in accepted(ask(user("a"), tools=(), call_tools=False))


@pytest.mark.parametrize("block", [BlobBlock(blob="k", of="text", size=1), ImageBlock(mime_type="image/png", blob="k")])
def test_what_still_lies_in_the_bucket_is_our_own_mistake(block: Block) -> None:
    with pytest.raises(ValueError, match="must be fetched"):
        messages(user(block))


# What single servers want


def test_ids_of_nine_characters() -> None:
    rows = (user("a"), model(call("abcDEF123"), call("toolu_1")), result("abcDEF123"), result("toolu_1"))
    said = messages(*rows, *rows[1:], adjusted=(NINE_CHARACTERS,))
    ids = [call["id"] for message in said for call in message.get("tool_calls", ())]
    assert ids[0] == "abcDEF123"
    assert len(set(ids)) == 4
    assert all(len(one) == 9 and one.isalnum() for one in ids)
    assert ids == [message["tool_call_id"] for message in said if message["role"] == "tool"]


def test_thoughts_at_every_call_also_at_those_another_model_made() -> None:
    rows = (user("a"), model(call("t1")), result("t1"), model(THOUGHT, call("t2")), result("t2"), model("Done."))
    said = [one for one in messages(*rows, adjusted=(EMPTY_THOUGHTS,)) if one["role"] == "assistant"]
    assert [one.get("reasoning_content") for one in said] == ["", "Hm.", None]


def test_signatures_at_every_call_also_at_those_another_model_made() -> None:
    rows = (user("a"), model(call("t1"), SIGNATURE, call("t2")), result("t1"), result("t2"))
    said = messages(*rows, adjusted=(EMPTY_SIGNATURES,))[1]["tool_calls"]
    assert [one["extra_content"]["google"]["thought_signature"] for one in said] == [
        "skip_thought_signature_validator",
        "c2",
    ]


def test_no_thoughts_where_they_are_not_taken() -> None:
    rows = (user("a"), model(THOUGHT, call("t1")), result("t1"))
    assert "reasoning_content" not in messages(*rows, adjusted=(WITHOUT_THOUGHTS,))[1]


# Prefixes and any history


def test_kc1_within_a_turn_each_request_begins_with_the_last_one_to_the_byte() -> None:
    rows = [user("Prompt")]
    before: list[str] = []
    for at in range(4):
        said = [json.dumps(message) for message in messages(*rows, volatile="Now")]
        assert said[: len(before)] == before
        before = said
        rows += [model(THOUGHT, call(f"t{at}")), result(f"t{at}", at)]


def test_kc1_volatile_text_stands_behind_the_newest_prompt_and_nowhere_else() -> None:
    rows = (user("One"), model("Done"), user("Two"), model(call("t1")), result("t1"))
    texts = [str(message["content"]) for message in messages(*rows, volatile="It is late")]
    assert [at for at, text in enumerate(texts) if "It is late" in text] == [2]


@given(
    rows=histories(),
    volatile=st.text(max_size=5),
    tools=st.booleans(),
    adjusted=st.sets(st.sampled_from([NINE_CHARACTERS, EMPTY_THOUGHTS, EMPTY_SIGNATURES, WITHOUT_THOUGHTS])),
)
def test_any_healed_history_is_accepted(rows: list[Message], volatile: str, tools: bool, adjusted: set[str]) -> None:
    accepted(ask(*rows, volatile=volatile, tools=TOOLS if tools else (), model=MODEL), *adjusted)


def test_the_strict_check_itself_refuses_what_it_should() -> None:
    """The bodies above prove something only if this one can fail."""
    rows = (user("a"), model("b", call("t1"), call("t2")), result("t1"), result("t2"))

    def refusal(change: Any) -> str:
        body = accepted(ask(*rows))
        change(body["messages"])
        with pytest.raises(Refused) as caught:
            check({}, body)
        return caught.value.message

    assert "did not have response messages" in refusal(lambda said: said.pop())
    assert "must be a response" in refusal(lambda said: said.pop(2))
    assert "alternate" in refusal(lambda said: said.insert(1, {"role": "user", "content": "x"}))
    assert "got null" in refusal(lambda said: said[2].update(content=None))
    assert "maximum length 40" in refusal(lambda said: said[2]["tool_calls"][0].update(id="x" * 41))
    assert "a user message is expected" in refusal(lambda said: said.pop(1))
    assert "from an assistant" in refusal(lambda said: said.append({"role": "assistant", "content": "x"}))
