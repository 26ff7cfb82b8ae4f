"""Streams of events out of bytes that may be cut anywhere."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseDecoder:
    """Server-sent events. Feed it chunks; it returns the `data` of every event that is complete by then.

    Lines end with CRLF, LF or CR. Only whole lines are decoded, so a character cut in two by a chunk is whole again.
    Event names, ids and comments carry nothing that providers do not repeat in the data.
    """

    def __init__(self) -> None:
        self._rest = _LineBuffer()
        self._data: list[bytes] = []
        self._after_cr = False
        self._is_first = True

    @property
    def buffered_bytes(self) -> int:
        """Bytes of an event that is not complete yet."""
        return self._rest.length + sum(map(len, self._data))

    def feed(self, chunk: bytes) -> list[str]:
        # A CR closes its line at once; when it was half of a CRLF, the LF comes with the next chunk.
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        if b"\n" not in chunk and b"\r" not in chunk:
            self._rest.add(chunk)
            return []
        events: list[str] = []
        for line in (self._rest.take() + chunk).splitlines(keepends=True):
            if line.endswith((b"\n", b"\r")):
                self._take(line.rstrip(b"\r\n"), events)
            else:
                self._rest.add(line)
        return events

    def flush(self) -> list[str]:
        """At the end of the stream: an event whose blank line never came."""
        return self.feed(b"\n\n") if self.buffered_bytes else []

    def _take(self, line: bytes, events: list[str]) -> None:
        if self._is_first:
            line, self._is_first = line.removeprefix(BYTE_ORDER_MARK), False
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif line == b"data":
            self._data.append(b"")
        elif not line and self._data:
            events.append(b"\n".join(self._data).decode("utf-8", "replace"))
            self._data.clear()


class NdjsonDecoder:
    """One JSON value per line, as Ollama streams."""

    def __init__(self) -> None:
        self._rest = _LineBuffer()

    @property
    def buffered_bytes(self) -> int:
        """Bytes of a line that is not complete yet."""
        return self._rest.length

    def feed(self, chunk: bytes) -> list[str]:
        if b"\n" not in chunk:
            self._rest.add(chunk)
            return []
        *lines, rest = (self._rest.take() + chunk).split(b"\n")
        self._rest.add(rest)
        return [line.decode("utf-8", "replace") for line in lines]

    def flush(self) -> list[str]:
        """At the end of the stream: a last line without its line end."""
        line = self._rest.take()
        return [line.decode("utf-8", "replace")] if line else []


class _LineBuffer:
    """The beginning of a line, put together once its end is there: a long one comes in many chunks."""

    def __init__(self) -> None:
        self.length = 0
        self._parts: list[bytes] = []

    def add(self, part: bytes) -> None:
        self._parts.append(part)
        self.length += len(part)

    def take(self) -> bytes:
        whole = b"".join(self._parts)
        self.length = 0
        self._parts.clear()
        return whole
