"""A bare HTTP client of the service for one user. It repeats nothing; no answer is an answer, too."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from tests.chaos.evidence import Event

API_PREFIX = "/admin/api/ai"
REQUEST_SECONDS = 15.0
STREAM_SILENCE_SECONDS = 8.0
"""When a silent stream is given up. The service sends a line each second."""
NumberedEvent = tuple[int, Event]


@dataclass(frozen=True)
class HttpAnswer:
    """The answer to a request; status 0 when there was none."""

    status: int
    body: Any = None
    is_temporary: bool = False
    """Whether it says when to try again."""

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_final(self) -> bool:
        """Whether the same request again would be refused again."""
        return 400 <= self.status < 500 and not self.is_temporary


class HttpClient:
    def __init__(self, url: str, token: str) -> None:
        self._http = httpx.AsyncClient(
            base_url=url + API_PREFIX,
            headers={"authorization": f"Bearer {token}"},
            trust_env=False,
            timeout=REQUEST_SECONDS,
            limits=httpx.Limits(max_connections=None),
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> HttpAnswer:
        try:
            response = await self._http.request(method, path, json=body, headers=headers)
        except httpx.TransportError:
            return HttpAnswer(0)
        return read_answer(response)

    async def put_upload(self, url: str, headers: dict[str, str], raw: bytes) -> bool:
        """Put the bytes of an upload where the service has said, and return whether they are there."""
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=REQUEST_SECONDS) as bucket:
                return (await bucket.put(url, content=raw, headers=headers)).is_success
        except httpx.TransportError:
            return False

    async def stream(
        self,
        method: str,
        path: str,
        take: Callable[[NumberedEvent], None],
        body: Any = None,
        headers: dict[str, str] | None = None,
        max_events: int | None = None,
    ) -> HttpAnswer:
        """Hand each event of a stream to `take` until the stream ends, or until it has handed over `max_events`."""
        timeout = httpx.Timeout(REQUEST_SECONDS, read=STREAM_SILENCE_SECONDS)
        count = 0
        try:
            async with self._http.stream(method, path, json=body, headers=headers, timeout=timeout) as response:
                if response.status_code != 200:
                    await response.aread()
                    return read_answer(response)
                async for line in response.aiter_lines():
                    event = json.loads(line) if line.strip() else {}
                    if "seq" in event:
                        count += 1
                        take((int(event.pop("seq")), event))
                    if count == max_events:
                        break
        except (httpx.TransportError, json.JSONDecodeError):  # a line may be cut off in the middle
            return HttpAnswer(0)
        return HttpAnswer(200)


def read_answer(response: httpx.Response) -> HttpAnswer:
    is_temporary = "retry-after" in response.headers
    try:
        return HttpAnswer(response.status_code, response.json(), is_temporary)
    except ValueError:
        return HttpAnswer(response.status_code, response.text[:200], is_temporary)
