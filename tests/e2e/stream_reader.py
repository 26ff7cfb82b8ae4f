"""Follow a turn in the background, over a bare connection that can be dropped at any byte."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from typing import Any, Self, TypeVar

import httpx

from tests.waiting import BACKSTOP_SECONDS, wait_until

Event = dict[str, Any]
Result = TypeVar("Result")
TERMINAL_EVENTS = ("done", "error", "cancelled")
API_PREFIX = "/admin/api/ai"


class StreamReader:
    """A reader of an event stream. `events` grows as they are received.

    With `limit` it closes the connection after so many bytes.
    """

    def __init__(
        self,
        url: str,
        token: str,
        path: str,
        *,
        body: Any = None,
        headers: dict[str, str] | None = None,
        limit: int | None = None,
    ) -> None:
        self.events: list[Event] = []
        self.bytes = 0
        self.status = 0
        self.headers: httpx.Headers = httpx.Headers()
        self.refusal: Any = None
        self.blank = 0
        self.broken: str | None = None
        self._tail = b""
        self._limit = limit
        self._socket: socket.socket | None = None
        self._request = (url, {"authorization": f"Bearer {token}", **(headers or {})}, path, body)
        self._thread = threading.Thread(target=self._read, name="reader", daemon=True)
        self._thread.start()

    @classmethod
    def for_turn(cls, url: str, token: str, bridge: str, after: int = 0, limit: int | None = None) -> Self:
        return cls(url, token, f"{API_PREFIX}/bridges/{bridge}/events?after={after}", limit=limit)

    @property
    def last_seq(self) -> int:
        """The number of the last event."""
        return int(self.events[-1]["seq"]) if self.events else 0

    @property
    def event_types(self) -> list[str]:
        return [str(event["type"]) for event in self.events]

    @property
    def text(self) -> str:
        return join_text(list(self.events))

    def events_of_type(self, event_type: str) -> list[Event]:
        return [event for event in list(self.events) if event["type"] == event_type]

    def wait_for_event(self, event_type: str, count: int = 1) -> Event:
        """Wait for the `count`-th event of this type and return it."""

        def find_event() -> Event | None:
            events = self.events_of_type(event_type)
            return events[count - 1] if len(events) >= count else None

        event = self._wait_until(find_event, f"{event_type} number {count}")
        assert event is not None
        return event

    def wait_for_text(self, length: int, *, after: str = "") -> None:
        """Wait until so many characters of text have been received.

        Args:
            after: counts from the last event of this type, however much came with it at once.
        """
        where = f" after {after}" if after else ""
        self._wait_until(lambda: len(self._text_since(after)) >= length, f"{length} characters of text{where}")

    def _text_since(self, event_type: str) -> str:
        events = list(self.events)
        marks = [index for index, event in enumerate(events) if event["type"] == event_type]
        return join_text(events[marks[-1] :] if marks else [] if event_type else events)

    def _wait_until(self, condition: Callable[[], Result], description: str) -> Result:
        try:
            return wait_until(condition, description)
        except AssertionError as error:
            error.add_note(f"HTTP {self.status} {self.refusal or self.broken or ''}; seen: {self.events}")
            raise

    def wait_for_end(self, timeout_seconds: float = BACKSTOP_SECONDS) -> list[Event]:
        """Wait until the response ends and return all events."""
        self._thread.join(timeout_seconds)
        assert not self._thread.is_alive(), f"the stream does not end; seen so far: {self.event_types}"
        return self.events

    def drop_connection(self) -> None:
        """Drop the connection, as a closed tab does."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(BACKSTOP_SECONDS)

    def _read(self) -> None:
        url, headers, path, body = self._request
        method = "GET" if body is None else "POST"
        try:
            with (
                httpx.Client(
                    base_url=url, headers=headers, trust_env=False, timeout=BACKSTOP_SECONDS, verify=False
                ) as http,
                http.stream(method, path, json=body) as response,
            ):
                self.status, self.headers = response.status_code, response.headers
                self._socket = response.extensions["network_stream"].get_extra_info("socket")
                if response.status_code != 200:
                    self.refusal = json.loads(response.read())
                    return
                self._take_all(response)
        except httpx.TransportError as error:
            self.broken = repr(error)

    def _take_all(self, response: httpx.Response) -> None:
        for chunk in response.iter_raw():
            chunk = chunk if self._limit is None else chunk[: self._limit - self.bytes]
            self.bytes += len(chunk)
            *lines, self._tail = (self._tail + chunk).split(b"\n")
            self.blank += sum(not line for line in lines)
            self.events.extend(json.loads(line) for line in lines if line)
            if self._limit is not None and self.bytes >= self._limit:
                return


def join_text(events: list[Event]) -> str:
    return "".join(str(event["text"]) for event in events if event["type"] == "text")
