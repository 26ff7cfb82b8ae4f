"""Bodies of Messages requests; each is checked as the real API checks it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.domain.blocks import BlobBlock, ImageBlock, ReasoningBlock
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest
from fermata.drivers.protocols.anthropic_messages.request import build_request_body
from local.demo_model.merged_messages import without_cache_control
from local.demo_model.request_checks.anthropic_messages import check_request
from local.demo_model.request_checks.errors import RequestRejected
from tests.unit.drivers.accepted_anthropic_body import HEADERS, build_accepted_body
from tests.unit.drivers.conversation_builders import (
    MODEL,
    SCHEMA,
    TOOLS,
    image_block,
    model_message,
    model_request,
    thinking_block,
    tool_call,
    tool_result,
    user_message,
)

MARK = {"type": "ephemeral"}


def build_messages(request: ModelRequest) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return roles and blocks on the wire, without cache breakpoints."""
    return [
        (message["role"], [without_cache_control(block) for block in message["content"]])
        for message in build_accepted_body(request)["messages"]
    ]


def text_content(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def test_a_whole_request() -> None:
    history = [
        user_message("Add prices", image_block()),
        model_message("Let me look.", tool_call("toolu_1"), tool_call("toolu_2", "insertHtml", input={"html": "<p>"})),
        tool_result("toolu_1", {"html": "<main>"}),
        tool_result("toolu_2", ok=False, error="No such node"),
    ]
    assert build_accepted_body(model_request(*history, volatile="Page: Home", max_tokens=900)) == {
        "model": MODEL,
        "max_tokens": 900,
        "stream": True,
        "system": [text_content("You edit pages.") | {"cache_control": MARK}],
        "tools": [
            {"name": "read_document", "description": "Reads the page.", "input_schema": SCHEMA},
            {"name": "insertHtml", "description": "Inserts HTML.", "input_schema": SCHEMA},
        ],
        "messages": [
            {
                "role": "user",
                "content": [
                    text_content("Add prices"),
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
                        "cache_control": MARK,
                    },
                    text_content("<context>\nPage: Home\n</context>"),
                ],
            },
            {
                "role": "assistant",
                "content": [
                    text_content("Let me look."),
                    {"type": "tool_use", "id": "toolu_1", "name": "read_document", "input": {}},
                    {"type": "tool_use", "id": "toolu_2", "name": "insertHtml", "input": {"html": "<p>"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": '{"html":"<main>"}'},
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_2",
                        "content": "No such node",
                        "is_error": True,
                        "cache_control": MARK,
                    },
                ],
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
    assert [role for role, _ in build_messages(model_request(*rows))] == ["user", "assistant", "user"]


def test_tool_results_come_first_and_together_even_with_text_in_between() -> None:
    rows = [
        user_message("a"),
        model_message(tool_call("t1"), tool_call("t2")),
        tool_result("t1", 1),
        user_message("stop!"),
        tool_result("t2", 2),
    ]
    _, blocks = build_messages(model_request(*rows))[-1]
    assert [block.get("tool_use_id", "text") for block in blocks] == ["t1", "t2", "text"]


def test_calls_end_a_message_of_the_model() -> None:
    rows = [
        user_message("a"),
        model_message(thinking_block("Hm."), tool_call("t1"), "I look.", tool_call("t2")),
        tool_result("t1"),
        tool_result("t2"),
    ]
    _, blocks = build_messages(model_request(*rows))[1]
    assert [block["type"] for block in blocks] == ["thinking", "text", "tool_use", "tool_use"]


def test_a_success_without_data_says_so_and_an_empty_error_says_something() -> None:
    rows = [
        user_message("a"),
        model_message(tool_call("t1"), tool_call("t2")),
        tool_result("t1"),
        tool_result("t2", ok=False, error=" "),
    ]
    _, (fine, failed) = build_messages(model_request(*rows))[-1]
    assert fine["content"] == '{"ok":true}'
    assert (failed["content"], failed["is_error"]) == ("The tool failed.", True)


def test_images_of_a_result_are_sent_unless_it_failed() -> None:
    pictures = (image_block(),)
    rows = [
        user_message("a"),
        model_message(tool_call("t1"), tool_call("t2")),
        tool_result("t1", {"n": 1}, images=pictures),
    ]
    rows.append(tool_result("t2", ok=False, error="Too late", images=pictures))
    _, (succeeded, failed) = build_messages(model_request(*rows))[-1]
    assert [part["type"] for part in succeeded["content"]] == ["text", "image"]
    assert succeeded["content"][0]["text"] == '{"n":1}'
    assert failed["content"] == "Too late"


def test_blank_text_and_empty_messages_are_left_out() -> None:
    rows = [
        user_message("a"),
        model_message("", " \n"),
        user_message("b"),
        model_message("", tool_call("t1")),
        tool_result("t1"),
    ]
    assert [role for role, _ in build_messages(model_request(*rows))] == ["user", "assistant", "user"]


def test_r8_after_a_refusal_the_next_prompt_joins_the_results_before_it() -> None:
    rows = [
        user_message("a"),
        model_message(tool_call("t1")),
        tool_result("t1"),
        model_message(),
        user_message("and now?", turn="t2"),
    ]
    last = build_messages(model_request(*rows))[-1]
    assert last == (
        "user",
        [{"type": "tool_result", "tool_use_id": "t1", "content": '{"ok":true}'}, text_content("and now?")],
    )


@pytest.mark.parametrize("value", [[1], "text", None, 7])
def test_arguments_that_are_no_object_are_sent_back_as_an_empty_one(value: Any) -> None:
    rows = [
        user_message("a"),
        model_message(tool_call("t1", input=value)),
        tool_result("t1", ok=False, error="Expected object"),
    ]
    assert build_messages(model_request(*rows))[1][1][0]["input"] == {}


def test_a_malformed_call_is_sent_back_without_arguments() -> None:
    rows = [
        user_message("a"),
        model_message(tool_call("t1", input={"x": 1}, malformed=True)),
        tool_result("t1", ok=False, error="cut off"),
    ]
    assert build_messages(model_request(*rows))[1][1][0]["input"] == {}


def test_r9_thinking_is_sent_back_to_its_own_model_to_the_byte() -> None:
    redacted = ReasoningBlock(
        provider="anthropic", model=MODEL, payload={"type": "redacted_thinking", "data": "EmwKAhg+/=="}
    )
    rows = [
        user_message("a"),
        model_message(thinking_block("Look.", "EqQB+/=="), redacted, "Reading.", tool_call("t1")),
        tool_result("t1"),
    ]
    blocks = build_messages(model_request(*rows))[1][1]
    assert blocks[:2] == [{"type": "thinking", "thinking": "Look.", "signature": "EqQB+/=="}, redacted.payload]


@pytest.mark.parametrize(
    "foreign",
    [
        thinking_block("x", of="claude-sonnet-5"),
        thinking_block("x", provider="openai"),
        thinking_block("x", signature=""),
    ],
)
def test_r9_thinking_of_another_model_or_without_signature_is_dropped(foreign: ReasoningBlock) -> None:
    rows = [user_message("a"), model_message(foreign, tool_call("t1")), tool_result("t1")]
    assert [block["type"] for block in build_messages(model_request(*rows))[1][1]] == ["tool_use"]


def test_call_ids_of_other_providers_become_plain_and_unique() -> None:
    rows = [
        user_message("a"),
        model_message(tool_call("call:0|fc")),
        tool_result("call:0|fc", 1),
        model_message(tool_call("call:0|fc")),
        tool_result("call:0|fc", 2),
    ]
    wire = build_messages(model_request(*rows))
    assert [wire[at][1][0]["id"] for at in (1, 3)] == ["call_0_fc", "call_0_fc_2"]
    assert [wire[at][1][0]["tool_use_id"] for at in (2, 4)] == ["call_0_fc", "call_0_fc_2"]


def test_a_request_begins_and_ends_with_the_user() -> None:
    assert build_messages(model_request(model_message("Hello")))[0] == ("user", [text_content("Continue.")])
    assert build_messages(model_request(user_message("a"), model_message("half an ans")))[-1] == (
        "user",
        [text_content("Continue.")],
    )
    assert build_messages(model_request()) == [("user", [text_content("Continue.")])]


def test_a_request_may_end_with_paused_work_of_the_models_own_tools() -> None:
    search_result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    paused = ReasoningBlock(provider="anthropic", model=MODEL, payload=search_result)
    assert (
        build_request_body(model_request(user_message("a"), model_message(paused)))["messages"][-1]["role"]
        == "assistant"
    )


@pytest.mark.parametrize(
    "block", [BlobBlock(blob="k", replaced_kind="text", size=1), ImageBlock(mime_type="image/png", blob="k")]
)
def test_a_blob_that_was_not_fetched_is_a_programming_error(block: Any) -> None:
    with pytest.raises(ValueError, match="must be fetched"):
        build_request_body(model_request(user_message(block)))


def test_without_tools_and_system_there_is_only_the_conversation() -> None:
    body = build_accepted_body(model_request(user_message("a"), system=" ", tools=()))
    assert body.keys() == {"model", "max_tokens", "stream", "messages"}


def test_without_a_system_text_the_last_tool_has_the_breakpoint() -> None:
    assert [
        tool.get("cache_control") for tool in build_accepted_body(model_request(user_message("a"), system=""))["tools"]
    ] == [None, MARK]


def test_on_the_last_round_the_tools_stay_but_may_not_be_called() -> None:
    body = build_accepted_body(model_request(user_message("a"), call_tools=False))
    assert body["tool_choice"] == {"type": "none"}
    assert body["tools"] == build_accepted_body(model_request(user_message("a")))["tools"]


def _rows(draw: st.DrawFn) -> list[Message]:
    """Draw messages as the history compiler returns them: every call has its result before the model goes on."""
    rows: list[Message] = []
    counter = iter(range(1000))
    texts = st.text(max_size=8)
    for _ in range(draw(st.integers(0, 6))):
        if draw(st.booleans()):
            rows.append(user_message(*draw(st.lists(texts, max_size=2))))
            continue
        ids = [draw(st.sampled_from(["call 0", f"t{next(counter)}"])) for _ in range(draw(st.integers(0, 3)))]
        ids = list(dict.fromkeys(ids))
        thinking = [thinking_block("x", of=draw(st.sampled_from([MODEL, "other"])))] * draw(st.integers(0, 1))
        may_think = not rows or rows[-1].role != "assistant"
        rows.append(
            model_message(
                *(thinking if may_think else []),
                *draw(st.lists(texts, max_size=2)),
                *(tool_call(call_id) for call_id in ids),
            )
        )
        rows += [tool_result(call_id, draw(texts), ok=draw(st.booleans()), error=draw(texts)) for call_id in ids]
    return rows


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    return _rows(draw)


@given(
    histories(), st.text(max_size=5), st.booleans(), st.sampled_from([MODEL, "claude-sonnet-4-5", "claude-opus-5-5"])
)
def test_any_compiled_history_is_accepted(rows: list[Message], volatile: str, tools: bool, name: str) -> None:
    request = model_request(*rows, volatile=volatile, tools=TOOLS if tools else (), model=name, thinking_tokens=1500)
    raw = json.dumps(build_request_body(request), ensure_ascii=False).encode("utf-8", "replace")
    check_request(HEADERS, json.loads(raw))


def test_the_strict_check_itself_refuses_invalid_bodies() -> None:
    """The tests above prove something only if the check can fail."""
    body = build_accepted_body(model_request(user_message("a"), model_message(tool_call("t1")), tool_result("t1")))
    body["messages"][1]["content"].append({"type": "tool_use", "id": "t2", "name": "x", "input": {}})
    with pytest.raises(RequestRejected, match="without `tool_result` blocks immediately after: t2"):
        check_request(HEADERS, body)
