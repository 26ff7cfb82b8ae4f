"""Download a file that a message names by its address: HTTPS only, public addresses only, limited size and time.

Redirects are followed, and each of them has to meet the same rules (decision 0366). Errors name the host and never the
path or the query, because a signed address is a secret.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from fermata.domain.errors import AddressRefused, ProviderError
from fermata.domain.run_settings import FileDownloadLimits
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.retry_policy import Failure
from fermata.drivers.transport.url_guard import UrlGuard

if TYPE_CHECKING:
    from fermata.drivers.transport.connection_interface import ProviderConnection, ProviderResponse

MAX_FILE_REDIRECTS = 10
DEFAULT_LIMITS = FileDownloadLimits()
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class FileDownloadCode(StrEnum):
    """Why a file was not downloaded."""

    NOT_HTTPS = "url_not_https"
    NOT_PUBLIC = "url_not_public"
    TOO_LARGE = "too_large"
    TIMEOUT = "timeout"
    FETCH_FAILED = "fetch_failed"


class FileDownloadError(Exception):
    """A file was not downloaded. `status` is that of the response, if there was one."""

    def __init__(self, code: FileDownloadCode, host: str, problem: str, status: int | None = None) -> None:
        super().__init__(f"The file at {host or 'this address'} {problem}.")
        self.code = code
        self.host = host
        self.status = status


@value_dataclass(frozen=True)
class DownloadedFile:
    data: bytes
    media_type: str


OpenConnection = Callable[[float, UrlGuard], AbstractContextManager["ProviderConnection"]]
"""Opens a connection with a time limit in seconds that goes only where the guard allows."""


def download_file(
    url: str, limits: FileDownloadLimits = DEFAULT_LIMITS, open_connection: OpenConnection | None = None
) -> DownloadedFile:
    """Download a file.

    Args:
        url: Its address.
        limits: How large it may be, and how long it may take.
        open_connection: Opens the connection; for tests.

    Raises:
        FileDownloadError: The address is not allowed, or the file is too large, too slow or not there.
    """
    refusals: list[AddressRefused] = []
    guard = UrlGuard(on_refusal=refusals.append)
    with (open_connection or _open_connection)(limits.timeout / 1000, guard) as connection, connection.call_scope():
        download = _Download(connection, limits, refusals)
        for _ in range(MAX_FILE_REDIRECTS + 1):
            result = download.fetch(url)
            if isinstance(result, DownloadedFile):
                return result
            url = result
    raise FileDownloadError(FileDownloadCode.FETCH_FAILED, _get_host(url), "redirects too often")


def _open_connection(seconds: float, guard: UrlGuard) -> AbstractContextManager["ProviderConnection"]:
    from fermata.drivers.transport.http_connection import HttpConnection  # functions that send nothing load no httpx

    return closing(HttpConnection(stall_seconds=seconds, total_seconds=seconds, guard=guard))


class _Download:
    def __init__(
        self, connection: "ProviderConnection", limits: FileDownloadLimits, refusals: list[AddressRefused]
    ) -> None:
        self._connection = connection
        self._limits = limits
        self._refusals = refusals

    def fetch(self, url: str) -> DownloadedFile | str:
        """Return the file, or the address to which its server redirects."""
        host = _get_host(url)
        if not url.lower().startswith("https:"):
            raise FileDownloadError(FileDownloadCode.NOT_HTTPS, host, "has no https address")
        headers = {"accept-encoding": "identity"}
        with self._report_errors(host), self._connection.get("file", url, headers) as response:
            location = response.headers.get("location", "")
            if response.status in _REDIRECTS and location:
                return urljoin(url, location)
            return self._read(host, response)

    def _read(self, host: str, response: "ProviderResponse") -> DownloadedFile:
        if not 200 <= response.status < 300:
            problem = f"was answered with status {response.status}"
            raise FileDownloadError(FileDownloadCode.FETCH_FAILED, host, problem, response.status)
        length = response.headers.get("content-length", "")
        if length.isdigit() and int(length) > self._limits.max_bytes:
            raise self._build_size_error(host)
        data = bytearray()
        for chunk in response.chunks:
            data += chunk
            if len(data) > self._limits.max_bytes:
                raise self._build_size_error(host)
        return DownloadedFile(bytes(data), response.headers.get("content-type", "").partition(";")[0].strip())

    def _build_size_error(self, host: str) -> FileDownloadError:
        problem = f"has more than {self._limits.max_bytes} bytes"
        return FileDownloadError(FileDownloadCode.TOO_LARGE, host, problem)

    @contextmanager
    def _report_errors(self, host: str) -> Iterator[None]:
        try:
            yield
        except ProviderError as error:
            if self._refusals:
                raise FileDownloadError(FileDownloadCode.NOT_PUBLIC, host, "is not on the public internet") from None
            if error.code == Failure.STALLED.code:
                problem = f"did not arrive within {self._limits.timeout} ms"
                raise FileDownloadError(FileDownloadCode.TIMEOUT, host, problem) from None
            raise FileDownloadError(FileDownloadCode.FETCH_FAILED, host, "could not be fetched") from None


def _get_host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
