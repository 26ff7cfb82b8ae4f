"""Tell thinking that a model writes between tags in its text from the answer itself (decision 0195).

Models whose server does not separate the two write `<think>…</think>` before their answer. Such thinking is shown as
reasoning and is not sent back. Others write the channels of their template (`<|channel|>analysis<|message|>…<|end|>`).
"""

import re
from collections.abc import Iterator, Sequence

from fermata.domain.blocks import Block, TextBlock
from fermata.domain.model_io import ModelResponse, ReasoningDelta, StreamPart, TextDelta

_NAMES = ("think", "thinking", "thought", "reasoning", "seed:think")
_OPENING_TAGS = (
    *(f"<{name}>" for name in _NAMES),
    "[think]",
    "\u25c1think\u25b7",
    "<|start|>assistant<|channel|>analysis<|message|>",
    "<|channel|>analysis<|message|>",
    "<|channel>thought\n",
)
_CLOSING_TAGS = (*(f"</{name}>" for name in _NAMES), "[/think]", "\u25c1/think\u25b7")
_TEMPLATE_MARKS = (
    *(
        f"{start}<|channel|>{name}<|message|>"
        for start in ("<|start|>assistant", "")
        for name in ("final", "commentary")
    ),
    "<channel|>",
    *(f"<|{name}|>" for name in ("end", "return", "im_end", "eot_id", "eom_id", "endoftext", "end_of_text")),
    "<end_of_turn>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
)
"""What a chat template puts between messages. A server that does not know the template sends it on as text."""
_TAGS = (*_OPENING_TAGS, *_CLOSING_TAGS, *_TEMPLATE_MARKS)
_MAX_ATTRIBUTES_CHARS = 64
_NAME = "|".join(_NAMES)
_ATTRIBUTES = rf"(?:\s[^<>]{{0,{_MAX_ATTRIBUTES_CHARS}}})?(?<!/)"
"""Some models write `<think time=1>` or `</think >`."""
_VARIANTS = {
    "open": rf"<(?:{_NAME}){_ATTRIBUTES}>",
    "close": rf"</(?:{_NAME})\s{{0,{_MAX_ATTRIBUTES_CHARS}}}>",
    "mark": rf"<(?:{_NAME})\s?/>",
}
_TAG = re.compile(
    "|".join(
        f"(?P<{name}>{'|'.join((*map(re.escape, tags), _VARIANTS[name]))})"
        for name, tags in (("open", _OPENING_TAGS), ("close", _CLOSING_TAGS), ("mark", _TEMPLATE_MARKS))
    ),
    re.I,
)
_VARIANT_START = re.compile(rf"</?(?:{_NAME})(?:\s[^<>]{{0,{_MAX_ATTRIBUTES_CHARS}}}|/)?", re.I)
_TAG_STARTS = re.compile("[<[\u25c1]")
_QUOTES = ("`", '"', "'", "\\", "(")
_FENCE = "```"
_FENCE_TICKS = 3
_TICKS_OR_LINE_END = re.compile(r"`+|\n")
_MAX_TAG_CHARS = max(map(len, _TAGS)) + _MAX_ATTRIBUTES_CHARS

_Piece = tuple[bool, str]
"""Whether it is thinking, and the text."""


class ThinkingSplitter:
    """Split text that arrives in pieces. Blanks at its beginning and an end that may become a tag are held back.

    A tag in code or behind a quotation mark is text. So is a tag behind other text that is never closed: `flush`
    returns what followed it as text, so that nothing is lost. Some servers send the closing tag only; it is left out.
    So are marks of a chat template, such as `<|im_end|>`; within thinking they end it.
    """

    def __init__(self) -> None:
        self._held_back = ""
        self._blanks: list[str] = []
        """Those before anything else."""
        self._ending = ""
        """The end of the answer so far, which says whether a tag is quoted."""
        self._code = _CodeTracker()
        self._is_thinking = False
        self._skips_blanks = False
        self._unclosed: list[str] = []

    def feed(self, text: str) -> Iterator[_Piece]:
        text = self._held_back + text
        self._held_back = ""
        if not self._ending and not text.strip():
            self._blanks.append(text)
            return
        if self._blanks:
            text = "".join((*self._blanks, text))
            self._blanks.clear()
        start = 0
        for tag in _TAG.finditer(text):
            yield from self._pass_on(text[start : tag.start()], before_tag=True)
            yield from self._take_tag(tag)
            start = tag.end()
        cut = max(start, _find_tag_start(text))
        if not self._ending and not start and not text[:cut].strip():
            cut = 0
        self._held_back = text[cut:]
        yield from self._pass_on(text[start:cut])

    def flush(self) -> Iterator[_Piece]:
        """Return what is held back, at the end of the text."""
        held_back = "".join((*self._blanks, self._held_back))
        self._held_back = ""
        self._blanks.clear()
        yield from self._pass_on(held_back)
        if self._is_thinking and self._ending:
            self._is_thinking = False
            yield False, "".join(self._unclosed)

    @property
    def _is_quoted(self) -> bool:
        return not self._is_thinking and (self._code.is_inside or self._ending.endswith(_QUOTES))

    def _take_tag(self, tag: re.Match[str]) -> Iterator[_Piece]:
        if tag["mark"] and not self._is_thinking:
            if self._is_quoted:
                yield from self._pass_on(tag[0])
            else:
                self._skips_blanks = tag[0].endswith("/>")
        elif bool(tag["open"]) != self._is_thinking and not self._is_quoted:
            self._is_thinking = bool(tag["open"])
            self._skips_blanks = True
            self._unclosed = [tag[0]]
        elif tag["open"] or self._is_quoted:
            yield from self._pass_on(tag[0])
        else:
            self._skips_blanks = True

    def _pass_on(self, text: str, *, before_tag: bool = False) -> Iterator[_Piece]:
        if self._is_thinking:
            self._unclosed.append(text)
        if self._skips_blanks:
            text = text.lstrip()
        if not text:
            return
        if before_tag and not self._is_thinking and not self._ending and not text.strip():
            return
        self._skips_blanks = False
        if not self._is_thinking:
            self._code.add(text)
            self._ending = text[-1]
        yield self._is_thinking, text


class _CodeTracker:
    """Follow the text into Markdown code: fences, and spans within a line."""

    def __init__(self) -> None:
        self._ticks = 0
        """The backticks at the end of the text so far."""
        self._is_in_fence = False
        self._is_in_span = False

    @property
    def is_inside(self) -> bool:
        self._end_ticks()
        return self._is_in_fence or self._is_in_span

    def add(self, text: str) -> None:
        end = 0
        for match in _TICKS_OR_LINE_END.finditer(text):
            if match.start() > end or match[0] == "\n":
                self._end_ticks()
            end = match.end()
            if match[0] == "\n":
                self._is_in_span = False
            else:
                self._ticks += len(match[0])
        if end < len(text):
            self._end_ticks()

    def _end_ticks(self) -> None:
        if self._ticks >= _FENCE_TICKS:
            self._is_in_fence = not self._is_in_fence
        elif self._ticks and not self._is_in_fence:
            self._is_in_span = not self._is_in_span
        self._ticks = 0


def _drop_unopened_thinking(text: str) -> str:
    """Drop what is before a closing tag that nothing has opened, unless nothing else is there."""
    tag = next((tag for tag in _TAG.finditer(text) if not tag["mark"]), None)
    is_closing = tag is not None and not tag["open"] and not text[: tag.start()].endswith(_QUOTES)
    rest = text[tag.end() :].lstrip() if tag is not None and is_closing and _FENCE not in text else ""
    return rest or text


def _find_tag_start(text: str) -> int:
    """Return where an end of the text begins that may become a tag; its length if there is none."""
    ending = text[-_MAX_TAG_CHARS:]
    for start in _TAG_STARTS.finditer(ending):
        rest = ending[start.start() :].lower()
        if _VARIANT_START.fullmatch(rest) or any(tag.startswith(rest) for tag in _TAGS):
            return len(text) - len(ending) + start.start()
    return len(text)


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
