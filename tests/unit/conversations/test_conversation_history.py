"""A turn reads no more of its conversation than its model accepts."""

from dataclasses import replace
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.conversations.history.compiler import compile_history
from fermata.conversations.history.conversation_history import FIRST_READ_ROWS, ConversationHistory
from fermata.conversations.history.shorten_oversized_turn import ROUNDS_OMITTED_NOTE
from fermata.conversations.history.token_estimate import estimate_tokens
from tests.unit.conversations.message_builders import (
    ANTHROPIC_PROFILE,
    ThreadBuilder,
    make_call,
    make_image,
    store_messages,
)
from tests.unit.conversations.test_truncation import add_turns

CONVERSATION_KEY = ("bakery", "c1")
SMALL_PROFILE = replace(ANTHROPIC_PROFILE, max_history_tokens=5_000)


@pytest.fixture
def read(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of rows that the queries returned."""
    counts: list[int] = []
    query = resources.tables.query_items

    def count_rows(*args: Any, **kwargs: Any) -> Any:
        rows = query(*args, **kwargs)
        counts.append(len(rows))
        return rows

    monkeypatch.setattr(resources.tables, "query_items", count_rows)
    return counts


def test_a_short_conversation_is_one_query(resources: Resources, read: list[int]) -> None:
    thread = add_turns(5)
    store_messages(resources, *CONVERSATION_KEY, thread.messages)
    assert ConversationHistory(resources, *CONVERSATION_KEY, SMALL_PROFILE).compile_messages() == tuple(thread.messages)
    assert len(read) == 1


def test_a_turn_reads_as_many_rows_in_a_thread_of_two_thousand_messages_as_of_two_hundred(
    resources: Resources, read: list[int]
) -> None:
    short = add_turns(50)
    long = add_turns(500)
    store_messages(resources, *CONVERSATION_KEY, short.messages)
    short_history = ConversationHistory(resources, *CONVERSATION_KEY, SMALL_PROFILE).compile_messages()
    expected = (sum(read), len(read))
    store_messages(resources, *CONVERSATION_KEY, long.messages)
    read.clear()
    long_history = ConversationHistory(resources, *CONVERSATION_KEY, SMALL_PROFILE).compile_messages()
    assert (sum(read), len(read)) == expected
    assert sum(read) <= 2 * FIRST_READ_ROWS
    assert len(long_history) == pytest.approx(len(short_history), abs=20)
    assert long_history == tuple(compile_history(long.messages, SMALL_PROFILE))


def test_heavy_results_of_earlier_turns_take_no_tokens(resources: Resources, read: list[int]) -> None:
    thread = add_turns(30, size=6_000)
    store_messages(resources, *CONVERSATION_KEY, thread.messages)
    heavy = replace(SMALL_PROFILE, is_heavy_tool=lambda name: name == "insertHtml")
    assert len(ConversationHistory(resources, *CONVERSATION_KEY, heavy).compile_messages()) > 60
    assert len(ConversationHistory(resources, *CONVERSATION_KEY, SMALL_PROFILE).compile_messages()) < 12


def test_the_newest_turn_is_read_from_its_beginning_and_fits_however_long_it_is(resources: Resources) -> None:
    thread = add_turns(3)
    thread.add_prompt("A long one")
    for number in range(100):
        thread.add_reply(make_call(f"x{number}"))
        thread.add_result(f"x{number}", data="y" * 900)
    store_messages(resources, *CONVERSATION_KEY, thread.messages)
    history = ConversationHistory(resources, *CONVERSATION_KEY, SMALL_PROFILE).compile_messages()
    assert [block.text for block in history[0].content][1:] == ["A long one", ROUNDS_OMITTED_NOTE]
    assert history[-1].content == thread.messages[-1].content
    assert estimate_tokens(history) <= SMALL_PROFILE.max_history_tokens


def test_messages_that_are_committed_later_follow(resources: Resources, read: list[int]) -> None:
    thread = add_turns(1)
    store_messages(resources, *CONVERSATION_KEY, thread.messages)
    transcript = ConversationHistory(resources, *CONVERSATION_KEY, SMALL_PROFILE)
    before = transcript.compile_messages()
    assert transcript.compile_messages() is before
    thread.add_prompt("More", make_image())
    transcript.add_messages(thread.messages[4:])
    assert transcript.compile_messages()[-1].content[0] == thread.messages[-1].content[0]
    assert len(read) == 1


def test_only_blobs_that_are_sent_are_fetched(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = ThreadBuilder()
    for _ in range(3):
        thread.add_prompt("Look", make_image(60 + thread.turn, 50))
        thread.add_reply(make_call(f"c{thread.turn}", "read"))
        thread.add_result(f"c{thread.turn}", "read", data="z" * 50_000, images=(make_image(90, 10 + thread.turn),))
        thread.add_reply("Done")
    store_messages(resources, *CONVERSATION_KEY, thread.messages)
    fetched: list[str] = []
    get_bytes = resources.blobs.get_bytes
    monkeypatch.setattr(resources.blobs, "get_bytes", lambda key: fetched.append(key) or get_bytes(key))
    transcript = ConversationHistory(resources, *CONVERSATION_KEY, ANTHROPIC_PROFILE)
    assert len(transcript.compile_messages()) == 12
    assert len(fetched) == 5  # the images of three prompts, and the result and image of the newest turn
    thread.add_reply("And done")
    transcript.add_messages(thread.messages[-1:])
    transcript.compile_messages()
    assert len(fetched) == 5


def test_a_conversation_without_messages_is_an_empty_history(resources: Resources) -> None:
    assert ConversationHistory(resources, *CONVERSATION_KEY, ANTHROPIC_PROFILE).compile_messages() == ()
