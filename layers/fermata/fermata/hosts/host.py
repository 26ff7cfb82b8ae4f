"""A tenant's content system, asked over HTTP in one caller's name. What it has to answer: docs/host.md."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.aws.vault import CannotOpen
from fermata.drivers.arguments import arguments
from fermata.drivers.guard import Guard
from fermata.drivers.line import Answer, Line
from fermata.hosts import registry
from fermata.hosts.errand import Errand, signed
from fermata.hosts.failures import HostFailure, Wish, refused, unheard
from fermata.words.errors import ProviderError

MOST_BYTES = 4 * 1024 * 1024
READ_SECONDS = 9.0
BUILD_SECONDS = 75.0
"""How long a plugin may take to build."""
_NO_PATH = ("", ".", "..")


class Lines:
    """Connections that are kept for the next request of this process; each serves one request at a time.

    Without `keeps` every request has a new one: a kept connection that its host has just given up fails in a way that
    leaves open whether the request arrived.
    """

    def __init__(self, guard: Guard, seconds: float, *, keeps: bool = True) -> None:
        self._guard, self._seconds, self.keeps = guard, seconds, keeps
        self._idle: list[Line] = []

    @contextmanager
    def one(self) -> Iterator[Line]:
        try:
            line = self._idle.pop()
        except IndexError:
            line = Line(stall_seconds=self._seconds, total_seconds=self._seconds, guard=self._guard)
        try:
            yield line
        finally:
            if self.keeps:
                self._idle.append(line)
            else:
                line.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


@cache
def lines(*, loopback: bool, seconds: float) -> Lines:
    return Lines(Guard(loopback=loopback), seconds, keeps=seconds < BUILD_SECONDS)


class Host:
    """Every verb returns what the host said, as JSON, or raises HostFailure. Paths are as in docs/host.md.

    One request at a time, from one thread; `hang_up` may come from any other.
    """

    def __init__(
        self,
        url: str,
        token: Callable[[], str],
        lines_for: Callable[[float], Lines],
        on_failure: Callable[[Wish, HostFailure], None] = lambda _wish, _failure: None,
    ) -> None:
        self._url, self._token, self._lines_for, self._on_failure = url, token, lines_for, on_failure
        self._line: Line | None = None

    def tables(self) -> Any:
        return self._ask("GET", "tables")

    def documents(self, table: str, *, status: str | None, author: str | None, limit: int, offset: int) -> Any:
        wanted = {"tableId": table, "status": status, "authorUserId": author, "limit": limit, "offset": offset}
        return self._ask("GET", "documents", wanted)

    def document(self, document: str) -> Any:
        return self._ask("GET", f"documents/{_segment(document)}")

    def search(self, query: str, *, limit: int) -> Any:
        return self._ask("GET", "documents", {"query": query, "limit": limit})

    def users(self) -> Any:
        return self._ask("GET", "users")

    def media(self, *, query: str | None, mime_type: str | None, limit: int) -> Any:
        return self._ask("GET", "media", {"query": query, "mimeType": mime_type, "limit": limit})

    def plugins(self) -> Any:
        return self._ask("GET", "plugins")

    def validate(self, plugin: str) -> Any:
        return self._ask("POST", f"plugins/{_segment(plugin)}/validate", seconds=BUILD_SECONDS)

    def activate(self, plugin: str, *, effect_key: str) -> Any:
        """The host acts once for each key, however often it is asked with it."""
        path = f"plugins/{_segment(plugin)}/activate"
        return self._ask("POST", path, seconds=BUILD_SECONDS, effect_key=effect_key)

    def hang_up(self) -> None:
        """Nobody needs the answer any more: end the request under way."""
        line = self._line
        if line is not None:
            line.hang_up()

    def _ask(
        self,
        method: str,
        path: str,
        wanted: dict[str, Any] | None = None,
        *,
        seconds: float = READ_SECONDS,
        effect_key: str | None = None,
    ) -> Any:
        given = {name: value for name, value in (wanted or {}).items() if value is not None}
        url = f"{self._url}/{path}" + (f"?{urlencode(given)}" if given else "")
        token = self._token()
        wish = Wish(urlsplit(self._url).hostname or "", method, path, token, acts=effect_key is not None)
        headers = {"authorization": f"Bearer {token}", "accept": "application/json", "accept-encoding": "identity"}
        if effect_key is not None:
            headers["idempotency-key"] = effect_key
        try:
            return self._exchange(wish, url, headers, seconds)
        except HostFailure as failure:
            self._on_failure(wish, failure)
            raise

    def _exchange(self, wish: Wish, url: str, headers: dict[str, str], seconds: float) -> Any:
        try:
            with self._line_of(seconds) as line, _sent(line, wish.method, url, headers) as answer:
                return _understood(wish, answer)
        except ProviderError as problem:
            raise unheard(wish, problem, seconds) from problem

    @contextmanager
    def _line_of(self, seconds: float) -> Iterator[Line]:
        with self._lines_for(seconds).one() as self._line:
            try:
                yield self._line
            finally:
                self._line = None


def open_host(desk: Desk, errand: Errand) -> Host | None:
    """The host of the errand's tenant, or None when it has none."""
    record = registry.known(desk, errand.tenant)
    if record is None:
        return None

    def token() -> str:
        now = desk.clock.time()
        secret = record.signing(now)
        try:
            text = desk.vault.open(secret.sealed, purpose="host-secret", tenant=errand.tenant, name=secret.id)
        except CannotOpen as error:
            sentence = "The secret of the content system can no longer be opened. An administrator has to rotate it."
            raise HostFailure(sentence) from error
        return signed(errand, text, secret.id, now)

    def told(wish: Wish, failure: HostFailure) -> None:
        facts = {"method": wish.method, "status": failure.status, "passing": failure.is_passing}
        signals.warn("host.failed", tenant=errand.tenant, turn=errand.turn, host=wish.host, **facts)

    local = desk.settings.loopback_allowed
    return Host(record.url, token, lambda seconds: lines(loopback=local, seconds=seconds), told)


def _segment(name: str) -> str:
    """An id as one piece of a path. The path's own words (`..`) are nobody's id."""
    if name in _NO_PATH:
        raise HostFailure(f"{name!r} is no id.", status=404)
    return quote(name, safe="")


@contextmanager
def _sent(line: Line, method: str, url: str, headers: dict[str, str]) -> Iterator[Answer]:
    asked = line.get("host", url, headers) if method == "GET" else line.post("host", url, headers, b"")
    with asked as answer:
        yield answer


def _understood(wish: Wish, answer: Answer) -> Any:
    body = answer.read(MOST_BYTES + 1)
    if not 200 <= answer.status < 300:
        raise refused(wish, answer.status, body)
    asked = f"{wish.method} {wish.path}"
    if len(body) > MOST_BYTES:
        raise HostFailure(f"{wish} answered {asked} with more than 4 MB. Ask for less.{wish.doubt}")
    value, is_unreadable = arguments(body.decode("utf-8", "replace"))
    if is_unreadable or not body.strip():
        named = [answer.headers.get(name) for name in ("content-type", "content-encoding")]
        kind = ", ".join(name for name in named if name) or "no content type"
        raise HostFailure(f"{wish} answered {asked} with what is no JSON ({kind}).{wish.doubt}")
    return value
