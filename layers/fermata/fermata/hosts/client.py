"""A tenant's content system, asked over HTTP in one caller's name. What it has to answer: docs/host.md."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.aws.vault import SecretUndecryptable
from fermata.domain.errors import ProviderError
from fermata.drivers.protocols.tool_arguments import parse_tool_arguments
from fermata.drivers.transport.connection import ProviderConnection, ProviderResponse
from fermata.drivers.transport.url_guard import UrlGuard
from fermata.hosts import registry
from fermata.hosts.auth import HostCaller, sign_host_token
from fermata.hosts.errors import HostError, HostRequest, host_error_from_response, host_error_from_transport

MAX_HOST_RESPONSE_BYTES = 4 * 1024 * 1024
HOST_READ_SECONDS = 9.0
HOST_BUILD_SECONDS = 75.0
"""How long a plugin may take to build."""
_NO_PATH = ("", ".", "..")


class HostConnectionPool:
    """Connections that are kept for the next request of this process; each serves one request at a time.

    Without `keeps` every request has a new one: a kept connection that its host has just given up fails in a way that
    leaves open whether the request arrived.
    """

    def __init__(self, guard: UrlGuard, seconds: float, *, keeps_connections: bool = True) -> None:
        self._guard, self._seconds, self.keeps_connections = guard, seconds, keeps_connections
        self._idle: list[ProviderConnection] = []

    @contextmanager
    def borrow_connection(self) -> Iterator[ProviderConnection]:
        try:
            line = self._idle.pop()
        except IndexError:
            line = ProviderConnection(stall_seconds=self._seconds, total_seconds=self._seconds, guard=self._guard)
        try:
            yield line
        finally:
            if self.keeps_connections:
                self._idle.append(line)
            else:
                line.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


@cache
def get_connection_pool(*, loopback: bool, seconds: float) -> HostConnectionPool:
    return HostConnectionPool(UrlGuard(loopback=loopback), seconds, keeps_connections=seconds < HOST_BUILD_SECONDS)


class HostClient:
    """Every verb returns what the host said, as JSON, or raises HostFailure. Paths are as in docs/host.md.

    One request at a time, from one thread; `hang_up` may come from any other.
    """

    def __init__(
        self,
        url: str,
        token: Callable[[], str],
        pool_for: Callable[[float], HostConnectionPool],
        on_failure: Callable[[HostRequest, HostError], None] = lambda _wish, _failure: None,
    ) -> None:
        self._url, self._token, self._lines_for, self._on_failure = url, token, pool_for, on_failure
        self._line: ProviderConnection | None = None

    def list_tables(self) -> Any:
        return self._ask("GET", "tables")

    def list_documents(self, table: str, *, status: str | None, author: str | None, limit: int, offset: int) -> Any:
        wanted = {"tableId": table, "status": status, "authorUserId": author, "limit": limit, "offset": offset}
        return self._ask("GET", "documents", wanted)

    def get_document(self, document: str) -> Any:
        return self._ask("GET", f"documents/{_segment(document)}")

    def search_documents(self, query: str, *, limit: int) -> Any:
        return self._ask("GET", "documents", {"query": query, "limit": limit})

    def list_users(self) -> Any:
        return self._ask("GET", "users")

    def list_media(self, *, query: str | None, mime_type: str | None, limit: int) -> Any:
        return self._ask("GET", "media", {"query": query, "mimeType": mime_type, "limit": limit})

    def list_plugins(self) -> Any:
        return self._ask("GET", "plugins")

    def validate_plugin(self, plugin: str) -> Any:
        return self._ask("POST", f"plugins/{_segment(plugin)}/validate", seconds=HOST_BUILD_SECONDS)

    def activate_plugin(self, plugin: str, *, effect_key: str) -> Any:
        """The host acts once for each key, however often it is asked with it."""
        path = f"plugins/{_segment(plugin)}/activate"
        return self._ask("POST", path, seconds=HOST_BUILD_SECONDS, effect_key=effect_key)

    def abort(self) -> None:
        """Nobody needs the answer any more: end the request under way."""
        line = self._line
        if line is not None:
            line.abort()

    def _ask(
        self,
        method: str,
        path: str,
        wanted: dict[str, Any] | None = None,
        *,
        seconds: float = HOST_READ_SECONDS,
        effect_key: str | None = None,
    ) -> Any:
        given = {name: value for name, value in (wanted or {}).items() if value is not None}
        url = f"{self._url}/{path}" + (f"?{urlencode(given)}" if given else "")
        token = self._token()
        wish = HostRequest(
            urlsplit(self._url).hostname or "", method, path, token, has_side_effects=effect_key is not None
        )
        headers = {"authorization": f"Bearer {token}", "accept": "application/json", "accept-encoding": "identity"}
        if effect_key is not None:
            headers["idempotency-key"] = effect_key
        try:
            return self._exchange(wish, url, headers, seconds)
        except HostError as failure:
            self._on_failure(wish, failure)
            raise

    def _exchange(self, wish: HostRequest, url: str, headers: dict[str, str], seconds: float) -> Any:
        try:
            with self._line_of(seconds) as line, _sent(line, wish.method, url, headers) as answer:
                return _understood(wish, answer)
        except ProviderError as problem:
            raise host_error_from_transport(wish, problem, seconds) from problem

    @contextmanager
    def _line_of(self, seconds: float) -> Iterator[ProviderConnection]:
        with self._lines_for(seconds).borrow_connection() as self._line:
            try:
                yield self._line
            finally:
                self._line = None


def open_host_client(resources: Resources, caller: HostCaller) -> HostClient | None:
    """The host of the errand's tenant, or None when it has none."""
    record = registry.get_cached_host(resources, caller.tenant)
    if record is None:
        return None

    def token() -> str:
        now = resources.clock.time()
        secret = record.get_signing_secret(now)
        try:
            text = resources.vault.open_secret(
                secret.sealed, purpose="host-secret", tenant=caller.tenant, name=secret.id
            )
        except SecretUndecryptable as error:
            sentence = "The secret of the content system can no longer be opened. An administrator has to rotate it."
            raise HostError(sentence) from error
        return sign_host_token(caller, text, secret.id, now)

    def told(wish: HostRequest, failure: HostError) -> None:
        facts = {"method": wish.method, "status": failure.status, "passing": failure.is_transient}
        observability.log_warning("host.failed", tenant=caller.tenant, turn=caller.turn, host=wish.host, **facts)

    local = resources.settings.is_loopback_allowed
    return HostClient(record.url, token, lambda seconds: get_connection_pool(loopback=local, seconds=seconds), told)


def _segment(name: str) -> str:
    """An id as one piece of a path. The path's own words (`..`) are nobody's id."""
    if name in _NO_PATH:
        raise HostError(f"{name!r} is no id.", status=404)
    return quote(name, safe="")


@contextmanager
def _sent(line: ProviderConnection, method: str, url: str, headers: dict[str, str]) -> Iterator[ProviderResponse]:
    asked = line.get("host", url, headers) if method == "GET" else line.post("host", url, headers, b"")
    with asked as answer:
        yield answer


def _understood(wish: HostRequest, answer: ProviderResponse) -> Any:
    body = answer.read_body(MAX_HOST_RESPONSE_BYTES + 1)
    if not 200 <= answer.status < 300:
        raise host_error_from_response(wish, answer.status, body)
    asked = f"{wish.method} {wish.path}"
    if len(body) > MAX_HOST_RESPONSE_BYTES:
        raise HostError(f"{wish} answered {asked} with more than 4 MB. Ask for less.{wish.uncertainty_note}")
    value, is_unreadable = parse_tool_arguments(body.decode("utf-8", "replace"))
    if is_unreadable or not body.strip():
        named = [answer.headers.get(name) for name in ("content-type", "content-encoding")]
        kind = ", ".join(name for name in named if name) or "no content type"
        raise HostError(f"{wish} answered {asked} with what is no JSON ({kind}).{wish.uncertainty_note}")
    return value
