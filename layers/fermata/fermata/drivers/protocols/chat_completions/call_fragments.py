"""Collect the fragments of tool calls in a chat-completions stream (decisions 0073 and 0195)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fermata.domain.blocks import ToolCallBlock
from fermata.domain.lenient_json import UnreadableJson, read_plain_json
from fermata.drivers.protocols.chat_completions.request import EXTRA_CONTENT_FIELD
from fermata.drivers.protocols.json_fields import as_dict, as_name
from fermata.drivers.protocols.tool_arguments import build_tool_call


@dataclass
class CollectedCall:
    """One tool call while it grows."""

    index: int
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra_content: Any = None

    @property
    def is_empty(self) -> bool:
        return not (self.id or self.name or self.arguments)

    def is_continued_by(self, call_id: str, name: str, arguments: str) -> bool:
        """Return whether a fragment with this id, name and text belongs to the call, or begins another one."""
        if call_id and self.id:
            return call_id == self.id and not self._is_followed_by_another(name, arguments)
        if not name or not self.name or call_id or self.id:
            return True
        return name == self.name and not self._text.strip()

    def _is_followed_by_another(self, name: str, arguments: str) -> bool:
        """Return whether a fragment with the same index and id is a second call: not a repetition of the first."""
        if not name or not self.name or not arguments.strip():
            return bool(name and self.name and name != self.name)
        if name != self.name:
            return True
        if not (self._text.rstrip().endswith("}") and arguments.lstrip().startswith(("{", '"'))):
            return False
        whole, fragment = _read_object(self._text), _read_object(arguments)
        return whole is not None and fragment is not None and fragment not in ({}, whole)

    def add_arguments(self, arguments: Any) -> None:
        if isinstance(arguments, dict):
            self.arguments = [json.dumps(arguments)]
        elif isinstance(arguments, str):
            self.arguments.append(arguments)

    def build_block(self, *, is_cut_off: bool) -> ToolCallBlock:
        """Build the call. A last fragment may repeat what those before it have begun."""
        block = build_tool_call(self.id, self.name, self._text, is_cut_off=is_cut_off)
        *before, last = self.arguments or [""]
        if block.problem and before and last.startswith("".join(before)) and _read_object(last):
            return build_tool_call(self.id, self.name, last, is_cut_off=is_cut_off)
        return block

    @property
    def _text(self) -> str:
        return "".join(self.arguments)


class CallCollector:
    """The calls of one response, in the order of their indexes."""

    def __init__(self) -> None:
        self._calls: list[CollectedCall] = []
        self._newest_by_index: dict[int, CollectedCall] = {}

    def add_fragment(self, fragment: Mapping[str, Any]) -> None:
        function = as_dict(fragment.get("function"))
        call_id, name = as_name(fragment.get("id")), as_name(function.get("name"))
        arguments = function.get("arguments")
        text = json.dumps(arguments) if isinstance(arguments, dict) else str(arguments or "")
        call = self._find_call(fragment.get("index"), call_id, name, text)
        call.id = call.id or call_id
        call.name = call.name or name
        call.extra_content = fragment.get(EXTRA_CONTENT_FIELD) or call.extra_content
        call.add_arguments(arguments)

    def get_calls(self) -> list[CollectedCall]:
        """Return the calls that have any content."""
        return [call for call in sorted(self._calls, key=lambda call: call.index) if not call.is_empty]

    def _find_call(self, index: Any, call_id: str, name: str, arguments: str) -> CollectedCall:
        """Return the call that a fragment belongs to.

        Servers without indexes, or with the same index for all calls, begin a new call with its id or name.
        """
        latest = self._calls[-1] if self._calls else None
        candidate = self._newest_by_index.get(index) if isinstance(index, int) else latest
        if candidate is not None and candidate.is_continued_by(call_id, name, arguments):
            return candidate
        new_index = index if isinstance(index, int) else latest.index if latest else 0
        call = CollectedCall(new_index)
        self._calls.append(call)
        self._newest_by_index[new_index] = call
        return call


def _read_object(text: str) -> dict[str, Any] | None:
    """Return the object that the text plainly is; None for a part of one."""
    try:
        value = read_plain_json(text)
    except UnreadableJson:
        return None
    return value if isinstance(value, dict) and text.strip() else None
