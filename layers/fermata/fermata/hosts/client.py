"""Query a tenant's content system over HTTP for one caller. docs/host.md describes the API it has to implement."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.aws.security_events import log_refused_address
from fermata.aws.vault import SecretUndecryptable
from fermata.domain.errors import ProviderError
from fermata.domain.lenient_json import UnreadableJson
from fermata.drivers.protocols.tool_arguments import parse_strict_json
from fermata.drivers.transport.connection_interface import ProviderResponse
from fermata.drivers.transport.http_connection import HttpConnection
from fermata.drivers.transport.url_guard import UrlGuard
from fermata.hosts.auth import HostCaller, sign_host_token
from fermata.hosts.errors import HostError, HostRequest, host_error_from_response, host_error_from_transport
from fermata.hosts.host_record import HostRecord

MAX_HOST_RESPONSE_BYTES = 4 * 1024 * 1024
HOST_READ_SECONDS = 9.0
"""The time limit of a read request."""
HOST_BUILD_SECONDS = 75.0
"""The time limit of a request that builds a plugin."""
_DOT_SEGMENTS = ("", ".", "..")


class HostConnectionPool:
    """Connections that later requests of this process reuse. Each serves one request at a time.

    Without `keeps_connections` every request opens its own: a reused connection can fail because the host has just
    closed it, and then it is unknown whether the request arrived.
    """

    def __init__(self, guard: UrlGuard, seconds: float, *, keeps_connections: bool = True) -> None:
        self._guard = guard
        self._seconds = seconds
        self.keeps_connections = keeps_connections
        self._idle: list[HttpConnection] = []

    @contextmanager
    def borrow_connection(self) -> Iterator[HttpConnection]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = HttpConnection(stall_seconds=self._seconds, total_seconds=self._seconds, guard=self._guard)
        try:
            yield connection
        finally:
            if self.keeps_connections:
                self._idle.append(connection)
            else:
                connection.close()

    def close(self) -> None:
        """Close the connections that serve no request."""
        while self._idle:
            self._idle.pop().close()


@cache
def get_connection_pool(*, loopback: bool, seconds: float) -> HostConnectionPool:
    """Return the pool of this process for requests with this time limit.

    Args:
        loopback: Whether hosts on this machine may be reached.
        seconds: The time limit of one request.
    """
    guard = UrlGuard(loopback=loopback, on_refusal=log_refused_address)
    return HostConnectionPool(guard, seconds, keeps_connections=seconds < HOST_BUILD_SECONDS)


class HostClient:
    """The API of docs/host.md. Every method returns the host's JSON response or raises HostError.

    A client sends one request at a time, from one thread. `abort` may be called from any thread.
    """

    def __init__(
        self,
        url: str,
        make_token: Callable[[], str],
        pool_for: Callable[[float], HostConnectionPool],
        on_failure: Callable[[HostRequest, HostError], None] = lambda _request, _error: None,
    ) -> None:
        self._url = url
        self._make_token = make_token
        self._pool_for = pool_for
        self._on_failure = on_failure
        self._connection: HttpConnection | None = None

    def list_tables(self) -> Any:
        """List the collections (GET tables)."""
        return self._send("GET", "tables")

    def list_documents(self, table: str, *, status: str | None, author: str | None, limit: int, offset: int) -> Any:
        """List a page of a collection's documents (GET documents).

        Args:
            table: The collection's id.
            status: Only documents of this status; None for all.
            author: Only documents of the user with this id; None for all.
            limit: The greatest number of documents.
            offset: How many documents to skip.
        """
        query = {"tableId": table, "status": status, "authorUserId": author, "limit": limit, "offset": offset}
        return self._send("GET", "documents", query)

    def get_document(self, document: str) -> Any:
        """Read a document with its text (GET documents/{id}). A missing one is a HostError with status 404."""
        return self._send("GET", f"documents/{_quote_segment(document)}")

    def search_documents(self, query: str, *, limit: int) -> Any:
        """Search all collections for a text (GET documents?query=…)."""
        return self._send("GET", "documents", {"query": query, "limit": limit})

    def list_users(self) -> Any:
        """List the users who may be authors (GET users)."""
        return self._send("GET", "users")

    def list_media(self, *, query: str | None, mime_type: str | None, limit: int) -> Any:
        """List media files (GET media).

        Args:
            query: Only files that match this text; None for all.
            mime_type: Only files of this type; None for all.
            limit: The greatest number of files.
        """
        return self._send("GET", "media", {"query": query, "mimeType": mime_type, "limit": limit})

    def list_plugins(self) -> Any:
        """List the plugins of the site (GET plugins)."""
        return self._send("GET", "plugins")

    def validate_plugin(self, plugin: str) -> Any:
        """Build a plugin without activating it (POST plugins/{id}/validate), within HOST_BUILD_SECONDS."""
        return self._send("POST", f"plugins/{_quote_segment(plugin)}/validate", seconds=HOST_BUILD_SECONDS)

    def activate_plugin(self, plugin: str, *, effect_key: str) -> Any:
        """Activate a plugin. The host acts once per `effect_key`, however often it receives the request."""
        path = f"plugins/{_quote_segment(plugin)}/activate"
        return self._send("POST", path, seconds=HOST_BUILD_SECONDS, effect_key=effect_key)

    def abort(self) -> None:
        """End the current request, because its response is no longer needed."""
        connection = self._connection
        if connection is not None:
            connection.abort()

    def _send(
        self,
        method: str,
        path: str,
        query: dict[str, Any] | None = None,
        *,
        seconds: float = HOST_READ_SECONDS,
        effect_key: str | None = None,
    ) -> Any:
        parameters = {name: value for name, value in (query or {}).items() if value is not None}
        url = f"{self._url}/{path}" + (f"?{urlencode(parameters)}" if parameters else "")
        token = self._make_token()
        request = HostRequest(
            urlsplit(self._url).hostname or "", method, path, token, has_side_effects=effect_key is not None
        )
        headers = {"authorization": f"Bearer {token}", "accept": "application/json", "accept-encoding": "identity"}
        if effect_key is not None:
            headers["idempotency-key"] = effect_key
        try:
            return self._exchange(request, url, headers, seconds)
        except HostError as error:
            self._on_failure(request, error)
            raise

    def _exchange(self, request: HostRequest, url: str, headers: dict[str, str], seconds: float) -> Any:
        try:
            with (
                self._borrow_connection(seconds) as connection,
                _open_response(connection, request.method, url, headers) as response,
            ):
                return _parse_response(request, response)
        except ProviderError as error:
            raise host_error_from_transport(request, error, seconds) from error

    @contextmanager
    def _borrow_connection(self, seconds: float) -> Iterator[HttpConnection]:
        with self._pool_for(seconds).borrow_connection() as self._connection:
            try:
                yield self._connection
            finally:
                self._connection = None


def connect_host(resources: Resources, caller: HostCaller, record: HostRecord) -> HostClient:
    """Return a client of a host.

    Args:
        resources: Vault, clock and settings.
        caller: For whom requests are sent.
        record: The host of the caller's tenant.
    """
    loopback = resources.settings.is_loopback_allowed
    return HostClient(
        record.url,
        lambda: _make_token(resources, caller, record),
        lambda seconds: get_connection_pool(loopback=loopback, seconds=seconds),
        lambda request, error: log_host_failure(caller, request, error),
    )


def log_host_failure(caller: HostCaller, request: HostRequest, error: HostError) -> None:
    """Log a request that a content system has refused or not answered."""
    facts = {"method": request.method, "status": error.status, "transient": error.is_transient}
    observability.log_warning("host.failed", tenant=caller.tenant, turn=caller.turn, host=request.host, **facts)


def _make_token(resources: Resources, caller: HostCaller, record: HostRecord) -> str:
    now = resources.clock.time()
    secret = record.get_signing_secret(now)
    try:
        text = resources.vault.open_secret(secret.sealed, purpose="host-secret", tenant=caller.tenant, name=secret.id)
    except SecretUndecryptable as error:
        message = "The secret of the content system can no longer be opened. An administrator has to rotate it."
        raise HostError(message) from error
    return sign_host_token(caller, text, secret.id, now)


def _quote_segment(name: str) -> str:
    """Quote an id as one path segment. Dot segments are refused, because they would lead to another path."""
    if name in _DOT_SEGMENTS:
        raise HostError(f"{name!r} is no id.", status=404)
    return quote(name, safe="")


@contextmanager
def _open_response(
    connection: HttpConnection, method: str, url: str, headers: dict[str, str]
) -> Iterator[ProviderResponse]:
    exchange = connection.get("host", url, headers) if method == "GET" else connection.post("host", url, headers, b"")
    with exchange as response:
        yield response


def _parse_response(request: HostRequest, response: ProviderResponse) -> Any:
    body = response.read_body(MAX_HOST_RESPONSE_BYTES + 1)
    if not 200 <= response.status < 300:
        raise host_error_from_response(request, response.status, body)
    action = f"{request.method} {request.path}"
    if len(body) > MAX_HOST_RESPONSE_BYTES:
        raise HostError(f"{request} answered {action} with more than 4 MB. Ask for less.{request.uncertainty_note}")
    try:
        return parse_strict_json(body.decode("utf-8", "replace"))
    except UnreadableJson:
        content_headers = [response.headers.get(name) for name in ("content-type", "content-encoding")]
        kind = ", ".join(header for header in content_headers if header) or "no content type"
        problem = f"{request} answered {action} with what is no JSON ({kind}).{request.uncertainty_note}"
        raise HostError(problem) from None
