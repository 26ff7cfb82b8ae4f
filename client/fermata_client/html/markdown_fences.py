"""Take off the Markdown fences that models put around code."""

import re

_FENCE_LINE = re.compile(r"[ \t]*+(?:`{3,}|~{3,})[ \t]*+[\w+-]*+[ \t]*+")
_FENCED_IN_LINE = re.compile(r"(?P<fence>`{3,})(?:(?:html|css|js)\b)?(?P<code>[^\n`]*)(?P=fence)")


def strip_markdown_fence(text: str) -> str:
    """Return the code within fences, also if one is missing or words are around them; else the text itself."""
    stripped = text.replace("\r\n", "\n").strip()
    if in_line := _FENCED_IN_LINE.fullmatch(stripped):
        return in_line["code"]
    lines = stripped.split("\n")
    fences = [number for number, line in enumerate(lines) if _FENCE_LINE.fullmatch(line)]
    if len(fences) == 2 and not _has_code([*lines[: fences[0]], *lines[fences[1] :]]):
        return "\n".join(lines[fences[0] + 1 : fences[1]])
    start = 1 if fences[:1] == [0] else 0
    end = len(lines) - 1 if len(lines) > 1 and fences[-1:] == [len(lines) - 1] else len(lines)
    return text if (start, end) == (0, len(lines)) else "\n".join(lines[start:end])


def _has_code(lines: list[str]) -> bool:
    """Return whether lines hold more than the words that models put around code."""
    return any("<" in line or "{" in line for line in lines)
