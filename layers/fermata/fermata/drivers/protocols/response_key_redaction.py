"""Remove the API key from a response whose server repeats it (decision 0096)."""

from collections.abc import Iterator
from typing import Any

from fermata.domain.blocks import Block, ReasoningBlock
from fermata.domain.model_io import ModelResponse, ReasoningDelta, StreamPart, TextDelta
from fermata.drivers.protocols.unique_call_ids import assign_unique_call_ids
from fermata.drivers.secret_veil import MIN_VEILED_CHARS, REDACTED_KEY, list_literal_forms, to_ascii_lower

_Delta = TextDelta | ReasoningDelta


class KeyRedactor:
    """Pass parts of a stream on without the key.

    Only an end of text that may be the key's beginning is held back: until the next part of its kind, the response,
    or the end of the stream.
    """

    def __init__(self, api_key: str) -> None:
        self._forms = list_literal_forms(api_key) if len(api_key) >= MIN_VEILED_CHARS else []
        self._first_characters = {form[0] for form in self._forms}
        self._held_back: dict[type[_Delta], str] = {}

    def redact_part(self, part: StreamPart) -> Iterator[StreamPart]:
        if not self._forms:
            yield part
        elif isinstance(part, ModelResponse):
            yield from self.flush()
            yield part.model_copy(update={"blocks": self._redact_blocks(part.blocks)})
        else:
            yield from self._redact_delta(part)

    def flush(self) -> Iterator[StreamPart]:
        """Yield what is held back; no more of the key followed it."""
        held_back, self._held_back = self._held_back, {}
        for kind, text in held_back.items():
            yield kind(text=text)

    def _redact_delta(self, delta: _Delta) -> Iterator[StreamPart]:
        kind = type(delta)
        if kind not in self._held_back and self._first_characters.isdisjoint(to_ascii_lower(delta.text)):
            yield delta
            return
        *before_keys, tail = self._split_at_keys(self._held_back.pop(kind, "") + delta.text)
        cut = self._find_key_start(tail)
        if cut < len(tail):
            self._held_back[kind] = tail[cut:]
        redacted = REDACTED_KEY.join([*before_keys, tail[:cut]])
        if redacted:
            yield delta if redacted == delta.text else kind(text=redacted)

    def _split_at_keys(self, text: str) -> list[str]:
        """Return the texts around each spelling of the key."""
        pieces = [text]
        for form in self._forms:
            pieces = [part for piece in pieces for part in _split_at_form(piece, form)]
        return pieces

    def _find_key_start(self, text: str) -> int:
        """Return where the longest ending starts that a spelling of the key begins with; the text's length if none."""
        lowered = to_ascii_lower(text)
        return min((_find_form_start(lowered, form) for form in self._forms), default=len(text))

    def _redact_blocks(self, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        """Redact the blocks. Call ids are made unique again, because redaction may make two the same."""
        redacted = [self._redact_block(block) for block in blocks]
        return assign_unique_call_ids([block for block in redacted if block is not None], b"")

    def _redact_block(self, block: Block) -> Block | None:
        """Reasoning may be signed, so it stays as it is to the byte, or is dropped."""
        members = block.model_dump()
        redacted = self._redact_value(members)
        if redacted == members:
            return block
        return None if isinstance(block, ReasoningBlock) else type(block).model_validate(redacted)

    def _redact_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return REDACTED_KEY.join(self._split_at_keys(value))
        if isinstance(value, list | tuple):
            return [self._redact_value(member) for member in value]
        if isinstance(value, dict):
            return {self._redact_value(name): self._redact_value(member) for name, member in value.items()}
        return value


def _split_at_form(text: str, form: str) -> list[str]:
    lowered = to_ascii_lower(text)
    pieces: list[str] = []
    start, at = 0, lowered.find(form)
    while at >= 0:
        pieces.append(text[start:at])
        start = at + len(form)
        at = lowered.find(form, start)
    return [*pieces, text[start:]]


def _find_form_start(lowered: str, form: str) -> int:
    start = lowered.find(form[0], max(0, len(lowered) - len(form) + 1))
    while start >= 0 and not form.startswith(lowered[start:]):
        start = lowered.find(form[0], start + 1)
    return len(lowered) if start < 0 else start
