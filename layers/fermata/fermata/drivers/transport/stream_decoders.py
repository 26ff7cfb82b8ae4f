"""Decode server-sent events and NDJSON from bytes that may be cut anywhere."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseDecoder:
    """Decode server-sent events: feed it chunks, and it returns the `data` of every event that is complete.

    Lines end with CRLF, LF or CR. Only whole lines are decoded, so that a chunk may end inside a character. Event
    names, ids and comments are ignored; providers repeat in the data what they say.
    """

    def __init__(self) -> None:
        self._line = _LineBuffer()
        self._data: list[bytes] = []
        self._ended_with_cr = False
        self._is_first_line = True

    @property
    def buffered_bytes(self) -> int:
        """The size of the event that is not complete yet."""
        return self._line.size + sum(map(len, self._data))

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
            elif (event := self._add_line(line.rstrip(b"\r\n"))) is not None:
                events.append(event)
        return events

    def flush(self) -> list[str]:
        """Return, at the end of the stream, an event without its blank line."""
        return self.feed(b"\n\n") if self.buffered_bytes else []

    def _add_line(self, line: bytes) -> str | None:
        """Return the data of the event that the line ends."""
        if self._is_first_line:
            line = line.removeprefix(BYTE_ORDER_MARK)
            self._is_first_line = False
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif line == b"data":
            self._data.append(b"")
        elif not line and self._data:
            data = b"\n".join(self._data)
            self._data.clear()
            return data.decode("utf-8", "replace")
        return None


class NdjsonDecoder:
    """Decode one JSON value per line, as Ollama streams them."""

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
        return [line.decode("utf-8", "replace") for line in lines]

    def flush(self) -> list[str]:
        """Return, at the end of the stream, a last line without its line end."""
        line = self._line.take()
        return [line.decode("utf-8", "replace")] if line else []


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
