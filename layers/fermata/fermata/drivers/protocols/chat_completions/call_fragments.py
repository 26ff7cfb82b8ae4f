"""Collect the fragments of tool calls in a chat-completions stream (decisions 0073 and 0195)."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fermata.domain.blocks import ToolCallBlock
from fermata.drivers.protocols.chat_completions.request import EXTRA_CONTENT_FIELD
from fermata.drivers.protocols.json_fields import as_dict, as_name
from fermata.drivers.protocols.tool_arguments import build_call_from_fragments, read_argument_object

_BRACKETS = re.compile(r'\\.|[\\"{}\[\]]', re.S)
"""Matches what opens and closes, and escaped characters, so that they are skipped."""


class _BracketCounter:
    """Tell whether the brackets of a text that grows are closed; each piece is read once."""

    def __init__(self) -> None:
        self._depth = 0
        self._is_in_string = False
        self._escape = ""
        self.is_closed = False

    def add(self, text: str) -> None:
        text, self._escape = self._escape + text, ""
        for token in _BRACKETS.finditer(text):
            mark = token[0]
            if mark == "\\":
                self._escape = mark  # the escaped character is in the next piece
            elif mark == '"':
                self._is_in_string = not self._is_in_string
            elif not self._is_in_string and len(mark) == 1:
                self._depth += 1 if mark in "{[" else -1
                self.is_closed = self._depth <= 0


@dataclass
class CollectedCall:
    """One tool call while it grows."""

    index: int
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra_content: Any = None
    _brackets: _BracketCounter = field(default_factory=_BracketCounter)
    _counted: int = 0
    _whole_value: dict[str, Any] | None = None
    """The arguments, once they were whole."""

    @property
    def is_empty(self) -> bool:
        return not (self.id or self.name or self.arguments)

    def is_continued_by(self, call_id: str, name: str, arguments: str) -> bool:
        """Return whether a fragment with this id, name and text belongs to the call, or begins another one."""
        if (call_id and self.id and call_id != self.id) or (name and self.name and name != self.name):
            return False
        if not name or not self.name:
            return True
        if not call_id and not self.id:
            return not self._is_whole
        fragment = read_argument_object(arguments) if self._may_be_whole(arguments) and self._is_whole else None
        return fragment is None or fragment in ({}, self._whole_value)

    def add_arguments(self, arguments: Any) -> None:
        if isinstance(arguments, dict):
            self.arguments = [json.dumps(arguments)]
        elif isinstance(arguments, str) and arguments and not self._is_repeated_by(arguments):
            self.arguments.append(arguments)

    def build_block(self, *, is_cut_off: bool) -> ToolCallBlock:
        return build_call_from_fragments(self.id, self.name, self.arguments, is_cut_off=is_cut_off)

    @property
    def _is_whole(self) -> bool:
        """Whether the arguments so far are a whole object."""
        for piece in self.arguments[self._counted :]:
            self._brackets.add(piece)
        self._counted = len(self.arguments)
        if self._whole_value is None and self._brackets.is_closed:
            self._whole_value = read_argument_object("".join(self.arguments))
        return self._brackets.is_closed

    def _is_repeated_by(self, arguments: str) -> bool:
        if not self._may_be_whole(arguments) or not self._is_whole or not self._whole_value:
            return False
        return read_argument_object(arguments) == self._whole_value

    def _may_be_whole(self, fragment: str) -> bool:
        return fragment.lstrip()[:1] in ("{", '"') and fragment.rstrip()[-1:] in ("}", '"')


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

    @property
    def has_calls(self) -> bool:
        return bool(self._calls)

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
