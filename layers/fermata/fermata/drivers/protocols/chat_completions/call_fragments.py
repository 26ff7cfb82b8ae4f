"""Collect the fragments of tool calls in a chat-completions stream (decisions 0073 and 0195)."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fermata.domain.blocks import ToolCallBlock
from fermata.drivers.json_completeness import BracketCounter
from fermata.drivers.protocols.chat_completions.request import EXTRA_CONTENT_FIELD
from fermata.drivers.protocols.json_fields import MAX_NAME_FIELD_CHARS, as_dict, as_name
from fermata.drivers.protocols.tool_arguments import (
    build_call_from_fragments,
    find_arguments,
    read_argument_object,
    to_argument_text,
)

_TOOL_NAME = re.compile(rb'"name":"([\w.:-]{1,128})"')
_MAX_INDEX_DIGITS = 4
_MIN_REPEATED_CHARS = 2
"""Of arguments that a fragment repeats and continues. No JSON begins with two brackets of objects."""


@dataclass
class CollectedCall:
    """One tool call while it grows."""

    index: int
    is_tool: Callable[[str], bool]
    """Whether the request has offered a tool of this name."""
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra_content: Any = None
    _brackets: BracketCounter = field(default_factory=BracketCounter)
    _counted: int = 0
    _size: int = 0
    """Characters of the arguments."""
    _whole_value: dict[str, Any] | None = None
    """The arguments, once they were whole."""

    @property
    def is_empty(self) -> bool:
        return not (self.id or self.name or self.arguments)

    def is_continued_by(self, call_id: str, name: str, arguments: str) -> bool:
        """Return whether a fragment with this id, name and text belongs to the call, or begins another one."""
        if name and self.name and name != self.name:
            return self._is_named_further(call_id, name)
        if call_id and self.id and call_id != self.id:
            return self._is_continued_under_another_id(name, arguments)
        if not name or not self.name:
            return True
        if not call_id and not self.id:
            return not self.is_whole
        fragment = read_argument_object(arguments) if self._may_be_whole(arguments) and self.is_whole else None
        return fragment is None or fragment in ({}, self._whole_value)

    def _is_named_further(self, call_id: str, name: str) -> bool:
        """Return whether a fragment has the next piece of the call's name, before any arguments.

        Two names of tools are two calls.
        """
        if self.arguments or call_id not in ("", self.id) or len(self.name) > MAX_NAME_FIELD_CHARS:
            return False
        return not (self.is_tool(self.name) and self.is_tool(name))

    def add_name(self, name: str) -> None:
        """Take a name, a further piece of it, or all of it so far."""
        if not self.name or (name.startswith(self.name) and not self.arguments):
            self.name = name
        elif name != self.name and not self.arguments:
            self.name += name

    def _is_continued_under_another_id(self, name: str, arguments: str) -> bool:
        """Return whether the fragment of another id cannot begin a call: some servers number each fragment.

        It has no name, or the call has begun and the text is not the beginning of arguments.
        """
        if self.is_whole:
            return False
        begins = arguments.lstrip()[:1] in ("{", '"', "")
        return not name or bool(self.arguments and not begins)

    def add_arguments(self, arguments: Any) -> None:
        if not isinstance(arguments, str) and arguments is not None:  # a value, and not its text
            self.arguments = [json.dumps(arguments)]
            self._size = len(self.arguments[0])
        elif arguments and not self._is_repeated_by(arguments):
            if self._is_extended_by(arguments):
                self._restart()
            self.arguments.append(arguments)
            self._size += len(arguments)

    def _is_extended_by(self, arguments: str) -> bool:
        """Return whether the fragment repeats what there is and goes on: some servers send all so far each time."""
        if len(arguments) <= self._size or self._size < _MIN_REPEATED_CHARS or arguments[:1] != "{":
            return False
        return arguments.startswith("".join(self.arguments))

    def _restart(self) -> None:
        self.arguments.clear()
        self._size = 0
        self._brackets = BracketCounter()
        self._counted = 0
        self._whole_value = None

    def build_block(self, *, is_cut_off: bool) -> ToolCallBlock:
        return build_call_from_fragments(self.id, self.name, self.arguments, is_cut_off=is_cut_off)

    @property
    def is_whole(self) -> bool:
        """Whether the arguments so far are a whole object."""
        for piece in self.arguments[self._counted :]:
            self._brackets.add(piece)
        self._counted = len(self.arguments)
        if self._whole_value is None and self._brackets.is_closed:
            self._whole_value = read_argument_object("".join(self.arguments))
        return self._brackets.is_closed

    def _is_repeated_by(self, arguments: str) -> bool:
        if not self._may_be_whole(arguments) or not self.is_whole or not self._whole_value:
            return False
        return read_argument_object(arguments) == self._whole_value

    def _may_be_whole(self, fragment: str) -> bool:
        return fragment.lstrip()[:1] in ("{", '"') and fragment.rstrip()[-1:] in ("}", '"')


class CallCollector:
    """The calls of one response, in the order of their indexes.

    Args:
        request_body: The request, which names its tools.
    """

    def __init__(self, request_body: bytes) -> None:
        self._request_body = request_body
        self._tool_names: set[bytes] | None = None
        self._calls: list[CollectedCall] = []
        self._newest_by_index: dict[int, CollectedCall] = {}
        self._newest_by_id: dict[str, CollectedCall] = {}

    def add_fragment(self, fragment: Mapping[str, Any]) -> None:
        function = as_dict(fragment.get("function")) or fragment  # some servers leave the wrapping out
        call_id, name = as_name(fragment.get("id")), as_name(function.get("name"))
        arguments = find_arguments(function)
        text = to_argument_text(arguments)
        call = self._find_call(read_index(fragment.get("index")), call_id, name, text)
        call.id = call.id or call_id
        call.add_name(name)
        call.extra_content = fragment.get(EXTRA_CONTENT_FIELD) or call.extra_content
        call.add_arguments(arguments)

    @property
    def has_calls(self) -> bool:
        return bool(self._calls)

    def get_calls(self) -> list[CollectedCall]:
        """Return the calls that have any content."""
        return [call for call in sorted(self._calls, key=lambda call: call.index) if not call.is_empty]

    def _is_tool(self, name: str) -> bool:
        if self._tool_names is None:
            self._tool_names = set(_TOOL_NAME.findall(self._request_body))
        return name.encode("utf-8", "replace") in self._tool_names

    def _find_call(self, index: int | None, call_id: str, name: str, arguments: str) -> CollectedCall:
        """Return the call that a fragment belongs to.

        Servers without indexes, or with the same index for all calls, begin a new call with its id or name. Their
        fragments of several calls may alternate, so an id that is known decides.
        """
        latest = self._calls[-1] if self._calls else None
        by_place = self._newest_by_index.get(index) if index is not None else latest
        by_id = self._newest_by_id.get(call_id)
        candidate = by_id if by_id and index in (None, by_id.index) else by_place
        if candidate is None and latest and not (call_id or name or latest.is_whole):
            candidate = latest  # the rest of a call under the next index
        if candidate is None or not candidate.is_continued_by(call_id, name, arguments):
            candidate = CollectedCall(index if index is not None else latest.index if latest else 0, self._is_tool)
            self._calls.append(candidate)
        self._newest_by_index[candidate.index] = candidate
        if call_id:
            self._newest_by_id[call_id] = candidate
        return candidate


def read_index(index: Any) -> int | None:
    """Return the index of a fragment or choice; some servers write it as a text or as a float."""
    if index is None or type(index) is int:  # nearly always
        return index
    if isinstance(index, str) and index.isdecimal() and len(index) <= _MAX_INDEX_DIGITS:
        return int(index)
    if isinstance(index, float) and index.is_integer():
        return int(index)
    return None
