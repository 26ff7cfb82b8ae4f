"""Notice calls that a model has written as text (decision 0196)."""

import re
from collections.abc import Sequence

from fermata.domain.blocks import Block
from fermata.domain.lenient_json import UnreadableJson, read_bounded_json

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.S)
_MARKUP = re.compile(
    r"<tool_calls?>\s*[\[{<]|<function=[\w.:-]+>|<invoke name=|<function_calls>|\[TOOL_CALLS\]|<\|tool_calls?|"
    r"<\uff5ctool\u2581calls?|<[|\uff5c]{0,4}DSML|<\|python_tag\|>|<\|channel\|>commentary to=",
)
"""Matches how models of many makers write calls when their server does not read them."""
_INPUT_MEMBERS = {"arguments", "parameters"}
WRITTEN_CALL_WARNING = (
    "The model wrote a tool call as text, so nothing was done. Ask it to go on, or choose another model."
)


def is_call_written_as_text(blocks: Sequence[Block]) -> bool:
    """Return whether the text of an answer without calls is or holds one. Code in Markdown is none."""
    if any(block.kind == "toolCall" for block in blocks):
        return False
    return any(block.kind == "text" and _holds_call(block.text) for block in blocks)


def _holds_call(text: str) -> bool:
    plain = _CODE.sub("", text)
    return _MARKUP.search(plain) is not None or _is_bare_call(plain.strip())


def _is_bare_call(text: str) -> bool:
    if not (text.startswith("{") and text.endswith("}")):
        return False
    try:
        value = read_bounded_json(text)
    except UnreadableJson:
        return False
    return isinstance(value, dict) and isinstance(value.get("name"), str) and bool(value.keys() & _INPUT_MEMBERS)
