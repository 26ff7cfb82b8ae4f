"""The HTTP calls of the service, one method each. Nothing here retries; `run_turn` does."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

import httpx

from fermata_client.errors import Broken, Refused, Unreachable

Event = dict[str, Any]
"""One line of a turn's stream: `type`, `seq` and what the type carries."""

BASE = "/admin/api/ai"
CONNECT_SECONDS = 5.0
CALL_SECONDS = 30.0
SILENCE_SECONDS = 45.0
"""A stream says something every 10 to 15 seconds, if only a blank line; three times that is a dead connection."""


class FermataClient:
    """One service, one caller. Threads may share it."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        transport: httpx.BaseTransport | None = None,
        silence_seconds: float = SILENCE_SECONDS,
        call_seconds: float = CALL_SECONDS,
    ) -> None:
        self.url = url.rstrip("/")
        self._silence = httpx.Timeout(CONNECT_SECONDS, read=silence_seconds, write=call_seconds)
        self._http = httpx.Client(
            base_url=self.url,
            headers={"authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(call_seconds, connect=CONNECT_SECONDS),
            transport=transport,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            trust_env=urlsplit(self.url).hostname not in ("127.0.0.1", "::1", "localhost"),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def create_conversation(
        self,
        scope: str,
        *,
        title: str | None = None,
        credential_id: str | None = None,
        model_id: str | None = None,
    ) -> dict[str, Any]:
        """A new thread. Without a credential and model it uses the scope's default."""
        body = _present(scope=scope, title=title, credentialId=credential_id, modelId=model_id)
        conversation: dict[str, Any] = self._call("POST", "/conversations", body)["conversation"]
        return conversation

    def conversation(self, conversation_id: str) -> dict[str, Any]:
        """The thread with its messages, and `activeTurn` while a turn runs in it."""
        conversation: dict[str, Any] = self._call("GET", f"/conversations/{quote(conversation_id)}")["conversation"]
        return conversation

    @contextmanager
    def start(
        self,
        scope: str,
        prompt: str | None = None,
        *,
        content: list[dict[str, Any]] | None = None,
        conversation_id: str | None = None,
        snapshot: Any = None,
        idempotency_key: str | None = None,
        model: str | None = None,
    ) -> Iterator[Iterator[Event]]:
        """Start a turn and stream it. Without a conversation a new one is made, with `model` when given.

        The same `idempotency_key` with the same body joins the turn it started before.
        """
        conversation = conversation_id or str(self.create_conversation(scope, model_id=model)["id"])
        body = _chat(conversation, prompt, content, snapshot)
        headers = _present(**{"idempotency-key": idempotency_key})
        with self._stream("POST", f"/chat/{quote(scope)}", body, headers=headers) as events:
            yield events

    def start_detached(
        self,
        scope: str,
        prompt: str | None = None,
        *,
        conversation_id: str,
        content: list[dict[str, Any]] | None = None,
        snapshot: Any = None,
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Start a turn without reading it: `{bridgeId, …}`. Read it with `events` whenever you like."""
        body = _chat(conversation_id, prompt, content, snapshot)
        headers = _present(**{"idempotency-key": idempotency_key, "accept": "application/json"})
        return self._call("POST", f"/chat/{quote(scope)}", body, headers=headers)

    def bridge(self, bridge_id: str) -> dict[str, Any]:
        """Where the turn is: status, seq, round and the calls waiting for an answer."""
        return self._call("GET", f"/bridges/{quote(bridge_id)}")

    @contextmanager
    def events(self, bridge_id: str, after: int = 0) -> Iterator[Iterator[Event]]:
        """The turn's events after number `after`, and then those still to come."""
        with self._stream("GET", f"/bridges/{quote(bridge_id)}/events", params={"after": after}) as events:
            yield events

    def answer(self, bridge_id: str, request_id: str, result: dict[str, Any], snapshot: Any = None) -> None:
        """Answer one tool request. Repeating the same answer is safe."""
        body = _present(bridgeId=bridge_id, requestId=request_id, result=result, snapshot=snapshot)
        self._call("POST", "/tool-result", body)

    def cancel(self, bridge_id: str) -> dict[str, Any]:
        """End the turn. Cancelling an ended turn says how it ended."""
        return self._call("POST", f"/bridges/{quote(bridge_id)}/cancel")

    def audit(self, *, since: str | None = None, tz: str | None = None) -> dict[str, Any]:
        """What the tenant used since an instant, by user, scope, model and the days of a time zone."""
        return self._call("GET", "/audit?" + urlencode(_present(since=since, tz=tz)))

    def _call(
        self, method: str, path: str, body: dict[str, Any] | None = None, headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        try:
            response = self._http.request(method, BASE + path, json=body, headers=headers)
        except httpx.TransportError as error:
            raise Unreachable(_reason(error, self.url)) from error
        _check(response)
        return _object(response.content)

    @contextmanager
    def _stream(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        headers: dict[str, str] | None = None,
        params: dict[str, int] | None = None,
    ) -> Iterator[Iterator[Event]]:
        request = self._http.build_request(
            method, BASE + path, json=body, headers=headers, params=params, timeout=self._silence
        )
        try:
            response = self._http.send(request, stream=True)
        except httpx.TransportError as error:
            raise Unreachable(_reason(error, self.url)) from error
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
        raise Unreachable(_reason(error, url)) from error


def _read_all(response: httpx.Response, url: str) -> None:
    try:
        response.read()
    except httpx.TransportError as error:
        raise Unreachable(_reason(error, url)) from error


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except ValueError as error:
        raise Broken("The service sent something that is not JSON.") from error
    if not isinstance(value, dict):
        raise Broken("The service sent JSON that is not an object.")
    return value


def _check(response: httpx.Response) -> None:
    if response.is_success:
        return
    raise Refused(response.status_code, _error_text(response), _retry_after(response))


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
    return f"The connection to {url} broke off."


def _chat(conversation: str, prompt: str | None, content: list[dict[str, Any]] | None, snapshot: Any) -> dict[str, Any]:
    if (prompt is None) == (content is None):
        raise ValueError("Give either a prompt or content.")
    return _present(conversationId=conversation, prompt=prompt, content=content, snapshot=snapshot)


def _present(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
