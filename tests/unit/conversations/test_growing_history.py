"""A history that grows compiles as one that is read anew, and what has not changed is the same object."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fermata.aws.resources import Resources
from fermata.conversations.history import repair
from fermata.conversations.history.compiler import HistoryCompiler, compile_history
from fermata.conversations.history.conversation_history import ConversationHistory
from fermata.domain.messages import Message
from tests.quick_suite_samples import count_examples
from tests.unit.conversations.message_builders import (
    ANTHROPIC_PROFILE,
    ThreadBuilder,
    make_call,
    make_image,
    store_messages,
)
from tests.unit.conversations.test_history_properties import ROWS, TOKEN_LIMITS, make_profile, number_messages
from tests.unit.drivers.history_strategies import MODELS


@settings(max_examples=count_examples(150), suppress_health_check=[HealthCheck.too_slow])
@given(
    data=st.data(),
    rows=ROWS | ROWS.map(number_messages),
    max_tokens=TOKEN_LIMITS,
    reads_images=st.booleans(),
    is_complete=st.booleans(),
)
def test_a_history_that_grows_compiles_as_one_that_is_read_anew(
    data: st.DataObject, rows: list[Message], max_tokens: int, reads_images: bool, is_complete: bool
) -> None:
    profile = make_profile("anthropic", MODELS["anthropic"], max_tokens, reads_images)
    compiler = HistoryCompiler(profile)
    length = 0
    while length < len(rows):
        grown = data.draw(st.integers(length + 1, len(rows)))
        compiler.add_messages(rows[length:grown])
        length = grown
        anew = compile_history(rows[:length], profile, is_complete=is_complete)
        assert compiler.compile_messages(is_complete=is_complete) == anew


def test_what_has_not_changed_is_the_same_object_with_elided_results_renamed_tools_and_images(
    resources: Resources,
) -> None:
    profile = replace(
        ANTHROPIC_PROFILE, is_heavy_tool=lambda name: name == "read_", display_name=lambda name: f"{name}_"
    )
    thread = ThreadBuilder()
    thread.add_prompt("Look", make_image())
    thread.add_reply(make_call("c0", "read"))
    thread.add_result("c0", "read", data="z" * 50_000)
    store_messages(resources, "bakery", "c1", thread.messages)
    history = ConversationHistory(resources, "bakery", "c1", profile)
    earlier = history.compile_messages()
    for number in range(1, 4):
        thread.add_reply(make_call(f"c{number}", "read"))
        thread.add_result(f"c{number}", "read", data=number)
        history.add_messages(thread.messages[-2:])
        compiled = history.compile_messages()
        is_same = [new is old for new, old in zip(compiled, earlier, strict=False)]
        assert is_same == [True] * (len(earlier) - 1) + [False]  # the last result is elided now
        earlier = compiled


def test_a_message_is_paired_once(monkeypatch: pytest.MonkeyPatch) -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Look")
    compiler = HistoryCompiler(ANTHROPIC_PROFILE)
    compiler.add_messages(thread.messages)
    paired: list[int] = []
    pair_calls = repair._CallPairing.pair_calls

    def count_message(pairing: repair._CallPairing, message: Message, content: Any) -> Any:
        paired.append(message.position)
        return pair_calls(pairing, message, content)

    monkeypatch.setattr(repair._CallPairing, "pair_calls", count_message)
    for number in range(5):
        thread.add_reply(make_call(f"c{number}"))
        thread.add_result(f"c{number}", data=number)
        compiler.add_messages(thread.messages[-2:])
        compiler.compile_messages()
    assert len(paired) == len(set(paired)) == 5


def test_a_result_is_examined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn of two hundred rounds would otherwise examine twenty thousand results."""
    thread = ThreadBuilder()
    thread.add_prompt("Look")
    examined: list[str] = []

    def note_and_deny(name: str) -> bool:
        examined.append(name)
        return False

    profile = replace(ANTHROPIC_PROFILE, is_heavy_tool=note_and_deny)
    compiler = HistoryCompiler(profile)
    for number in range(5):
        thread.add_reply(make_call(f"c{number}", f"read{number}"))
        thread.add_result(f"c{number}", f"read{number}", data=number)
        compiler.add_messages(thread.messages[-2:] if number else thread.messages)
        compiler.compile_messages()
    assert examined == [f"read{number}" for number in range(5)]
