"""How far back a request goes."""

from dataclasses import replace

from fermata.conversations.cutting import NOTE, cut
from fermata.conversations.recipient import weight
from fermata.words.blocks import TextBlock
from fermata.words.messages import Message
from tests.unit.conversations.messages import ANTHROPIC, Thread, call

SMALL = replace(ANTHROPIC, tokens=5_000)


def turns(count: int, thread: Thread | None = None, size: int = 600) -> Thread:
    """Turns of about 230 tokens each: prompt, call, result, answer."""
    thread = thread or Thread()
    for _ in range(count):
        thread.user(f"Prompt {thread.turn}")
        thread.model(call(f"c{thread.turn}"))
        thread.result(f"c{thread.turn}", data="x" * size)
        thread.model("Done")
    return thread


def bare(messages: list[Message]) -> list[Message]:
    """Without the note at the front."""
    first = messages[0]
    content = tuple(block for block in first.content if block != TextBlock(text=NOTE))
    return [first.model_copy(update={"content": content}), *messages[1:]]


def test_a_conversation_that_fits_is_sent_whole() -> None:
    thread = turns(10)
    assert cut(thread.messages, SMALL) == thread.messages


def test_of_a_longer_one_whole_turns_are_sent_the_newest_and_the_model_is_told() -> None:
    thread = turns(60)
    kept = cut(thread.messages, SMALL)
    assert weight(kept) <= SMALL.tokens + 100
    assert kept[0].role == "user"
    assert kept[0].content[0] == TextBlock(text=NOTE)
    assert bare(kept) == thread.messages[-len(kept) :]
    assert len(kept) > 40


def test_the_cut_stays_where_it_is_for_a_while_so_that_the_prefix_can_be_cached() -> None:
    thread = turns(60)
    beginnings = []
    for _ in range(40):
        turns(1, thread)
        beginnings.append(cut(thread.messages, SMALL)[0].position)
    assert beginnings == sorted(beginnings)
    assert len(set(beginnings)) <= 40 / 3


def test_the_cut_does_not_depend_on_how_much_was_read() -> None:
    thread = turns(60)
    whole = cut(thread.messages, SMALL)
    assert cut(thread.messages[100:], SMALL, is_whole=False) == whole
    assert cut(thread.messages[60:], SMALL, is_whole=False) == whole


def test_the_newest_turn_stays_however_long_it_is() -> None:
    thread = turns(3)
    turns(1, thread, size=100_000)
    kept = cut(thread.messages, SMALL)
    assert bare(kept) == thread.messages[-4:]


def test_what_was_read_from_the_middle_says_so_even_when_it_fits() -> None:
    thread = turns(3)
    kept = cut(thread.messages[4:], SMALL, is_whole=False)
    assert kept[0].content[0] == TextBlock(text=NOTE)


def test_of_few_long_turns_all_that_fit_are_sent() -> None:
    thread = Thread()
    for _ in range(6):
        thread.user("Go")
        for number in range(20):
            thread.model(call(f"c{thread.turn}-{number}"))
            thread.result(f"c{thread.turn}-{number}", data="x" * 150)
        thread.model("Done")
    one = weight(thread.messages[:42])
    kept = cut(thread.messages, replace(ANTHROPIC, tokens=3 * one + 10))
    assert bare(kept) == thread.messages[3 * 42 :]
