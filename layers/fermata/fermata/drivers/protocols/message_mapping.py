"""Map call ids, arguments, results and images of messages as all protocols need them."""

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Self

from fermata.domain.blocks import ImageBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.content_frames import escape_frames_in_json, escape_frames_in_text, frame_text
from fermata.domain.tools import ToolSpec
from fermata.domain.weak_cache import WeakCache
from fermata.drivers.adjustments import NINE_CHARACTER_CALL_IDS, AppliedAdjustments
from fermata.drivers.protocols.encoded_items import encode_compact_json

CONTINUE_PROMPT = "Continue."
OMITTED_SCREENSHOTS_NOTE = "[{} screenshot(s) omitted: this provider delivers tool results as text only.]"

_NOT_IN_PLAIN_ID = re.compile(r"[^A-Za-z0-9_-]")
_NINE_CHARACTERS = re.compile(r"[A-Za-z0-9]{9}")

CallIdFormatter = Callable[[str, int], str]
"""Turns a call id into one the provider accepts; a higher number (the first is 1) gives another one."""


class CallIdMapper:
    """Map call ids to ids that a provider accepts and that are unique in the request; always to the same ones."""

    def __init__(self, format_call_id: CallIdFormatter) -> None:
        self._format_call_id = format_call_id
        self._used: set[str] = set()
        self._counts: dict[str, int] = {}
        self._latest: dict[str, str] = {}

    def copy(self) -> Self:
        """Return a mapper that continues from the same ids."""
        copied = type(self)(self._format_call_id)
        copied._used = self._used.copy()
        copied._counts = self._counts.copy()
        copied._latest = self._latest.copy()
        return copied

    def map_call_id(self, call_id: str) -> str:
        count = self._counts.get(call_id, 0) + 1
        while (wire_id := self._format_call_id(call_id, count)) in self._used:
            count += 1
        self._used.add(wire_id)
        self._counts[call_id] = count
        self._latest[call_id] = wire_id
        return wire_id

    def map_result_id(self, call_id: str) -> str:
        """Return the id of the newest call with that id."""
        return self._latest.get(call_id) or self._format_call_id(call_id, 1)


def plain_id_formatter(max_chars: int) -> CallIdFormatter:
    """Make a formatter for ids of letters, digits, `_` and `-`."""

    def format_call_id(call_id: str, number: int) -> str:
        suffix = "" if number == 1 else f"_{number}"
        return (_to_plain_id(call_id)[: max_chars - len(suffix)] or "_") + suffix

    return format_call_id


@lru_cache(4096)
def _to_plain_id(text: str) -> str:
    return _NOT_IN_PLAIN_ID.sub("_", text)


def choose_call_id_formatter(applied: AppliedAdjustments, default: CallIdFormatter) -> CallIdFormatter:
    """Return the formatter that the server behind this request asks for."""
    return format_nine_character_id if NINE_CHARACTER_CALL_IDS.name in applied else default


def format_nine_character_id(call_id: str, number: int) -> str:
    """Format an id for Mistral, which accepts exactly nine letters or digits."""
    if number == 1 and _NINE_CHARACTERS.fullmatch(call_id):
        return call_id
    return hashlib.sha256(f"{number}:{call_id}".encode("utf-8", "replace")).hexdigest()[:9]


def get_call_arguments(call: ToolCallBlock) -> dict[str, object]:
    """Return a call's arguments; none for a call that was cut off, because it never ran."""
    return call.input if isinstance(call.input, dict) and not call.malformed else {}


def schema_with_properties(spec: ToolSpec) -> dict[str, object]:
    """Return a tool's schema; some providers refuse an object schema without `properties`, even for no arguments."""
    return spec.input_schema if "properties" in spec.input_schema else {**spec.input_schema, "properties": {}}


@WeakCache
def frame_result(block: ToolResultBlock) -> str:
    """Encode a result's data as JSON, or its error as text, in the frame of results (decision 0255).

    The history is sent again with every round, so this is cached.
    """
    if not block.ok:
        return frame_text("result", escape_frames_in_text((block.error or "").strip() or "The tool failed."))
    data = encode_compact_json({"ok": True} if block.data is None else block.data)
    return frame_text("result", escape_frames_in_json(data))


@WeakCache
def encode_call_arguments(call: ToolCallBlock) -> str:
    """Encode a call's arguments as JSON; cached like `frame_result`."""
    return encode_compact_json(get_call_arguments(call))


def format_result_text(block: ToolResultBlock) -> str:
    """Format a result for a provider that reads text only: data or error, and how many images are left out."""
    text = frame_result(block)
    return f"{text}\n\n{OMITTED_SCREENSHOTS_NOTE.format(len(block.images))}" if block.images else text


def get_image_base64(image: ImageBlock) -> str:
    if image.data is None:
        raise ValueError("an image must be fetched before it is sent to a provider")
    return image.data


def image_to_data_url(image: ImageBlock) -> str:
    return f"data:{image.mime_type};base64,{get_image_base64(image)}"
