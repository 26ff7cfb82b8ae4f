"""Cut a tool result to a number of tokens, and say in it what is missing and how to ask for it (decision 0200)."""

from typing import Any

from fermata.conversations.history.token_estimate import (
    MAX_TOKENS_PER_IMAGE,
    estimate_block_tokens,
    estimate_json_tokens,
    estimate_text_tokens,
)
from fermata.domain.blocks import Block, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.json_shortening import (
    advise_on_the_rest,
    count_json_chars,
    share_room,
    shorten_data,
    shorten_text,
    shorten_value,
)
from fermata.domain.messages import Message
from fermata.domain.weak_cache import WeakCache

MIN_RESULT_TOKENS = 200
"""Cutting or leaving out a smaller result gains nothing."""
_OVERHEAD_TOKENS = 12 + 90
"""Of the message, and of the notes."""
_PROPORTIONAL_ATTEMPTS = 4


def make_left_out_result(tool_name: str) -> ToolResultBlock:
    """Return the block that replaces an older result for which there is no room."""
    note = (
        f"This {tool_name} output was left out, because it no longer fits into your context window beside newer ones. "
        "If you still need it, ask for a smaller part of it."
    )
    return ToolResultBlock(ok=True, data={"elided": True, "note": note})


def add_result_note(block: ToolResultBlock, note: str) -> ToolResultBlock:
    """Return the result with a note among its data."""
    data = block.data if isinstance(block.data, dict) else {"data": block.data}
    return block.model_copy(update={"data": data | {"note": note}})


def cut_result(message: Message, max_tokens: int) -> Message:
    """Return a fetched result of at most so many tokens, or of the few that its notes need."""
    cuts = _get_known_cuts(message)
    if max_tokens not in cuts:
        room = max(0, max_tokens - _OVERHEAD_TOKENS)
        cuts[max_tokens] = message.model_copy(
            update={
                "content": tuple(
                    _cut_result_block(block, room) if block.kind == "toolResult" else block for block in message.content
                )
            }
        )
    return cuts[max_tokens]


@WeakCache
def _get_known_cuts(_message: Message) -> dict[int, Message]:
    return {}


def _cut_result_block(block: ToolResultBlock, max_tokens: int) -> ToolResultBlock:
    images = block.images or ()
    kept = images[: max_tokens // 2 // MAX_TOKENS_PER_IMAGE]
    room = max_tokens - MAX_TOKENS_PER_IMAGE * len(kept)
    error = None if block.error is None else _cut_text(block.error, room)
    cut = block.model_copy(
        update={
            "error": error,
            "data": None
            if block.data is None
            else _cut_data(block.data, max(0, room - estimate_text_tokens(error or ""))),
            "images": kept or None,
        }
    )
    if len(kept) == len(images):
        return cut
    return add_result_note(cut, f"{len(images) - len(kept)} of {len(images)} images do not fit and were omitted.")


def _cut_text(text: str, max_tokens: int) -> str:
    tokens = estimate_text_tokens(text)
    return text if tokens <= max_tokens else shorten_text(text, max(0, len(text) * max_tokens // tokens))


def _cut_data(data: Any, max_tokens: int) -> Any:
    """Shorten data until its estimate fits: the scripts of its beginning may need more tokens than those of its end.

    Where proportion does not lead there soon, it is halved.
    """
    chars, tokens = count_json_chars(data), estimate_json_tokens(data)
    if tokens <= max_tokens:
        return data
    max_chars = chars * max_tokens // tokens
    attempt = 0
    while max_chars >= 1:
        cut = shorten_data(data, max_chars)
        tokens = estimate_json_tokens(cut["data"] if cut is not data else cut)
        if tokens <= max_tokens:
            return cut
        attempt += 1
        part = max_tokens / tokens if attempt < _PROPORTIONAL_ATTEMPTS else 0.5
        max_chars = min(max_chars - 1, int(max_chars * part))
    return {
        "truncated": True,
        "note": f"None of {chars:,} characters fit here. {advise_on_the_rest(data)}",
        "totalCharacters": chars,
    }


def cut_reply(message: Message, max_tokens: int) -> Message:
    """Return a fetched reply whose words and inputs of calls have at most so many tokens: it has been carried out."""
    places = [place for place, block in enumerate(message.content) if block.kind in ("toolCall", "text")]
    sizes = [estimate_block_tokens(message.content[place]) for place in places]
    shares = dict(zip(places, share_room(sizes, max(0, max_tokens)), strict=True))
    content = tuple(
        _cut_reply_block(block, shares[place]) if place in shares else block
        for place, block in enumerate(message.content)
    )
    return message.model_copy(update={"content": content})


def _cut_reply_block(block: Block, max_tokens: int) -> Block:
    if block.kind == "toolCall":
        return _cut_input(block, max_tokens)
    return TextBlock(text=_cut_text(block.text, max_tokens)) if block.kind == "text" else block


def _cut_input(call: ToolCallBlock, max_tokens: int) -> ToolCallBlock:
    tokens = estimate_json_tokens(call.input)
    if tokens <= max_tokens:
        return call
    max_chars = count_json_chars(call.input) * max_tokens // tokens
    return call.model_copy(update={"input": shorten_value(call.input, max_chars)})
