"""What one model is sent: the contract's cases, and the order of things."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fermata.conversations.healing import UNANSWERED
from fermata.conversations.history import compile_history
from fermata.conversations.recipient import weight
from fermata.conversations.stale import stub
from fermata.words.blocks import BlobBlock, Block, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.words.messages import Message
from tests.unit.conversations.messages import ANTHROPIC, MODEL, Thread, call, picture, shape, thought

CASES = {case["id"]: case for case in json.loads((Path(__file__).parent / "cases.json").read_text())}
INTERRUPTED = "Tool call did not complete — the previous turn was interrupted before a result was produced."
"""The contract's sentence; ours goes on, because a call without a result may have had its effect."""


def rows_of(case: str) -> list[Message]:
    """The contract's rows, one for each call and result, as messages of ours."""
    thread = Thread()
    for row in CASES[case]["input"]:
        content = [_block(block) for block in row["content"]] if isinstance(row.get("content"), list) else []
        if "output" in row:
            content = [ToolResultBlock(ok=row["output"]["ok"], error=row["output"].get("error"))]
        if row["role"] == "user":
            thread.user(*content)
        elif row["role"] == "tool":
            thread._add("tool", *content, tool_call_id=row["toolCallId"], tool_name="tool")
        else:
            thread.round = thread.round or 1
            thread._add("assistant", *content)
    return thread.messages


def _block(block: dict[str, Any]) -> Block:
    match block["kind"]:
        case "text":
            return TextBlock(text=block["text"])
        case "toolCall":
            return ToolCallBlock(tool_call_id=block["toolCallId"], tool_name=block["toolName"], input=block["input"])
        case _:
            return ToolResultBlock(ok=block["ok"], error=block.get("error"))


def compiled(case: str) -> list[str]:
    return shape(compile_history(rows_of(case), ANTHROPIC))


def test_the_sentence_of_an_interrupted_call_is_the_contracts_and_goes_on() -> None:
    assert CASES["C029"]["expected"]["each_output"] == {"ok": False, "error": INTERRUPTED}
    assert UNANSWERED.startswith(INTERRUPTED)


def test_c028_a_complete_turn_is_replayed_unchanged() -> None:
    expected = ["user: hi", "assistant: ok", "assistant: call t1", "tool t1: ok", "assistant: done"]
    assert compiled("C028") == expected


def test_c029_calls_left_open_at_the_end_are_healed_in_their_order() -> None:
    lines = compiled("C029")
    assert [line for line in lines if line.startswith("tool")] == [
        f"tool {name}: failed {UNANSWERED}" for name in "abcde"
    ]
    assert sum(line.startswith("assistant") for line in lines) == CASES["C029"]["expected"]["assistant_messages"]


def test_c031_a_healed_result_comes_before_the_next_prompt() -> None:
    assert compiled("C031") == [
        "user: continue",
        "assistant: call a",
        f"tool a: failed {UNANSWERED}",
        "user: next prompt",
    ]


def test_c032_a_failure_that_was_kept_is_sent() -> None:
    assert compiled("C032")[-1] == "tool t1: failed boom"


def test_c033_a_tool_row_without_a_result_counts_as_interrupted() -> None:
    assert compiled("C033")[-1] == f"tool t1: failed {UNANSWERED}"


def test_c035_content_that_is_none_is_no_exception() -> None:
    """The original sends an empty message, which providers refuse; here it is left out."""
    assert compiled("C035") == []


def test_c138_and_c139_replies_and_results_alternate() -> None:
    expected = ["user: continue", "assistant: call t1", "tool t1: failed interrupted", "user: next prompt"]
    assert compiled("C138") == expected
    assert compiled("C139") == ["user: hi", "assistant: ok", "assistant: call t1", "tool t1: ok", "assistant: done"]


def test_c076_what_was_left_out_reads_as_the_contract_has_it() -> None:
    said = CASES["C076"]["expected"]["data"]["note"]
    assert stub("read_document").data == {"elided": True, "note": said.replace("<tool>", "read_document")}


def test_c036_of_pictures_a_blind_model_reads_one_note_in_their_place() -> None:
    thread = Thread()
    thread.user("look", picture(), picture())
    (message,) = compile_history(thread.messages, replace(ANTHROPIC, sees=False))
    assert [block.wire() for block in message.content] == CASES["C036"]["expected"]["content"]


def test_c074_two_heavy_results_of_one_round_are_both_sent() -> None:
    assert CASES["C074"]["expected"] == "both kept"
    thread = Thread()
    thread.user("Go")
    thread.model(call("a", "read_document"), call("b", "read_document"))
    for call_id in ("a", "b"):
        thread.result(call_id, "read_document", data={"html": "<p>"})
    history = compile_history(thread.messages, replace(ANTHROPIC, is_heavy=lambda name: name == "read_document"))
    assert history == thread.messages


def test_c075_what_is_replayed_of_an_earlier_turn_is_never_heavy() -> None:
    """The original forgets all data of earlier turns; here that of heavy tools, and of those that want it."""
    thread = Thread()
    thread.user("Go")
    thread.model(call("a", "read_document"), call("b", "look_up"), call("c", "insertHtml"))
    for call_id, name in (("a", "read_document"), ("b", "look_up"), ("c", "insertHtml")):
        thread.result(call_id, name, data={"nodeIds": ["n"]})
    thread.user("And now?")
    recipient = replace(
        ANTHROPIC, is_heavy=lambda name: name == "read_document", is_forgotten=lambda name: name == "look_up"
    )
    results = [m.content[0] for m in compile_history(thread.messages, recipient) if m.role == "tool"]
    assert results == [
        stub("read_document"),
        ToolResultBlock(ok=True),
        ToolResultBlock(ok=True, data={"nodeIds": ["n"]}),
    ]


def test_every_case_is_looked_at() -> None:
    text = Path(__file__).read_text().lower()
    assert [case for case in CASES if case.lower() not in text] == []


class TestThinking:
    def test_it_goes_back_to_its_own_model_as_it_came(self) -> None:
        thread = Thread()
        thread.user("Go")
        thread.model(thought("I wonder"), "Ok")
        assert compile_history(thread.messages, ANTHROPIC)[1].content[0] is thread.messages[1].content[0]

    @pytest.mark.parametrize(
        "other", [{"provider": "openai"}, {"model": "claude-opus-4-8"}, {"provider": "openai", "model": "gpt-5.2"}]
    )
    def test_another_model_never_sees_any_of_it(self, other: dict[str, str]) -> None:
        thread = Thread()
        thread.user("Go")
        thread.model(
            thought("I wonder"), BlobBlock(blob="k", of="reasoning", size=9, provider="anthropic", model=MODEL)
        )
        thread.model(thought("I see"), "Ok")
        assert shape(compile_history(thread.messages, replace(ANTHROPIC, **other))) == ["user: Go", "assistant: Ok"]

    def test_when_it_cannot_be_sent_as_it_came_it_is_not_sent(self) -> None:
        thread = Thread()
        thread.user("Go")
        thread.model(thought("half \ud83d"), "Ok")
        assert not any(
            isinstance(block, ReasoningBlock)
            for message in compile_history(thread.messages, ANTHROPIC)
            for block in message.content
        )


def test_half_characters_become_the_replacement_character_everywhere() -> None:
    thread = Thread()
    thread.user("a\ud83d")
    thread.model("b\ude00", call("c", **{"k\ud83d": ["\ud83d", {"x": "ok 🦀"}]}))
    thread.result("c", data={"d": ("\ud83d",)})
    thread.model(call("e"))
    thread.result("e", ok=False, error="\ud83d")
    for message in compile_history(thread.messages, ANTHROPIC):
        message.model_dump_json().encode()
    whole = str(compile_history(thread.messages, ANTHROPIC))
    assert "\\ud83d" not in whole
    assert "🦀" in whole


def test_a_turn_too_long_by_itself_is_made_to_fit_and_keeps_its_pairs() -> None:
    thread = Thread()
    thread.user("Go")
    for number in range(20):
        thread.model(call(f"c{number}", "list"))
        thread.result(f"c{number}", "list", data="x" * 9_000)
    small = replace(ANTHROPIC, tokens=10_000)
    history = compile_history(thread.messages, small)
    assert weight(history) <= 10_000
    assert shape(history) == shape(thread.messages)
