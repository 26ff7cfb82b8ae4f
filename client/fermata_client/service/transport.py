"""Send JSON requests and uploads to one service, and read event streams, over HTTP. Nothing is retried here."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx

from fermata_client.service.errors import InvalidResponseError, RequestRefusedError, ServiceUnreachableError
from fermata_client.service.json_types import Event, JsonObject

API_BASE_PATH = "/admin/api/ai"
LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")
MAX_IDLE_CONNECTIONS = 20
CONNECT_TIMEOUT_SECONDS = 5.0
REQUEST_TIMEOUT_SECONDS = 30.0
STREAM_IDLE_TIMEOUT_SECONDS = 45.0
"""A stream sends at least a blank line every 10 to 15 seconds. Three times that is a dead connection."""


class Transport:
    """Kept-alive connections to one service, for one caller. It may be shared between threads.

    Every method raises a `FermataClientError`.
    """

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
        self._stream_timeout = httpx.Timeout(CONNECT_TIMEOUT_SECONDS, read=stream_idle_timeout, write=request_timeout)
        self._http = httpx.Client(
            base_url=self.url,
            headers={"authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(request_timeout, connect=CONNECT_TIMEOUT_SECONDS),
            transport=transport,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=MAX_IDLE_CONNECTIONS),
            trust_env=urlsplit(self.url).hostname not in LOOPBACK_HOSTS,
        )

    def close(self) -> None:
        self._http.close()

    def request_json(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
        base_path: str = API_BASE_PATH,
    ) -> JsonObject:
        """Send a request and return the JSON object of its answer; an empty one for 204."""
        try:
            response = self._http.request(method, base_path + path, json=body, headers=headers, params=params)
        except httpx.TransportError as error:
            raise ServiceUnreachableError(_describe_failure(error, self.url)) from error
        _raise_for_status(response)
        return {} if response.status_code == httpx.codes.NO_CONTENT else _parse_object(response.content)

    def upload(self, url: str, content: bytes, headers: Mapping[str, str]) -> None:
        """Send bytes to a presigned address with PUT. The caller's token is not sent: the address itself authorizes.

        The address takes them once: 412 means that they are there.
        """
        what = "The upload of a value that is too large for a request"
        response = self._send_to_bucket("PUT", url, content, headers, what)
        if response.status_code != httpx.codes.PRECONDITION_FAILED:
            _raise_for_status(response)

    def download(self, url: str) -> bytes:
        """Return what is at a presigned address. The caller's token is not sent: the address itself authorizes."""
        response = self._send_to_bucket("GET", url, None, {}, "The download of a file")
        _raise_for_status(response)
        return response.content

    def _send_to_bucket(
        self, method: str, url: str, content: bytes | None, headers: Mapping[str, str], what: str
    ) -> httpx.Response:
        try:
            request = self._http.build_request(method, url, content=content, headers=headers)
            del request.headers["authorization"]
            response = self._http.send(request)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise ServiceUnreachableError(f"{what} failed.") from error
        return response

    @contextmanager
    def stream_events(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, int] | None = None,
    ) -> Iterator[Iterator[Event]]:
        """Send a request and yield an iterator over the events of its answer (one JSON object a line)."""
        request = self._http.build_request(
            method, API_BASE_PATH + path, json=body, headers=headers, params=params, timeout=self._stream_timeout
        )
        try:
            response = self._http.send(request, stream=True)
        except httpx.TransportError as error:
            raise ServiceUnreachableError(_describe_failure(error, self.url)) from error
        try:
            if not response.is_success:
                _read_body(response, self.url)
            _raise_for_status(response)
            yield _iter_events(response, self.url)
        finally:
            response.close()


def parse_events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Parse events from a byte stream. Blank lines are heartbeats; a last line without LF is incomplete and dropped."""
    tail = b""
    for chunk in chunks:
        *lines, tail = (tail + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                yield _parse_object(line)


def _iter_events(response: httpx.Response, url: str) -> Iterator[Event]:
    try:
        yield from parse_events(response.iter_bytes())
    except httpx.TransportError as error:
        raise ServiceUnreachableError(_describe_failure(error, url)) from error


def _read_body(response: httpx.Response, url: str) -> None:
    try:
        response.read()
    except httpx.TransportError as error:
        raise ServiceUnreachableError(_describe_failure(error, url)) from error


def _parse_object(raw: bytes) -> JsonObject:
    try:
        value = json.loads(raw)
    except ValueError as error:
        raise InvalidResponseError("The service sent something that is not JSON.") from error
    if not isinstance(value, dict):
        raise InvalidResponseError("The service sent JSON that is not an object.")
    return value


def _raise_for_status(response: httpx.Response) -> None:
    if response.is_success:
        return
    body = _error_body(response)
    texts = [body[member] for member in ("error", "message") if isinstance(body.get(member), str)]
    text = texts[0] if texts else response.reason_phrase or "The service refused the request."
    code = body.get("code")
    raise RequestRefusedError(
        response.status_code, text, _retry_after_seconds(response), code if isinstance(code, str) else None, body
    )


def _error_body(response: httpx.Response) -> JsonObject:
    """Return the JSON object of an error response; an empty one where it has none."""
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _retry_after_seconds(response: httpx.Response) -> float | None:
    value = response.headers.get("retry-after", "")
    return float(value) if value.isdigit() else None


def _describe_failure(error: httpx.TransportError, url: str) -> str:
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return f"No service answers at {url}."
    if isinstance(error, httpx.TimeoutException):
        return f"{url} stopped sending data."
    if isinstance(error, httpx.UnsupportedProtocol):
        return f"No request can be made of the address {url}."
    return f"The connection to {url} was lost."
