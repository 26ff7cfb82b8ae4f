"""Take off the Markdown fences and the tags that models put around code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_OPENING = re.compile(r"[ \t]*+(?P<fence>`{3,}|~{3,})[ \t]*+(?P<language>[\w+#.-]*+)(?P<rest>[^`<]*)")
"""An opening fence with its info string, such as ```html title="index.html"."""
_CLOSING = re.compile(r"[ \t]*+(?P<fence>`{3,}|~{3,})[ \t]*+")
_FENCED_IN_LINE = re.compile(r"(?P<fence>`{3,}+)(?:(?:html|css|js)\b)?(?P<code>[^\n`]*)(?P=fence)")
_CODE_AFTER_OPENING = re.compile(r"\A(`{3,}(?:html|css|js|javascript|xml|svg)?)[ \t]*(?=<)", re.IGNORECASE)
_WORDS_BEFORE_OPENING = re.compile(r"^([^<`{\n]*[^<`{\s])[ \t]+(`{3,}[\w+-]+)[ \t]*$", re.MULTILINE)
_CODE_BEFORE_CLOSING = re.compile(r"(?<=[^\s`])[ \t]*(`{3,})\Z")
_ELEMENT_START = re.compile(r"\s*+<(?P<tag>style|script)\b[^>]*+>", re.IGNORECASE)
_ELEMENT_END = re.compile(r"</(?:style|script)\s*+>\s*+\Z", re.IGNORECASE)
_CODE_SIGN = re.compile(r"[{};=]")
_INVISIBLE = "\ufeff\u200b \t\r\n"


@dataclass(frozen=True)
class _Block:
    language: str
    code: str
    start: int
    end: int
    """The lines from the opening fence to the closing one."""


def strip_markdown_fence(text: str) -> str:
    """Return the code within fences, also if one is missing or words are around them; else the text itself.

    Several blocks are joined. Style sheets among blocks of markup become style elements.
    """
    stripped = text.replace("\r\n", "\n").strip(_INVISIBLE)
    if in_line := _FENCED_IN_LINE.fullmatch(stripped):
        return in_line["code"].strip()
    lines = _with_fences_on_own_lines(stripped).split("\n")
    blocks = list(_iter_blocks(lines))
    outside = [line for number, line in enumerate(lines) if not any(b.start <= number <= b.end for b in blocks)]
    if blocks and not _has_code(outside):
        return _join_blocks(blocks)
    start = 1 if _is_opening(lines[0]) else 0
    end = len(lines) - 1 if len(lines) > 1 and _CLOSING.fullmatch(lines[-1]) else len(lines)
    return text if (start, end) == (0, len(lines)) else "\n".join(lines[start:end])


def strip_element_tags(code: str, tag: str) -> str:
    """Return the content of the one element that a style sheet or script is sent in; else the text itself."""
    start = _ELEMENT_START.match(code)
    if start is None or start["tag"].lower() != tag:
        return code
    end = _ELEMENT_END.search(code)
    inner = code[start.end() : end.start() if end else len(code)]
    is_one = not any(mark in inner.lower() for mark in (f"<{tag}", f"</{tag}"))
    return inner.strip("\n") if is_one else code


def _with_fences_on_own_lines(text: str) -> str:
    text = _WORDS_BEFORE_OPENING.sub(r"\1\n\2", text)
    if text.startswith("```"):
        text = _CODE_BEFORE_CLOSING.sub(r"\n\1", _CODE_AFTER_OPENING.sub(r"\1\n", text))
    return text


def _is_opening(line: str) -> bool:
    return _OPENING.fullmatch(line) is not None


def _iter_blocks(lines: list[str]) -> Iterator[_Block]:
    """Yield the fenced blocks that are closed. A fence is closed by one of its kind that is at least as long."""
    opening: re.Match[str] | None = None
    start = 0
    for number, line in enumerate(lines):
        if opening is None:
            opening, start = _OPENING.fullmatch(line), number
        elif (closing := _CLOSING.fullmatch(line)) and closing["fence"].startswith(opening["fence"]):
            yield _Block(opening["language"].lower(), "\n".join(lines[start + 1 : number]), start, number)
            opening = None


def _join_blocks(blocks: list[_Block]) -> str:
    is_mixed = len({block.language == "css" for block in blocks}) == 2
    return "\n".join(
        f"<style>\n{block.code}\n</style>" if is_mixed and block.language == "css" else block.code for block in blocks
    )


def _has_code(lines: list[str]) -> bool:
    """Return whether lines hold more than the words that models put around code."""
    return any(line.lstrip().startswith("<") or _CODE_SIGN.search(line) or line.count("`") % 2 for line in lines)
