"""Restrict where requests may go (SSRF): an address that a user typed reaches the public internet only (decision 0041).

An address is checked twice, which defeats DNS rebinding. `check_url` reads it as text, before it is stored and before
each request. `resolve_allowed_addresses` resolves its host and returns the addresses that may be connected to; the
caller connects to exactly these. Redirects are never followed.
"""

import ipaddress
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from fermata.domain.errors import AddressRefused, InvalidRequest

HTTPS_PORT = 443
MAX_URL_CHARS = 2_000
_NO_URL = "The address is not a URL. Write it like https://models.example.com/v1."
_INTERNET = ipaddress.ip_network("2000::/3")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_PRIVATE_SUFFIXES = (".local", ".localhost", ".internal", ".lan", ".home.arpa")
_RESERVED_NETWORKS = tuple(
    ipaddress.ip_network(network)
    for network in (
        "192.0.0.0/24",  # protocol assignments
        "192.88.99.0/24",  # relays to 6to4
        "2001::/23",  # protocol assignments; Teredo among them tunnels to addresses that cannot be checked
        "2002::/16",  # 6to4, the same
        "3fff::/20",  # documentation
    )
)


class UnknownHost(InvalidRequest):
    """No address is known of a host."""


class UrlGuard:
    """Decide which URLs and hosts may be reached.

    Args:
        trusted: The operator's own URLs, whose hosts may be anywhere.
        loopback: Whether this machine may be named too, in plain http and on any port.
        on_refusal: Called once with each refusal, before it is raised.
    """

    def __init__(
        self,
        trusted: Iterable[str] = (),
        *,
        loopback: bool = False,
        on_refusal: Callable[[AddressRefused], None] = lambda _refusal: None,
    ) -> None:
        self._on_refusal = on_refusal
        self._trusted = {_parse_origin(url) for url in trusted}
        self._loopback = loopback

    def check_url(self, url: str) -> None:
        """Check the text of a URL.

        Raises:
            AddressRefused: No request may be sent there; the message is for the user who typed the address.
        """
        with self._report_refusals():
            self._check_text(url)

    @contextmanager
    def _report_refusals(self) -> Iterator[None]:
        try:
            yield
        except AddressRefused as refusal:
            self._on_refusal(refusal)
            raise

    def _check_text(self, url: str) -> None:
        scheme, host, port = _parse_origin(url)
        if (scheme, host, port) in self._trusted or (self._loopback and is_loopback_host(host)):
            return
        if scheme != "https":
            message = f"The address must begin with https://, not {scheme}://."
            raise AddressRefused(message, reason="scheme", host=host)
        _check_port(host, port)

    def check_url_and_host(self, url: str, *, has_query: bool = False) -> None:
        """Check a URL that is about to be stored: its text, and that its host has public addresses today.

        Args:
            url: The URL.
            has_query: Whether it may have a query. A base URL has none, because paths are added to it.

        Raises:
            AddressRefused: No request may be sent there.
            UnknownHost: There is no such host.
            InvalidRequest: It has a query or a fragment.
        """
        self.check_url(url)
        if "#" in url or ("?" in url and not has_query):
            raise InvalidRequest("The address must end with its path, without '?' or '#'.")
        _, host, port = _parse_origin(url)
        try:
            self.resolve_allowed_addresses(host, port)
        except OSError:
            raise UnknownHost(f"There is no host {host}. Check how it is spelled.") from None

    def resolve_allowed_addresses(self, host: str, port: int) -> tuple[str, ...]:
        """Return the addresses to connect to instead of `host`; a trusted host is returned as it is.

        Raises:
            AddressRefused: One of its addresses is not public, or the port is not allowed.
            OSError: The name cannot be resolved.
        """
        with self._report_refusals():
            return self._resolve_allowed(host, port)

    def _resolve_allowed(self, host: str, port: int) -> tuple[str, ...]:
        host = host.lower()
        if any((host, port) == trusted[1:] for trusted in self._trusted):
            return (host,)
        is_local = self._loopback and is_loopback_host(host)
        if not is_local:
            _check_port(host, port)
        addresses = _resolve(host, port)
        for address in addresses:
            if not (ipaddress.ip_address(address).is_loopback if is_local else is_public_address(address)):
                message = f"{host} is at an address that is not public; it cannot be reached from here."
                raise AddressRefused(message, reason="not_public", host=host)
        return addresses


def find_unreachable_address(url: str) -> str:
    """Return why a deployed service cannot call a URL, as far as its text says; empty if it may. No name is looked up.

    Args:
        url: The URL.
    """
    try:
        UrlGuard().check_url(url)
    except AddressRefused as refusal:
        return refusal.message
    host = _parse_origin(url)[1].rstrip(".")
    try:
        is_public = is_public_address(host)
    except ValueError:
        is_public = "." in host and not host.endswith(_PRIVATE_SUFFIXES)
    return "" if is_public else f"{host} is not public."


def _check_port(host: str, port: int) -> None:
    if port != HTTPS_PORT:
        message = f"The address must use port {HTTPS_PORT}, not {port}."
        raise AddressRefused(message, reason="port", host=host)


def is_public_address(address: str) -> bool:
    """Return whether an address is on the public internet; an IPv6 address that holds an IPv4 one counts as that."""
    parsed: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed in _NAT64:
            parsed = ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)
        elif parsed.ipv4_mapped:
            parsed = parsed.ipv4_mapped
        elif parsed not in _INTERNET:
            return False
    is_reserved = any(parsed in network for network in _RESERVED_NETWORKS)
    return parsed.is_global and not parsed.is_multicast and not is_reserved


def _parse_origin(url: str) -> tuple[str, str, int]:
    if len(url) > MAX_URL_CHARS or not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        message = "The address must be a plain URL: printable ASCII without spaces or backslashes."
        raise AddressRefused(message, reason="malformed")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise AddressRefused(_NO_URL, reason="malformed") from None
    if parts.scheme not in ("https", "http") or not host:
        raise AddressRefused(_NO_URL, reason="malformed")
    if "@" in parts.netloc:
        message = "The address must not hold a user name or password. Send the key as 'apiKey'."
        raise AddressRefused(message, reason="user_name", host=host)
    return parts.scheme, host, port if port is not None else (HTTPS_PORT if parts.scheme == "https" else 80)


def is_loopback_host(host: str) -> bool:
    """Return whether a host is `localhost` or an address of this machine, without resolving it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _resolve(host: str, port: int) -> tuple[str, ...]:
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise OSError(f"{host!r} is not a host name") from error
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in entries))
