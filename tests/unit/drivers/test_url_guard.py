"""URLs and hosts that may be reached; over real sockets where a connection is made."""

import contextlib
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fermata.domain.errors import InvalidRequest, ProviderError
from fermata.drivers.transport import http_connection, url_guard
from fermata.drivers.transport.http_connection import HttpConnection
from fermata.drivers.transport.url_guard import UrlGuard, is_public_address
from tests.certificates import write_certificate
from tests.fixed_response_server import FixedResponseServer, run_fixed_response_server
from tests.waiting import BACKSTOP_SECONDS

PUBLIC = ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "100.128.0.1"]
PRIVATE = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "10.0.0.5",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "169.254.79.129",
    "169.254.170.23",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "203.0.113.9",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::808:808",
    "100::1",
    "2001::1",
    "2001:0:808:808::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_public(address: str) -> None:
    assert is_public_address(address)


@pytest.mark.parametrize("address", PRIVATE)
def test_private_and_reserved_addresses_are_not_public_in_any_form(address: str) -> None:
    assert not is_public_address(address)


class FakeResolver:
    """A scripted resolver that records the hosts it was asked for."""

    def __init__(self) -> None:
        self.answers: dict[str, list[list[str]]] = {}
        self.asked: list[str] = []

    def add_host(self, host: str, *answers: list[str]) -> None:
        self.answers[host] = list(answers)

    def __call__(self, host: str, port: int, **_: Any) -> list[Any]:
        self.asked.append(host)
        answers = self.answers.get(host)
        if answers is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [(0, 0, 0, "", (address, port)) for address in addresses]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> FakeResolver:
    resolver = FakeResolver()
    monkeypatch.setattr(url_guard, "_resolve", lambda host, port: tuple(entry[4][0] for entry in resolver(host, port)))
    return resolver


class TestText:
    @pytest.mark.parametrize(
        "url",
        [
            "https://models.example",
            "https://models.example/",
            "HTTPS://Models.Example:443/v1",
            "https://models.example/a/b",
        ],
    )
    def test_an_https_url_is_allowed(self, url: str) -> None:
        UrlGuard().check_url(url)

    @pytest.mark.parametrize(
        ("url", "says"),
        [
            ("http://models.example", "must begin with https://, not http://"),
            ("ftp://models.example", "is not a URL"),
            ("file:///etc/passwd", "is not a URL"),
            ("models.example", "is not a URL"),
            ("https://", "is not a URL"),
            ("https:models.example", "is not a URL"),
            ("https://[::1", "is not a URL"),
            ("https://models.example:port", "is not a URL"),
            ("https://models.example:99999", "is not a URL"),
            ("https://models.example:9001", "must use port 443, not 9001"),
            ("https://models.example:0", "must use port 443, not 0"),
            ("https://models.example:80", "must use port 443, not 80"),
            ("https://user:pass@models.example", "must not hold a user name or password"),
            ("https://@models.example", "must not hold a user name or password"),
            ("https://models.example\\@10.0.0.1", "printable ASCII"),
            ("https://models.example /v1", "printable ASCII"),
            ("https://models.example/\n", "printable ASCII"),
            ("https://mödels.example", "printable ASCII"),
            ("https://127。0。0。1", "printable ASCII"),
            ("https://" + "a" * 2_000, "printable ASCII"),
        ],
    )
    def test_any_other_url_is_refused_with_the_reason(self, url: str, says: str) -> None:
        with pytest.raises(InvalidRequest) as refusal:
            UrlGuard().check_url(url)
        assert says in refusal.value.message
        assert "pass" not in refusal.value.message.replace("password", "")

    @pytest.mark.parametrize(
        "url", ["http://localhost:11434", "http://127.0.0.1:1/v1", "http://[::1]:8080", "https://localhost"]
    )
    def test_loopback_urls_are_allowed_only_with_the_option(self, url: str) -> None:
        UrlGuard(loopback=True).check_url(url)
        if url.startswith("http:"):
            with pytest.raises(InvalidRequest, match="must begin with https"):
                UrlGuard().check_url(url)

    @pytest.mark.parametrize(
        "url", ["http://10.0.0.1", "http://localhost.example", "http://127.0.0.1.example", "http://0.0.0.0"]
    )
    def test_other_hosts_stay_restricted_with_loopback_allowed(self, url: str) -> None:
        with pytest.raises(InvalidRequest, match="must begin with https"):
            UrlGuard(loopback=True).check_url(url)

    def test_trusted_urls_are_compared_exactly(self) -> None:
        guard = UrlGuard(["http://gateway.internal:8080/v1"])
        guard.check_url("http://gateway.internal:8080/other")
        for other in ("http://gateway.internal:8081", "http://gateway.internal", "http://x.gateway.internal:8080"):
            with pytest.raises(InvalidRequest):
                guard.check_url(other)


class TestNames:
    def test_a_public_name_resolves_to_all_its_addresses(self, names: FakeResolver) -> None:
        names.add_host("models.example", ["8.8.8.8", "2606:4700::1111"])
        assert UrlGuard().resolve_allowed_addresses("Models.Example", 443) == ("8.8.8.8", "2606:4700::1111")

    @pytest.mark.parametrize("inside", ["169.254.169.254", "127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1"])
    def test_one_private_address_refuses_the_name(self, names: FakeResolver, inside: str) -> None:
        names.add_host("models.example", ["8.8.8.8", inside])
        with pytest.raises(InvalidRequest, match=r"^models\.example is at an address that is not public"):
            UrlGuard().resolve_allowed_addresses("models.example", 443)

    @pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "0x7f.1", "localhost", "::1", "0"])
    @pytest.mark.parametrize("port", [443, 9001])
    def test_no_spelling_of_loopback_is_allowed(self, host: str, port: int) -> None:
        with pytest.raises((InvalidRequest, OSError)):
            UrlGuard().resolve_allowed_addresses(host, port)

    def test_the_port_is_checked_again_when_connecting(self, names: FakeResolver) -> None:
        names.add_host("models.example", ["8.8.8.8"])
        with pytest.raises(InvalidRequest, match="port 443"):
            UrlGuard().resolve_allowed_addresses("models.example", 22)

    def test_with_loopback_allowed_no_other_name_may_resolve_to_it(self, names: FakeResolver) -> None:
        names.add_host("evil.example", ["127.0.0.1"])
        names.add_host("localhost", ["127.0.0.1", "::1"])
        guard = UrlGuard(loopback=True)
        assert guard.resolve_allowed_addresses("localhost", 11434) == ("127.0.0.1", "::1")
        with pytest.raises(InvalidRequest, match="not public"):
            guard.resolve_allowed_addresses("evil.example", 443)

    def test_localhost_that_resolves_elsewhere_is_refused(self, names: FakeResolver) -> None:
        names.add_host("localhost", ["10.0.0.1"])
        with pytest.raises(InvalidRequest, match="not public"):
            UrlGuard(loopback=True).resolve_allowed_addresses("localhost", 80)

    def test_trusted_hosts_are_not_resolved(self, names: FakeResolver) -> None:
        assert UrlGuard(["http://gateway.internal:8080"]).resolve_allowed_addresses("gateway.internal", 8080) == (
            "gateway.internal",
        )
        assert names.asked == []

    def test_a_url_to_be_stored_must_have_a_known_host(self, names: FakeResolver) -> None:
        names.add_host("models.example", ["8.8.8.8"])
        UrlGuard().check_url_and_host("https://models.example/v1/")
        with pytest.raises(InvalidRequest, match=r"There is no host missing\.example\. Check how it is spelled\."):
            UrlGuard().check_url_and_host("https://missing.example")

    @pytest.mark.parametrize(
        "url", ["https://models.example/v1?key=1", "https://models.example/v1#a", "https://models.example?"]
    )
    def test_a_url_to_be_stored_has_no_query_or_fragment(self, names: FakeResolver, url: str) -> None:
        names.add_host("models.example", ["8.8.8.8"])
        with pytest.raises(InvalidRequest, match="must end with its path"):
            UrlGuard().check_url_and_host(url)

    def test_an_invalid_host_label_is_an_unknown_host(self) -> None:
        with pytest.raises(InvalidRequest, match="There is no host"):
            UrlGuard().check_url_and_host(f"https://{'a' * 70}.example")


def fetch_body(connection: HttpConnection, url: str) -> bytes:
    with connection.get("Models", url, {"accept": "application/json"}) as answer:
        return answer.read_body()


@contextlib.contextmanager
def open_connection(guard: UrlGuard) -> Iterator[HttpConnection]:
    connection = HttpConnection(stall_seconds=BACKSTOP_SECONDS, total_seconds=BACKSTOP_SECONDS, guard=guard)
    try:
        yield connection
    finally:
        connection.close()


class TestConnecting:
    """Here `127.0.0.1` stands for a public address, or for one that must never be reached."""

    @pytest.fixture
    def server(self) -> Iterator[FixedResponseServer]:
        with run_fixed_response_server() as server:
            yield server

    def test_a_refused_url_opens_no_connection(self, server: FixedResponseServer) -> None:
        with open_connection(UrlGuard()) as connection, pytest.raises(ProviderError) as failure:
            fetch_body(connection, server.url)
        assert failure.value.message == "Models request failed: The address must begin with https://, not http://."
        assert (failure.value.code, failure.value.retryable) == ("provider_request", False)
        assert server.request_count == 0

    def test_loopback_is_reached_where_it_is_allowed(self, server: FixedResponseServer) -> None:
        with open_connection(UrlGuard(loopback=True)) as connection:
            assert fetch_body(connection, server.url) == b"{}"

    def test_a_trusted_url_is_reached(self, server: FixedResponseServer) -> None:
        with open_connection(UrlGuard([server.url])) as connection:
            assert fetch_body(connection, server.url) == b"{}"

    def test_a_redirect_is_not_followed(self, server: FixedResponseServer) -> None:
        server.status, server.location = 302, "http://169.254.169.254/latest/meta-data"
        with open_connection(UrlGuard([server.url])) as connection, connection.get("Models", server.url, {}) as answer:
            assert answer.status == 302
        assert server.request_count == 1

    def test_a_private_name_is_refused_before_anything_is_connected(self, names: FakeResolver) -> None:
        names.add_host("models.example", ["10.0.0.1"])
        with open_connection(UrlGuard()) as connection, pytest.raises(ProviderError, match="not public") as failure:
            fetch_body(connection, "https://models.example/v1/models")
        assert not failure.value.retryable

    def test_an_unknown_host_is_unreachable(self, names: FakeResolver) -> None:
        with (
            open_connection(UrlGuard()) as connection,
            pytest.raises(ProviderError, match="could not be reached") as failure,
        ):
            fetch_body(connection, "https://missing.example")
        assert (failure.value.code, failure.value.retryable) == ("provider_unreachable", True)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_certificate(tmp_path_factory.mktemp("tls"), "models.example")


class SecureServer:
    """Serve TLS on a loopback address, record the server name of each request, and answer `{}`."""

    def __init__(self, certificate: Path, host: str, port: int = 0) -> None:
        self.names: list[str | None] = []
        self.heads: list[bytes] = []
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate)
        self._context.sni_callback = lambda _socket, name, _context: self.names.append(name)
        self._listener = socket.create_server((host, port))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), self._context.wrap_socket(plain, server_side=True) as connection:
                self.heads.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # closing alone wakes nobody who waits in accept()
        self._listener.close()
        self._thread.join(BACKSTOP_SECONDS)


class TestPinning:
    """A name is resolved once per connection, and TLS and HTTP still go by the name."""

    @pytest.fixture
    def public(self, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SecureServer]:
        """Listens at 127.0.0.2, which counts as public here, on a port that counts as 443."""
        server = SecureServer(certificate, "127.0.0.2")
        monkeypatch.setattr(url_guard, "HTTPS_PORT", server.port)
        monkeypatch.setattr(url_guard, "is_public_address", lambda address: address == "127.0.0.2")
        trusting = ssl.create_default_context(cafile=str(certificate))
        monkeypatch.setattr(http_connection, "get_tls_context", lambda: trusting)
        yield server
        server.close()

    @pytest.fixture
    def inside(self, certificate: Path, public: SecureServer) -> Iterator[SecureServer]:
        """Listens where nothing may connect: the same port of 127.0.0.1."""
        server = SecureServer(certificate, "127.0.0.1", public.port)
        yield server
        server.close()

    def test_the_resolved_address_is_asked_by_its_name(self, names: FakeResolver, public: SecureServer) -> None:
        names.add_host("models.example", ["127.0.0.2"])
        with open_connection(UrlGuard()) as connection:
            assert fetch_body(connection, f"https://models.example:{public.port}/v1/models") == b"{}"
        assert public.names == ["models.example"]
        assert b"Host: models.example" in public.heads[0]

    def test_a_certificate_of_another_name_is_refused(self, names: FakeResolver, public: SecureServer) -> None:
        names.add_host("other.example", ["127.0.0.2"])
        with open_connection(UrlGuard()) as connection, pytest.raises(ProviderError, match="could not be reached"):
            fetch_body(connection, f"https://other.example:{public.port}/v1/models")
        assert public.heads == []

    def test_dns_rebinding_is_defeated(self, names: FakeResolver, public: SecureServer, inside: SecureServer) -> None:
        names.add_host("models.example", ["127.0.0.2"], ["127.0.0.1"])
        url = f"https://models.example:{public.port}/v1/models"
        with open_connection(UrlGuard()) as connection:
            assert fetch_body(connection, url) == b"{}"
            assert names.asked == ["models.example"]
            with pytest.raises(ProviderError, match="not public"):
                fetch_body(connection, url)
        assert len(public.heads) == 1
        assert inside.heads == []

    def test_an_address_that_does_not_answer_is_followed_by_the_next(
        self, names: FakeResolver, public: SecureServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(url_guard, "is_public_address", lambda address: ipaddress.ip_address(address).is_loopback)
        names.add_host("models.example", ["127.0.0.9", "127.0.0.2"])
        with open_connection(UrlGuard()) as connection:
            assert fetch_body(connection, f"https://models.example:{public.port}") == b"{}"
