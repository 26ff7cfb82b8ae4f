"""How far back a request goes."""

from dataclasses import replace

from fermata.conversations.history.token_estimate import estimate_tokens
from fermata.conversations.history.truncation import BEGINNING_OMITTED_NOTE, truncate_history
from fermata.domain.blocks import TextBlock
from fermata.domain.messages import Message
from tests.unit.conversations.message_builders import ANTHROPIC_PROFILE, ThreadBuilder, make_call

SMALL_PROFILE = replace(ANTHROPIC_PROFILE, max_history_tokens=5_000)


def add_turns(count: int, thread: ThreadBuilder | None = None, size: int = 600) -> ThreadBuilder:
    """Turns of about 230 tokens each: prompt, call, result, answer."""
    thread = thread or ThreadBuilder()
    for _ in range(count):
        thread.add_prompt(f"Prompt {thread.turn}")
        thread.add_reply(make_call(f"c{thread.turn}"))
        thread.add_result(f"c{thread.turn}", data="x" * size)
        thread.add_reply("Done")
    return thread


def remove_note(messages: list[Message]) -> list[Message]:
    """Without the note at the front."""
    first = messages[0]
    content = tuple(block for block in first.content if block != TextBlock(text=BEGINNING_OMITTED_NOTE))
    return [first.model_copy(update={"content": content}), *messages[1:]]


def test_a_conversation_that_fits_is_sent_whole() -> None:
    thread = add_turns(10)
    assert truncate_history(thread.messages, SMALL_PROFILE) == thread.messages


def test_of_a_longer_one_whole_turns_are_sent_the_newest_and_the_model_is_told() -> None:
    thread = add_turns(60)
    kept = truncate_history(thread.messages, SMALL_PROFILE)
    assert estimate_tokens(kept) <= SMALL_PROFILE.max_history_tokens + 100
    assert kept[0].role == "user"
    assert kept[0].content[0] == TextBlock(text=BEGINNING_OMITTED_NOTE)
    assert remove_note(kept) == thread.messages[-len(kept) :]
    assert len(kept) > 40


def test_the_cut_stays_where_it_is_for_a_while_so_that_the_prefix_can_be_cached() -> None:
    thread = add_turns(60)
    beginnings = []
    for _ in range(40):
        add_turns(1, thread)
        beginnings.append(truncate_history(thread.messages, SMALL_PROFILE)[0].position)
    assert beginnings == sorted(beginnings)
    assert len(set(beginnings)) <= 40 / 3


def test_the_cut_does_not_depend_on_how_much_was_read() -> None:
    thread = add_turns(60)
    whole = truncate_history(thread.messages, SMALL_PROFILE)
    assert truncate_history(thread.messages[100:], SMALL_PROFILE, is_complete=False) == whole
    assert truncate_history(thread.messages[60:], SMALL_PROFILE, is_complete=False) == whole


def test_the_newest_turn_stays_however_long_it_is() -> None:
    thread = add_turns(3)
    add_turns(1, thread, size=100_000)
    kept = truncate_history(thread.messages, SMALL_PROFILE)
    assert remove_note(kept) == thread.messages[-4:]


def test_what_was_read_from_the_middle_says_so_even_when_it_fits() -> None:
    thread = add_turns(3)
    kept = truncate_history(thread.messages[4:], SMALL_PROFILE, is_complete=False)
    assert kept[0].content[0] == TextBlock(text=BEGINNING_OMITTED_NOTE)


def test_of_few_long_turns_all_that_fit_are_sent() -> None:
    thread = ThreadBuilder()
    for _ in range(6):
        thread.add_prompt("Go")
        for number in range(20):
            thread.add_reply(make_call(f"c{thread.turn}-{number}"))
            thread.add_result(f"c{thread.turn}-{number}", data="x" * 150)
        thread.add_reply("Done")
    one = estimate_tokens(thread.messages[:42])
    kept = truncate_history(thread.messages, replace(ANTHROPIC_PROFILE, max_history_tokens=3 * one + 10))
    assert remove_note(kept) == thread.messages[3 * 42 :]
