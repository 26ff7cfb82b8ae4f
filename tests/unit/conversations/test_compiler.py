"""Compiled histories: the cases recorded from Instatic's server, and the order of the steps."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fermata.conversations.history.compiler import compile_history
from fermata.conversations.history.repair import UNANSWERED_CALL_ERROR
from fermata.conversations.history.stale_results import make_elided_result
from fermata.conversations.history.token_estimate import estimate_tokens
from fermata.domain.blocks import BlobBlock, Block, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.messages import Message
from tests.unit.conversations.message_builders import (
    ANTHROPIC_PROFILE,
    MODEL,
    ThreadBuilder,
    make_call,
    make_image,
    make_reasoning,
    summarize_messages,
)

CASES = {case["id"]: case for case in json.loads((Path(__file__).parent / "cases.json").read_text())}
INSTATIC_INTERRUPTED_ERROR = (
    "Tool call did not complete — the previous turn was interrupted before a result was produced."
)
"""Instatic's text. Ours continues it, because a call without a result may have had its effect (decision 0064)."""


def load_case_messages(case: str) -> list[Message]:
    """Return a case's rows, which have one row for each call and result, as messages."""
    thread = ThreadBuilder()
    for row in CASES[case]["input"]:
        content = [_block(block) for block in row["content"]] if isinstance(row.get("content"), list) else []
        if "output" in row:
            content = [ToolResultBlock(ok=row["output"]["ok"], error=row["output"].get("error"))]
        if row["role"] == "user":
            thread.add_prompt(*content)
        elif row["role"] == "tool":
            thread.add_message("tool", *content, tool_call_id=row["toolCallId"], tool_name="tool")
        else:
            thread.round = thread.round or 1
            thread.add_message("assistant", *content)
    return thread.messages


def _block(block: dict[str, Any]) -> Block:
    match block["kind"]:
        case "text":
            return TextBlock(text=block["text"])
        case "toolCall":
            return ToolCallBlock(tool_call_id=block["toolCallId"], tool_name=block["toolName"], input=block["input"])
        case _:
            return ToolResultBlock(ok=block["ok"], error=block.get("error"))


def compile_case(case: str) -> list[str]:
    return summarize_messages(compile_history(load_case_messages(case), ANTHROPIC_PROFILE))


def test_the_error_of_an_unanswered_call_begins_with_that_of_instatic() -> None:
    assert CASES["C029"]["expected"]["each_output"] == {"ok": False, "error": INSTATIC_INTERRUPTED_ERROR}
    assert UNANSWERED_CALL_ERROR.startswith(INSTATIC_INTERRUPTED_ERROR)


def test_c028_a_complete_turn_is_replayed_unchanged() -> None:
    expected = ["user: hi", "assistant: ok", "assistant: call t1", "tool t1: ok", "assistant: done"]
    assert compile_case("C028") == expected


def test_c029_unanswered_calls_at_the_end_get_failed_results_in_their_order() -> None:
    lines = compile_case("C029")
    assert [line for line in lines if line.startswith("tool")] == [
        f"tool {name}: failed {UNANSWERED_CALL_ERROR}" for name in "abcde"
    ]
    assert sum(line.startswith("assistant") for line in lines) == CASES["C029"]["expected"]["assistant_messages"]


def test_c031_a_failed_result_is_inserted_before_the_next_prompt() -> None:
    assert compile_case("C031") == [
        "user: continue",
        "assistant: call a",
        f"tool a: failed {UNANSWERED_CALL_ERROR}",
        "user: next prompt",
    ]


def test_c032_a_stored_failure_is_sent() -> None:
    assert compile_case("C032")[-1] == "tool t1: failed boom"


def test_c033_a_tool_row_without_a_result_counts_as_interrupted() -> None:
    assert compile_case("C033")[-1] == f"tool t1: failed {UNANSWERED_CALL_ERROR}"


def test_c035_malformed_content_raises_nothing() -> None:
    """Instatic's server sends an empty message, which providers refuse; here it is left out."""
    assert compile_case("C035") == []


def test_c138_and_c139_replies_and_results_alternate() -> None:
    expected = ["user: continue", "assistant: call t1", "tool t1: failed interrupted", "user: next prompt"]
    assert compile_case("C138") == expected
    assert compile_case("C139") == ["user: hi", "assistant: ok", "assistant: call t1", "tool t1: ok", "assistant: done"]


def test_c076_an_elided_result_has_the_note_of_instatic() -> None:
    note = CASES["C076"]["expected"]["data"]["note"].replace("<tool>", "read_document")
    assert make_elided_result("read_document").data == {"elided": True, "note": note}


def test_c036_a_model_without_image_input_reads_one_note_in_place_of_images() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("look", make_image(), make_image())
    (message,) = compile_history(thread.messages, replace(ANTHROPIC_PROFILE, reads_images=False))
    assert [block.to_wire() for block in message.content] == CASES["C036"]["expected"]["content"]


def test_c074_two_heavy_results_of_one_round_are_both_sent() -> None:
    assert CASES["C074"]["expected"] == "both kept"
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    thread.add_reply(make_call("a", "read_document"), make_call("b", "read_document"))
    for call_id in ("a", "b"):
        thread.add_result(call_id, "read_document", data={"html": "<p>"})
    history = compile_history(
        thread.messages, replace(ANTHROPIC_PROFILE, is_heavy_tool=lambda name: name == "read_document")
    )
    assert history == thread.messages


def test_c075_data_of_heavy_tools_is_not_sent_again_in_later_turns() -> None:
    """Instatic's server drops all data of earlier turns; here only that of heavy and forgotten tools is dropped."""
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    thread.add_reply(make_call("a", "read_document"), make_call("b", "look_up"), make_call("c", "insertHtml"))
    for call_id, name in (("a", "read_document"), ("b", "look_up"), ("c", "insertHtml")):
        thread.add_result(call_id, name, data={"nodeIds": ["n"]})
    thread.add_prompt("And now?")
    profile = replace(
        ANTHROPIC_PROFILE,
        is_heavy_tool=lambda name: name == "read_document",
        is_forgotten_tool=lambda name: name == "look_up",
    )
    results = [message.content[0] for message in compile_history(thread.messages, profile) if message.role == "tool"]
    assert results == [
        make_elided_result("read_document"),
        ToolResultBlock(ok=True),
        ToolResultBlock(ok=True, data={"nodeIds": ["n"]}),
    ]


def test_every_recorded_case_has_a_test() -> None:
    text = Path(__file__).read_text().lower()
    assert [case for case in CASES if case.lower() not in text] == []


class TestReasoning:
    def test_its_own_model_gets_it_unchanged(self) -> None:
        thread = ThreadBuilder()
        thread.add_prompt("Go")
        thread.add_reply(make_reasoning("I wonder"), "Ok")
        assert compile_history(thread.messages, ANTHROPIC_PROFILE)[1].content[0] is thread.messages[1].content[0]

    @pytest.mark.parametrize(
        "other", [{"provider": "openai"}, {"model": "claude-opus-4-8"}, {"provider": "openai", "model": "gpt-5.2"}]
    )
    def test_another_model_does_not_get_it(self, other: dict[str, str]) -> None:
        thread = ThreadBuilder()
        thread.add_prompt("Go")
        thread.add_reply(
            make_reasoning("I wonder"),
            BlobBlock(blob="k", replaced_kind="reasoning", size=9, provider="anthropic", model=MODEL),
        )
        thread.add_reply(make_reasoning("I see"), "Ok")
        assert summarize_messages(compile_history(thread.messages, replace(ANTHROPIC_PROFILE, **other))) == [
            "user: Go",
            "assistant: Ok",
        ]

    def test_it_is_not_sent_with_a_lone_surrogate(self) -> None:
        thread = ThreadBuilder()
        thread.add_prompt("Go")
        thread.add_reply(make_reasoning("half \ud83d"), "Ok")
        assert not any(
            isinstance(block, ReasoningBlock)
            for message in compile_history(thread.messages, ANTHROPIC_PROFILE)
            for block in message.content
        )


def test_lone_surrogates_become_the_replacement_character_everywhere() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("a\ud83d")
    thread.add_reply("b\ude00", make_call("c", **{"k\ud83d": ["\ud83d", {"x": "ok 🦀"}]}))
    thread.add_result("c", data={"d": ("\ud83d",)})
    thread.add_reply(make_call("e"))
    thread.add_result("e", ok=False, error="\ud83d")
    for message in compile_history(thread.messages, ANTHROPIC_PROFILE):
        message.model_dump_json().encode()
    text = str(compile_history(thread.messages, ANTHROPIC_PROFILE))
    assert "\\ud83d" not in text
    assert "🦀" in text


def test_a_turn_that_is_too_long_by_itself_fits_and_keeps_its_pairs() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    for number in range(20):
        thread.add_reply(make_call(f"c{number}", "list"))
        thread.add_result(f"c{number}", "list", data="x" * 9_000)
    small = replace(ANTHROPIC_PROFILE, max_history_tokens=10_000)
    history = compile_history(thread.messages, small)
    assert estimate_tokens(history) <= 10_000
    assert summarize_messages(history) == summarize_messages(thread.messages)
