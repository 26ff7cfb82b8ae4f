"""Totals of a history that grows look at each message once (decision 0603)."""

from collections.abc import Sequence
from typing import Any

import pytest

from fermata.conversations import block_store
from fermata.conversations.block_store import BlockFetcher
from fermata.conversations.history import message_totals
from fermata.conversations.history.message_totals import MessageTotals
from fermata.conversations.history.token_estimate import estimate_tokens
from fermata.domain.messages import Message
from tests.unit.conversations.message_builders import ThreadBuilder, make_call, make_image


@pytest.fixture
def messages() -> list[Message]:
    thread = ThreadBuilder()
    thread.add_prompt("Look")
    thread.add_reply(make_call("c0", "read"))
    thread.add_result("c0", "read", data="z" * 500)
    thread.add_reply("Done.")
    return thread.messages


def read_totals(totals: MessageTotals, messages: Sequence[Message]) -> tuple[int, bool]:
    totals.update(messages)
    return totals.tokens, totals.has_images


def test_a_message_is_looked_at_once(messages: list[Message], monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []
    has_images: Any = message_totals.has_images
    monkeypatch.setattr(message_totals, "has_images", lambda it: looked_at.append(it.position) or has_images(it))
    totals = MessageTotals()
    for count in range(1, len(messages) + 1):
        assert read_totals(totals, messages[:count]) == (estimate_tokens(messages[:count]), False)
    assert looked_at == [message.position for message in messages]


def test_totals_of_other_messages_begin_anew(messages: list[Message]) -> None:
    totals = MessageTotals()
    pictured = messages[0].model_copy(update={"content": (make_image(),)})
    for shown in (messages, [messages[0], pictured, *messages[2:]], messages, messages[:2], [], messages[1:]):
        assert read_totals(totals, shown) == (estimate_tokens(shown), pictured in shown)


def test_a_message_with_all_its_blocks_is_looked_at_once(
    messages: list[Message], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[int] = []
    monkeypatch.setattr(block_store, "_is_complete", lambda message: looked_at.append(message.position) or True)
    no_blobs: Any = None
    fetcher = BlockFetcher(no_blobs)
    for count in (2, 4, 4):
        assert fetcher.fetch_all_blocks(messages[:count]) == messages[:count]
    assert looked_at == [message.position for message in messages]
    fetcher.fetch_all_blocks(messages[1:])
    assert looked_at[4:] == [message.position for message in messages[1:]], "these do not begin with those"
