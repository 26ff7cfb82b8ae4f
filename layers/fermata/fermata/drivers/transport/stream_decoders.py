"""Decode server-sent events and NDJSON from bytes that may be cut anywhere."""

import json

from fermata.domain.lenient_json import UnreadableJson, read_bounded_json

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseDecoder:
    """Decode server-sent events: feed it chunks, and it returns the `data` of every event that is complete.

    Lines end with CRLF, LF or CR. Only whole lines are decoded, so that a chunk may end inside a character. Ids,
    comments and event names are ignored, except for the name `error`: data that does not repeat it becomes the member
    `error` of an object (decision 0195). Some servers end their events with one line end instead of two: a line of data
    that is whole JSON ends where the next data begins.
    """

    def __init__(self) -> None:
        self._line = _LineBuffer()
        self._data: list[bytes] = []
        self._data_size = 0
        self._is_error = False
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
        events: list[str] = []
        name, _, value = line.partition(b":")
        if name == b"data":
            if self._is_whole_line:
                events.append(self._end_event())
            self._data.append(value.removeprefix(b" "))
            self._data_size += len(value)
            if self._data == [b"[DONE]"]:
                events.append(self._end_event())
        elif name == b"event":
            if self._is_whole_line:
                events.append(self._end_event())
            self._is_error = value.strip() == b"error"
        elif not line:
            if self._data:
                events.append(self._end_event())
            self._is_error = False
        return events

    @property
    def _is_whole_line(self) -> bool:
        """Whether the data is one line that is an object; only a server without blank lines sends more behind it."""
        return len(self._data) == 1 and _is_object(self._data[0])

    def _end_event(self) -> str:
        data = b"\n".join(self._data).decode("utf-8", "replace")
        self._data.clear()
        self._data_size = 0
        is_error, self._is_error = self._is_error, False
        return _name_error(data) if is_error else data


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


class NdjsonDecoder:
    """Decode one JSON value per line, as Ollama streams them. Proxies write `data:` before it, as for events."""

    def __init__(self) -> None:
        self._line = _LineBuffer()

    @property
    def buffered_bytes(self) -> int:
        """The size of the line that is not complete yet."""
        return self._line.size

    def feed(self, chunk: bytes) -> list[str]:
        """Return the lines that this chunk completes."""
        if b"\n" not in chunk:
            self._line.add(chunk)
            return []
        *lines, rest = (self._line.take() + chunk).split(b"\n")
        self._line.add(rest)
        return list(map(_decode_line, lines))

    def flush(self) -> list[str]:
        """Return, at the end of the stream, a last line without its line end."""
        line = self._line.take()
        return [_decode_line(line)] if line else []


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
