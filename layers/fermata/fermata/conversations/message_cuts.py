"""Keep which messages of a conversation count no more, because its user went back behind them (decision 0383).

A cut is a range of positions, `[first, behind the last]`. The messages stay stored until the conversation is deleted.
"""

import json
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from fermata.domain.messages import Message

MessageCuts: TypeAlias = tuple[tuple[int, int], ...]


def add_cut(cuts: MessageCuts, first: int, end: int) -> MessageCuts:
    """Return the cuts with another one, which is behind them or joins them.

    Args:
        cuts: In order.
        first: The first position that counts no more.
        end: The position behind the last one.
    """
    if first >= end:
        return cuts
    kept = tuple(cut for cut in cuts if cut[1] < first)
    joined = [cut for cut in cuts if cut[1] >= first]
    return (*kept, (min([first, *(cut[0] for cut in joined)]), max([end, *(cut[1] for cut in joined)])))


def leave_out_cut_messages(messages: Iterable[Message], cuts: MessageCuts) -> list[Message]:
    """Return the messages that count."""
    return [message for message in messages if not any(first <= message.position < end for first, end in cuts)]


def encode_cuts(cuts: MessageCuts) -> str:
    """Return the text that a row stores."""
    return json.dumps(cuts, separators=(",", ":"))


def decode_cuts(text: str) -> Sequence[tuple[int, int]]:
    """Parse the text of a row."""
    return tuple((first, end) for first, end in json.loads(text))
