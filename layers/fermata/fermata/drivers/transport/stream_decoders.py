"""Decode server-sent events and NDJSON from bytes that may be cut anywhere."""

import json

from fermata.domain.lenient_json import UnreadableJson, read_bounded_json
from fermata.drivers.json_completeness import BracketCounter

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DEFAULT_EVENT_NAME = "message"
"""The name of events without one: it says nothing about them."""
_OTHER_FIELDS = (b"", b"id", b"retry")


class SseDecoder:
    """Decode server-sent events: feed it chunks, and it returns the `data` of every event that is complete.

    Lines end with CRLF, LF or CR. Only whole lines are decoded, so that a chunk may end inside a character. Ids and
    comments are ignored. The name of an event becomes the member `type` of an object that has none; data of an event
    named `error` that does not say so becomes the member `error` of an object (decisions 0195 and 0393).

    Some servers end their events with one line end instead of two: a line of data that is whole JSON ends where the
    next data begins. Some break an object over several lines, of which only the first begins with `data:`.
    """

    def __init__(self) -> None:
        self._line = _LineBuffer()
        self._data: list[bytes] = []
        self._data_size = 0
        self._brackets = BracketCounter()
        self._counted_lines = 0
        self._name = b""
        self._late_name: bytes | None = None
        """The name in a line behind data that may be whole: of this event or, without a blank line, of the next."""
        self._ended_with_cr = False
        self._is_first_line = True

    @property
    def buffered_bytes(self) -> int:
        """The size of the event that is not complete yet."""
        return self._line.size + self._data_size

    def feed(self, chunk: bytes) -> list[str]:
        """Return the data of the events that this chunk completes."""
        # A CR ends its line at once; if it was half of a CRLF, the LF comes with the next chunk.
        if self._ended_with_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._ended_with_cr = False
        if not chunk:
            return []
        self._ended_with_cr = chunk.endswith(b"\r")
        if b"\n" not in chunk and b"\r" not in chunk:
            self._line.add(chunk)
            return []
        events: list[str] = []
        for line in (self._line.take() + chunk).splitlines(keepends=True):
            if not line.endswith((b"\n", b"\r")):
                self._line.add(line)
            else:
                events += self._add_line(line.rstrip(b"\r\n"))
        return events

    def flush(self) -> list[str]:
        """Return, at the end of the stream, an event without its blank line."""
        return self.feed(b"\n\n") if self.buffered_bytes else []

    def _add_line(self, line: bytes) -> list[str]:
        """Return the data of the events that the line ends."""
        if self._is_first_line:
            line = line.removeprefix(BYTE_ORDER_MARK)
            self._is_first_line = False
        if not line:
            return self._end_named_event()
        name, _, value = line.partition(b":")
        name = name.strip(b" ")
        if name == b"data":
            return self._add_data(_strip_repeated_field(value.removeprefix(b" ")))
        if name == b"event":
            if self._late_name is not None or self._is_whole_line:
                self._late_name = value.strip()
            else:
                self._name = value.strip()
        elif name not in _OTHER_FIELDS and self._is_open_object:
            self._data.append(line)
            self._data_size += len(line)
        return []

    def _add_data(self, data: bytes) -> list[str]:
        events: list[str] = []
        if self._is_whole_line:
            events.append(self._end_event())
            self._name = self._late_name or b""
        self._late_name = None
        self._data.append(data)
        self._data_size += len(data)
        if self._data == [b"[DONE]"]:
            events.append(self._end_event())
        return events

    def _end_named_event(self) -> list[str]:
        """Return the data of the event that a blank line ends. Its name may stand behind its data."""
        if self._late_name is not None:
            self._name, self._late_name = self._late_name, None
        events = [self._end_event()] if self._data else []
        self._name = b""
        return events

    @property
    def _is_whole_line(self) -> bool:
        """Whether the data is one line that is an object; only a server without blank lines sends more behind it."""
        return len(self._data) == 1 and _is_object(self._data[0])

    @property
    def _is_open_object(self) -> bool:
        """Whether the data is an object that has begun and is not whole."""
        if not self._data or not self._data[0].lstrip().startswith(b"{"):
            return False
        for line in self._data[self._counted_lines :]:
            self._brackets.add(line.decode("utf-8", "replace") + "\n")
        self._counted_lines = len(self._data)
        return not self._brackets.is_closed

    def _end_event(self) -> str:
        data = b"\n".join(self._data).decode("utf-8", "replace")
        self._data.clear()
        self._data_size = 0
        if self._counted_lines:
            self._brackets, self._counted_lines = BracketCounter(), 0
        name, self._name = self._name, b""
        if name == b"error":
            return _name_error(data)
        return _name_event(data, name.decode("utf-8", "replace")) if name else data


def _strip_repeated_field(data: bytes) -> bytes:
    """Take off what a gateway has put before the lines of another server: `data: data: {…}`."""
    while data.startswith(b"data:"):
        data = data[5:].lstrip(b" ")
    return data


def _is_object(line: bytes) -> bool:
    if not (line.lstrip().startswith(b"{") and line.rstrip().endswith(b"}")):
        return False
    try:
        read_bounded_json(line.decode("utf-8", "replace"))
    except UnreadableJson:
        return False
    return True


def _name_error(data: str) -> str:
    """Make the data of an event named `error` say what it is."""
    try:
        value = read_bounded_json(data)
    except UnreadableJson:
        value = data
    if isinstance(value, dict) and "error" in value:
        return data
    return json.dumps({"type": "error", "error": value if value else "no reason given"})


def _name_event(data: str, name: str) -> str:
    """Put the name first into an object, where a member `type` of its own, which follows it, replaces it."""
    members = data.lstrip()
    if members.startswith('{"type"') or members[:1] != "{" or name == DEFAULT_EVENT_NAME:
        return data
    separator = "" if members[1:].lstrip()[:1] == "}" else ","
    return f'{{"type":{json.dumps(name)}{separator}{members[1:]}'


class NdjsonDecoder:
    """Decode one JSON value per line, as Ollama streams them. Proxies write `data:` before it, as for events.

    An object may be broken over several lines, by a proxy that indents it.
    """

    def __init__(self) -> None:
        self._line = _LineBuffer()
        self._object: list[str] = []
        self._object_size = 0
        self._brackets = BracketCounter()

    @property
    def buffered_bytes(self) -> int:
        """The size of the value that is not complete yet."""
        return self._line.size + self._object_size

    def feed(self, chunk: bytes) -> list[str]:
        """Return the values that this chunk completes."""
        if b"\n" not in chunk:
            self._line.add(chunk)
            return []
        *lines, rest = (self._line.take() + chunk).split(b"\n")
        self._line.add(rest)
        return [value for line in lines for value in self._add_line(_decode_line(line))]

    def flush(self) -> list[str]:
        """Return, at the end of the stream, a last value without its line end."""
        line = self._line.take()
        values = self._add_line(_decode_line(line)) if line else []
        return [*values, self._take_object()] if self._object else values

    def _add_line(self, line: str) -> list[str]:
        """Return the value that the line completes. A whole object in a line ends what is broken before it."""
        is_whole = not _may_go_on(line)
        if not self._object and is_whole:
            return [line]
        if is_whole and line.startswith('{"'):
            return [self._take_object(), line]
        self._object.append(line)
        self._object_size += len(line)
        self._brackets.add(line + "\n")
        return [self._take_object()] if self._brackets.is_closed else []

    def _take_object(self) -> str:
        value = "\n".join(self._object)
        self._object.clear()
        self._object_size = 0
        self._brackets = BracketCounter()
        return value


def _may_go_on(line: str) -> bool:
    """Return whether an object that begins in the line may end in a later one."""
    return line[:1] == "{" and not (line[-1:] == "}" and line.count("{") == line.count("}"))


def _decode_line(line: bytes) -> str:
    return line.removeprefix(BYTE_ORDER_MARK).removeprefix(b"data:").decode("utf-8", "replace").strip()


class _LineBuffer:
    """Collect the chunks of one line and join them once: a long line comes in many chunks."""

    def __init__(self) -> None:
        self.size = 0
        self._chunks: list[bytes] = []

    def add(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self.size += len(chunk)

    def take(self) -> bytes:
        line = b"".join(self._chunks)
        self.size = 0
        self._chunks.clear()
        return line
