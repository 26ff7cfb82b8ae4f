"""Take off the Markdown fences that models put around code."""

import re

_FENCE_LINE = re.compile(r"[ \t]*+(?:`{3,}|~{3,})[ \t]*+[\w+-]*+[ \t]*+")
_FENCED_IN_LINE = re.compile(r"(?P<fence>`{3,})(?:(?:html|css|js)\b)?(?P<code>[^\n`]*)(?P=fence)")


def strip_markdown_fence(text: str) -> str:
    """Return the code within fences around the whole text, also if one of the two is missing; else the text itself."""
    stripped = text.replace("\r\n", "\n").strip()
    if in_line := _FENCED_IN_LINE.fullmatch(stripped):
        return in_line["code"]
    lines = stripped.split("\n")
    start = 1 if _FENCE_LINE.fullmatch(lines[0]) else 0
    end = len(lines) - 1 if len(lines) > 1 and _FENCE_LINE.fullmatch(lines[-1]) else len(lines)
    return text if (start, end) == (0, len(lines)) else "\n".join(lines[start:end])
