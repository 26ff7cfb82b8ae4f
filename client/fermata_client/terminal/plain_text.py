"""Prepare text of models and servers for a terminal."""

import json
import re
from typing import Any

MAX_INPUT_CHARS = 64

_CONTROL_CHARS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def strip_control_chars(text: str) -> str:
    """Remove control characters but tab and newline, so that text cannot move the cursor or change colours."""
    return _CONTROL_CHARS.sub("", text)


def summarize_input(tool_input: Any) -> str:
    """Summarize a tool's input in one line: short values as they are, long ones by their size."""
    if not isinstance(tool_input, dict):
        return ""
    return strip_control_chars(" ".join(f"{name}={_summarize_value(value)}" for name, value in tool_input.items()))


def _summarize_value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= MAX_INPUT_CHARS and "\n" not in text:
        return text
    line_count = text.count("\n") + 1
    return f"({len(text)} characters)" if line_count == 1 else f"({line_count} lines)"
