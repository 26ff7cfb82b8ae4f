"""Files that a message names by their address: what is downloaded, and what is refused."""

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from fermata.domain.run_settings import FileDownloadLimits
from fermata.drivers.retry_policy import Failure
from fermata.drivers.transport.connection_interface import ProviderConnection, ProviderResponse
from fermata.drivers.transport.file_download import FileDownloadError, OpenConnection, download_file

SECRET_URL = "https://files.example/private/report.csv?signature=secret"


@dataclass
class ScriptedFiles:
    """Answers requests with responses, in their order, and records the addresses."""

    responses: list[ProviderResponse | Exception]
    urls: list[str] = field(default_factory=list)
    closed_bodies: int = 0

    def open(self) -> OpenConnection:
        connection = cast(ProviderConnection, self)
        return lambda _seconds, _guard: contextlib.nullcontext(connection)

    @contextlib.contextmanager
    def call_scope(self) -> Iterator[None]:
        yield

    @contextlib.contextmanager
    def get(self, _label: str, url: str, _headers: Mapping[str, str]) -> Iterator[ProviderResponse]:
        self.urls.append(url)
        response = self.responses.pop(0)
        if isinstance(response, Exception):
            raise response
        try:
            yield response
        finally:
            self.closed_bodies += 1


def respond(status: int = 200, body: Any = (b"abc",), **headers: str) -> ProviderResponse:
    """Return a response; underscores in names of headers stand for hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ProviderResponse(status, named, iter(body))


def fail_to_read() -> Iterator[bytes]:
    raise AssertionError("the body was read")
    yield b""


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://files.test/a.csv", id="fileDownload-01"),
        pytest.param("ftp://files.test/a.csv", id="fileDownload-02"),
        pytest.param("file:///etc/passwd", id="a file of this machine"),
        pytest.param("//files.test/a.csv", id="no scheme"),
    ],
)
def test_only_https_is_asked_for(url: str) -> None:
    files = ScriptedFiles([])
    with pytest.raises(FileDownloadError) as refused:
        download_file(url, open_connection=files.open())
    assert (refused.value.code, files.urls) == ("url_not_https", [])


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("https://10.0.0.1/", id="fileDownload-04"),
        pytest.param("https://100.64.0.1/", id="carrier-grade NAT"),
        pytest.param("https://192.0.0.8/", id="protocol assignments"),
        pytest.param("https://198.18.0.1/", id="benchmarks"),
        pytest.param("https://224.0.0.1/", id="multicast"),
        pytest.param("https://[::ffff:127.0.0.1]/", id="fileDownload-07"),
        pytest.param("https://[64:ff9b::a00:1]/", id="a private address behind NAT64"),
        pytest.param("https://[2002:a00:1::]/", id="6to4"),
        pytest.param("https://[fd00::1]/", id="fileDownload-08"),
        pytest.param("https://[fe80::1]/", id="link-local"),
        pytest.param("https://[fec0::1]/", id="site-local"),
        pytest.param("https://localhost/", id="fileDownload-09"),
    ],
)
def test_an_address_that_is_not_public_is_not_connected_to(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("httpcore.SyncBackend.connect_tcp", lambda *_a, **_k: pytest.fail("a socket was opened"))
    with pytest.raises(FileDownloadError) as refused:
        download_file(url)
    assert refused.value.code == "url_not_public"


def test_file_download_10_a_redirect_has_to_meet_the_same_rules() -> None:
    files = ScriptedFiles([respond(302, location="http://169.254.169.254/")])
    with pytest.raises(FileDownloadError) as refused:
        download_file("https://files.example/a", open_connection=files.open())
    assert (refused.value.code, len(files.urls)) == ("url_not_https", 1)


def test_redirects_are_followed_and_may_be_relative() -> None:
    files = ScriptedFiles([respond(302, location="../b?x=1"), respond(content_type="text/csv; charset=utf-8")])
    file = download_file("https://files.example/old/a", open_connection=files.open())
    assert (file.data, file.media_type) == (b"abc", "text/csv")
    assert files.urls == ["https://files.example/old/a", "https://files.example/b?x=1"]


def test_redirects_end_after_ten() -> None:
    files = ScriptedFiles([respond(301, location=f"https://files.example/{n}") for n in range(20)])
    with pytest.raises(FileDownloadError) as refused:
        download_file("https://files.example/a", open_connection=files.open())
    assert (refused.value.code, len(files.urls)) == ("fetch_failed", 11)


def test_file_download_13_a_stated_size_is_checked_before_the_body_is_read() -> None:
    files = ScriptedFiles([respond(body=fail_to_read(), content_length="11")])
    with pytest.raises(FileDownloadError) as refused:
        download_file("https://files.example/a", FileDownloadLimits(max_bytes=10), files.open())
    assert refused.value.code == "too_large"


def test_file_download_14_an_endless_body_is_left_at_its_limit() -> None:
    files = ScriptedFiles([respond(body=itertools.repeat(b"123456"))])
    with pytest.raises(FileDownloadError) as refused:
        download_file("https://files.example/a", FileDownloadLimits(max_bytes=10), files.open())
    assert (refused.value.code, files.closed_bodies) == ("too_large", 1)


def test_a_file_of_exactly_the_limit_is_taken() -> None:
    files = ScriptedFiles([respond(body=(b"12345", b"67890"), content_length="10")])
    assert len(download_file("https://files.example/a", FileDownloadLimits(max_bytes=10), files.open()).data) == 10


def test_file_download_15_the_limits_without_settings() -> None:
    limits = FileDownloadLimits()
    assert (limits.max_bytes, limits.timeout) == (20 * 1024 * 1024, 30_000)


def test_file_download_16_a_slow_file_is_given_up() -> None:
    files = ScriptedFiles([Failure.STALLED.to_error("file request failed: no whole answer within 0.05 s.")])
    with pytest.raises(FileDownloadError) as refused:
        download_file("https://files.example/a", FileDownloadLimits(timeout=50), files.open())
    assert refused.value.code == "timeout"


def test_file_download_17_errors_name_the_host_only() -> None:
    files = ScriptedFiles([respond(403)])
    with pytest.raises(FileDownloadError) as refused:
        download_file(SECRET_URL, open_connection=files.open())
    assert (refused.value.code, refused.value.status) == ("fetch_failed", 403)
    assert "files.example" in str(refused.value)
    assert not any(part in str(refused.value) for part in ("private", "report", "secret"))
