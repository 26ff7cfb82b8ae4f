"""Truncation of a history to the newest turns."""

from dataclasses import replace

from fermata.conversations.history.token_estimate import estimate_tokens
from fermata.conversations.history.truncation import BEGINNING_OMITTED_NOTE, truncate_history
from fermata.domain.blocks import TextBlock
from fermata.domain.messages import Message
from tests.unit.conversations.message_builders import ANTHROPIC_PROFILE, ThreadBuilder, make_call

SMALL_PROFILE = replace(ANTHROPIC_PROFILE, max_history_tokens=5_000)


def add_turns(count: int, thread: ThreadBuilder | None = None, size: int = 600) -> ThreadBuilder:
    """Add turns of about 230 tokens each: prompt, call, result, reply."""
    thread = thread or ThreadBuilder()
    for _ in range(count):
        thread.add_prompt(f"Prompt {thread.turn}")
        thread.add_reply(make_call(f"c{thread.turn}"))
        thread.add_result(f"c{thread.turn}", data="x" * size)
        thread.add_reply("Done")
    return thread


def remove_note(messages: list[Message]) -> list[Message]:
    """Return the messages without the note at the beginning."""
    first = messages[0]
    content = tuple(block for block in first.content if block != TextBlock(text=BEGINNING_OMITTED_NOTE))
    return [first.model_copy(update={"content": content}), *messages[1:]]


def test_a_conversation_that_fits_is_not_truncated() -> None:
    thread = add_turns(10)
    assert truncate_history(thread.messages, SMALL_PROFILE) == thread.messages


def test_a_longer_conversation_is_truncated_to_its_newest_turns_and_gets_a_note() -> None:
    thread = add_turns(60)
    history = truncate_history(thread.messages, SMALL_PROFILE)
    assert estimate_tokens(history) <= SMALL_PROFILE.max_history_tokens
    assert history[0].role == "user"
    assert history[0].content[0] == TextBlock(text=BEGINNING_OMITTED_NOTE)
    assert remove_note(history) == thread.messages[-len(history) :]
    assert len(history) > 40


def test_no_turn_too_many_is_kept_whatever_the_model_accepts() -> None:
    thread = add_turns(8)
    for tokens in range(600, 2_600, 7):
        history = truncate_history(thread.messages, replace(SMALL_PROFILE, max_history_tokens=tokens))
        assert estimate_tokens(history) <= tokens


def test_the_cut_stays_in_place_for_several_turns_so_that_the_prefix_can_be_cached() -> None:
    thread = add_turns(60)
    beginnings = []
    for _ in range(40):
        add_turns(1, thread)
        beginnings.append(truncate_history(thread.messages, SMALL_PROFILE)[0].position)
    assert beginnings == sorted(beginnings)
    assert len(set(beginnings)) <= 40 / 3


def test_the_cut_does_not_depend_on_how_much_was_read() -> None:
    thread = add_turns(60)
    expected = truncate_history(thread.messages, SMALL_PROFILE)
    assert truncate_history(thread.messages[100:], SMALL_PROFILE, is_complete=False) == expected
    assert truncate_history(thread.messages[60:], SMALL_PROFILE, is_complete=False) == expected


def test_the_newest_turn_stays_even_when_it_is_too_long() -> None:
    thread = add_turns(3)
    add_turns(1, thread, size=100_000)
    history = truncate_history(thread.messages, SMALL_PROFILE)
    assert remove_note(history) == thread.messages[-4:]


def test_messages_from_the_middle_of_a_conversation_get_a_note_even_when_they_fit() -> None:
    thread = add_turns(3)
    history = truncate_history(thread.messages[4:], SMALL_PROFILE, is_complete=False)
    assert history[0].content[0] == TextBlock(text=BEGINNING_OMITTED_NOTE)


def test_of_few_long_turns_all_that_fit_are_kept() -> None:
    thread = ThreadBuilder()
    for _ in range(6):
        thread.add_prompt("Go")
        for number in range(20):
            thread.add_reply(make_call(f"c{thread.turn}-{number}"))
            thread.add_result(f"c{thread.turn}-{number}", data="x" * 150)
        thread.add_reply("Done")
    turn_tokens = estimate_tokens(thread.messages[:42])
    history = truncate_history(thread.messages, replace(ANTHROPIC_PROFILE, max_history_tokens=3 * turn_tokens + 50))
    assert remove_note(history) == thread.messages[3 * 42 :]
