"""Tell thinking that a model writes between tags in its text from the answer itself (decision 0195).

Models whose server does not separate the two write `<think>…</think>` before their answer. Such thinking is shown as
reasoning and is not sent back.
"""

import re
from collections.abc import Iterator, Sequence

from fermata.domain.blocks import Block, TextBlock
from fermata.domain.model_io import ModelResponse, ReasoningDelta, StreamPart, TextDelta

_NAMES = ("think", "thinking", "thought")
_TAG = re.compile(r"(?P<open><(?:think|thinking|thought)>|\[THINK\])|</(?:think|thinking|thought)>|\[/THINK\]", re.I)
_TAGS = (*(f"<{name}>" for name in _NAMES), *(f"</{name}>" for name in _NAMES), "[think]", "[/think]")
_QUOTES = ("`", '"', "'", "\\", "(")
_FENCE = "```"

_Piece = tuple[bool, str]
"""Whether it is thinking, and the text."""


class ThinkingSplitter:
    """Split text that arrives in pieces. Blanks at its beginning and an end that may become a tag are held back.

    A tag in a code fence or behind a quotation mark is text. So is a tag behind other text that is never closed:
    `flush` returns what followed it as text, so that nothing is lost. Some servers send the closing tag only; it is
    left out.
    """

    def __init__(self) -> None:
        self._held_back = ""
        self._ending = ""
        """The end of the answer so far, which says whether a tag is quoted."""
        self._is_in_code = False
        self._is_thinking = False
        self._skips_blanks = False
        self._unclosed: list[str] = []

    def feed(self, text: str) -> Iterator[_Piece]:
        text = self._held_back + text
        self._held_back = ""
        while tag := _TAG.search(text):
            yield from self._pass_on(text[: tag.start()], before_tag=True)
            if bool(tag["open"]) != self._is_thinking and not self._is_quoted:
                self._is_thinking = bool(tag["open"])
                self._skips_blanks = True
                self._unclosed = [tag[0]]
            elif tag["open"] or self._is_quoted:
                yield from self._pass_on(tag[0])
            else:
                self._skips_blanks = True
            text = text[tag.end() :]
        cut = _find_tag_start(text)
        if not self._ending and not text[:cut].strip():
            cut = 0
        self._held_back = text[cut:]
        yield from self._pass_on(text[:cut])

    def flush(self) -> Iterator[_Piece]:
        """Return what is held back, at the end of the text."""
        held_back, self._held_back = self._held_back, ""
        yield from self._pass_on(held_back)
        if self._is_thinking and self._ending:
            self._is_thinking = False
            yield False, "".join(self._unclosed)

    @property
    def _is_quoted(self) -> bool:
        return not self._is_thinking and (self._is_in_code or self._ending.endswith(_QUOTES))

    def _pass_on(self, text: str, *, before_tag: bool = False) -> Iterator[_Piece]:
        if self._is_thinking:
            self._unclosed.append(text)
        if self._skips_blanks:
            text = text.lstrip()
        if not text or (before_tag and not self._is_thinking and not self._ending and not text.strip()):
            return
        self._skips_blanks = False
        if not self._is_thinking:
            seen = self._ending[-2:] + text
            self._is_in_code ^= seen.count(_FENCE) % 2 == 1
            self._ending = seen[-3:]
        yield self._is_thinking, text


def _drop_unopened_thinking(text: str) -> str:
    """Drop what is before a closing tag that nothing has opened, unless nothing else is there."""
    tag = _TAG.search(text)
    is_closing = tag is not None and not tag["open"] and not text[: tag.start()].endswith(_QUOTES)
    rest = text[tag.end() :].lstrip() if tag is not None and is_closing and _FENCE not in text else ""
    return rest or text


def _find_tag_start(text: str) -> int:
    """Return where an end of the text begins that may become a tag; its length if there is none."""
    start = max(text.rfind("<"), text.rfind("["))
    tail = text[start:].lower()
    return start if start >= 0 and any(tag.startswith(tail) for tag in _TAGS) else len(text)


def split_thinking_from_parts(parts: Iterator[StreamPart]) -> Iterator[StreamPart]:
    """Show thinking in the text as reasoning, and leave it out of the response's blocks."""
    splitter = ThinkingSplitter()
    for part in parts:
        if isinstance(part, TextDelta):
            yield from _to_deltas(splitter.feed(part.text))
        elif isinstance(part, ModelResponse):
            yield from _to_deltas(splitter.flush())
            yield part.model_copy(update={"blocks": _without_thinking(part.blocks)})
        else:
            yield part


def _to_deltas(pieces: Iterator[_Piece]) -> Iterator[StreamPart]:
    for is_thinking, text in pieces:
        yield ReasoningDelta(text=text) if is_thinking else TextDelta(text=text)


def _without_thinking(blocks: Sequence[Block]) -> tuple[Block, ...]:
    if not any(isinstance(block, TextBlock) and _TAG.search(block.text) for block in blocks):
        return tuple(blocks)
    result: list[Block] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            splitter = ThinkingSplitter()
            pieces = [*splitter.feed(_drop_unopened_thinking(block.text)), *splitter.flush()]
            if (text := "".join(text for is_thinking, text in pieces if not is_thinking)).strip():
                result.append(TextBlock(text=text))
        else:
            result.append(block)
    return tuple(result)
