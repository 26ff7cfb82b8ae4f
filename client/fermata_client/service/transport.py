"""The way to the service: requests, streams, and what went wrong with them. Nothing here retries."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx

from fermata_client.service.errors import InvalidResponseError, RequestRefusedError, ServiceUnreachableError

Event = dict[str, Any]
"""One line of a turn's stream: `type`, `seq` and what the type carries."""

API_BASE_PATH = "/admin/api/ai"
CONNECT_TIMEOUT_SECONDS = 5.0
REQUEST_TIMEOUT_SECONDS = 30.0
STREAM_IDLE_TIMEOUT_SECONDS = 45.0
"""A stream says something every 10 to 15 seconds, if only a blank line; three times that is a dead connection."""


class Transport:
    """One service, one caller, kept-alive connections. Threads may share it."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        transport: httpx.BaseTransport | None,
        stream_idle_timeout: float,
        request_timeout: float,
    ) -> None:
        self.url = url.rstrip("/")
        self._silence = httpx.Timeout(CONNECT_TIMEOUT_SECONDS, read=stream_idle_timeout, write=request_timeout)
        self._http = httpx.Client(
            base_url=self.url,
            headers={"authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(request_timeout, connect=CONNECT_TIMEOUT_SECONDS),
            transport=transport,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            trust_env=urlsplit(self.url).hostname not in ("127.0.0.1", "::1", "localhost"),
        )

    def close(self) -> None:
        self._http.close()

    def request_json(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        headers: dict[str, str] | None = None,
        params: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The object that was answered; an empty one where there is nothing to say (204)."""
        try:
            response = self._http.request(method, API_BASE_PATH + path, json=body, headers=headers, params=params)
        except httpx.TransportError as error:
            raise ServiceUnreachableError(_reason(error, self.url)) from error
        _check(response)
        return {} if response.status_code == httpx.codes.NO_CONTENT else _object(response.content)

    def upload(self, url: str, content: bytes, headers: dict[str, str]) -> None:
        """To an address that the service has given us, without our token: the address itself lets us in."""
        try:
            request = self._http.build_request("PUT", url, content=content, headers=headers)
            del request.headers["authorization"]
            response = self._http.send(request)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise ServiceUnreachableError("What is too large for a request could not be uploaded.") from error
        _check(response)

    @contextmanager
    def stream_events(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        headers: dict[str, str] | None = None,
        params: dict[str, int] | None = None,
    ) -> Iterator[Iterator[Event]]:
        request = self._http.build_request(
            method, API_BASE_PATH + path, json=body, headers=headers, params=params, timeout=self._silence
        )
        try:
            response = self._http.send(request, stream=True)
        except httpx.TransportError as error:
            raise ServiceUnreachableError(_reason(error, self.url)) from error
        try:
            if not response.is_success:
                _read_all(response, self.url)
            _check(response)
            yield _events(response, self.url)
        finally:
            response.close()


def parse_events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Events out of bytes, however they were cut. Blank lines are heartbeats; a last line without LF never counts."""
    tail = b""
    for chunk in chunks:
        *lines, tail = (tail + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                yield _object(line)


def _events(response: httpx.Response, url: str) -> Iterator[Event]:
    try:
        yield from parse_events(response.iter_bytes())
    except httpx.TransportError as error:
        raise ServiceUnreachableError(_reason(error, url)) from error


def _read_all(response: httpx.Response, url: str) -> None:
    try:
        response.read()
    except httpx.TransportError as error:
        raise ServiceUnreachableError(_reason(error, url)) from error


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except ValueError as error:
        raise InvalidResponseError("The service sent something that is not JSON.") from error
    if not isinstance(value, dict):
        raise InvalidResponseError("The service sent JSON that is not an object.")
    return value


def _check(response: httpx.Response) -> None:
    if response.is_success:
        return
    raise RequestRefusedError(response.status_code, _error_text(response), _retry_after(response))


def _error_text(response: httpx.Response) -> str:
    try:
        body = response.json()
    except ValueError:
        body = None
    if isinstance(body, dict):
        for member in ("error", "message"):
            if isinstance(body.get(member), str):
                return str(body[member])
    return response.reason_phrase or "The service refused the request."


def _retry_after(response: httpx.Response) -> float | None:
    value = response.headers.get("retry-after", "")
    return float(value) if value.isdigit() else None


def _reason(error: httpx.TransportError, url: str) -> str:
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return f"Nobody answers at {url}."
    if isinstance(error, httpx.TimeoutException):
        return f"{url} fell silent."
    if isinstance(error, httpx.UnsupportedProtocol):
        return f"No request can be made of the address {url}."
    return f"The connection to {url} broke off."
