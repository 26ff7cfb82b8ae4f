"""A server that repeats the key it was sent: neither its stream nor what is kept of it may hold the key."""

from collections.abc import Iterator
from typing import Any

from fermata.domain.blocks import Block, ReasoningBlock
from fermata.domain.model_io import ModelResponse, ReasoningDelta, StreamPart, TextDelta
from fermata.drivers.error_mapping import REDACTED_KEY
from fermata.drivers.protocols.tool_call_ids import assign_unique_call_ids

MIN_REDACTED_KEY_CHARS = 8
"""Characters of a key that is looked for; shorter ones (a local server's `key`) are words that are said anyway."""

_Delta = TextDelta | ReasoningDelta


class KeyRedactor:
    """Lets pieces through without the secret. Of text only an end that may be the secret's beginning waits, for the
    next piece of its kind, for the reply or for the end of the stream.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret if len(secret) >= MIN_REDACTED_KEY_CHARS else ""
        self._waiting: dict[type[_Delta], str] = {}

    def redact_piece(self, piece: StreamPart) -> Iterator[StreamPart]:
        if not self._secret:
            yield piece
        elif isinstance(piece, ModelResponse):
            yield from self.flush()
            yield piece.model_copy(update={"blocks": self._blocks(piece.blocks)})
        else:
            yield from self._through(piece)

    def flush(self) -> Iterator[StreamPart]:
        """What still waits turned out to be no more than a beginning."""
        waiting, self._waiting = self._waiting, {}
        for kind, text in waiting.items():
            yield kind(text=text)

    def _through(self, piece: _Delta) -> Iterator[StreamPart]:
        kind = type(piece)
        if kind not in self._waiting and self._secret[0] not in piece.text:
            yield piece  # most text, and streams are long
            return
        text = self._waiting.pop(kind, "") + piece.text
        *hidden, last = text.split(self._secret)
        end = self._beginning(last)
        if end < len(last):
            self._waiting[kind] = last[end:]
        shown = REDACTED_KEY.join([*hidden, last[:end]])
        if shown:
            yield piece if shown == piece.text else kind(text=shown)

    def _beginning(self, text: str) -> int:
        """Where the longest end of the text begins that the secret begins with."""
        at = text.find(self._secret[0], max(0, len(text) - len(self._secret) + 1))
        while at >= 0 and not self._secret.startswith(text[at:]):
            at = text.find(self._secret[0], at + 1)
        return len(text) if at < 0 else at

    def _blocks(self, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        """Thinking is kept byte-exact or not at all: it may be signed. Ids that became the same are told apart."""
        kept = [self._block(block) for block in blocks]
        return assign_unique_call_ids([block for block in kept if block is not None], b"")

    def _block(self, block: Block) -> Block | None:
        members = block.model_dump()
        clean = self._clean(members)
        if clean == members:
            return block
        return None if isinstance(block, ReasoningBlock) else type(block).model_validate(clean)

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return value.replace(self._secret, REDACTED_KEY)
        if isinstance(value, list | tuple):
            return [self._clean(one) for one in value]
        if isinstance(value, dict):
            return {self._clean(name): self._clean(one) for name, one in value.items()}
        return value
