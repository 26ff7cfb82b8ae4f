"""Streams of events out of bytes that may be cut anywhere."""


class Frames:
    """Server-sent events. Feed it chunks; it returns the `data` of every event that is complete by then.

    Lines end with CRLF, LF or CR. Only whole lines are decoded, so a character cut in two by a chunk is whole again.
    Event names, ids and comments carry nothing that providers do not repeat in the data.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[str]:
        if not chunk:
            return []
        # A CR closes its line at once; when it was half of a CRLF, the LF comes with the next chunk.
        late_lf = self._after_cr and chunk.startswith(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        events: list[str] = []
        for line in (self._rest + chunk[late_lf:]).splitlines(keepends=True):
            if not line.endswith((b"\n", b"\r")):
                self._rest = line
                break
            self._take(line.rstrip(b"\r\n"), events)
        else:
            self._rest = b""
        return events

    def rest(self) -> list[str]:
        """At the end of the stream: an event whose blank line never came."""
        return self.feed(b"\n\n") if self._rest or self._data else []

    def _take(self, line: bytes, events: list[str]) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif line == b"data":
            self._data.append(b"")
        elif not line and self._data:
            events.append(b"\n".join(self._data).decode("utf-8", "replace"))
            self._data.clear()


class Lines:
    """One JSON value per line, as Ollama streams."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[str]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines]

    def rest(self) -> list[str]:
        """At the end of the stream: a last line without its line end."""
        line, self._rest = self._rest, b""
        return [line.decode("utf-8", "replace")] if line else []
