"""Restrict where requests may go: an address that a user typed reaches the public internet only (decision 0041).

An address is checked twice, which defeats DNS rebinding. `check_url` reads it as text, before it is stored and before
each request. `resolve_allowed_addresses` resolves its host and returns the addresses that may be connected to; the
caller connects to exactly these. Redirects are never followed.
"""

import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from fermata.domain.errors import InvalidRequest

HTTPS_PORT = 443
MAX_URL_CHARS = 2_000
_INTERNET = ipaddress.ip_network("2000::/3")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
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


class UrlGuard:
    """Decide which URLs and hosts may be reached.

    Args:
        trusted: The operator's own URLs, whose hosts may be anywhere.
        loopback: Whether this machine may be named too, in plain http and on any port.
    """

    def __init__(self, trusted: Iterable[str] = (), *, loopback: bool = False) -> None:
        self._trusted = {_parse_origin(url) for url in trusted}
        self._loopback = loopback

    def check_url(self, url: str) -> None:
        """Check the text of a URL.

        Raises:
            InvalidRequest: No request may be sent there; the message is for the user who typed the address.
        """
        scheme, host, port = _parse_origin(url)
        if (scheme, host, port) in self._trusted or (self._loopback and is_loopback_host(host)):
            return
        if scheme != "https":
            raise InvalidRequest(f"The address must begin with https://, not {scheme}://.")
        self._check_port(port)

    def check_url_and_host(self, url: str) -> None:
        """Check a base URL that is about to be stored: its text, and that its host has public addresses today.

        Raises:
            InvalidRequest: No request may be sent there, or there is no such host.
        """
        self.check_url(url)
        if "?" in url or "#" in url:
            raise InvalidRequest("The address must end with its path, without '?' or '#'.")
        _, host, port = _parse_origin(url)
        try:
            self.resolve_allowed_addresses(host, port)
        except OSError:
            raise InvalidRequest(f"There is no host {host}. Check how it is spelled.") from None

    def resolve_allowed_addresses(self, host: str, port: int) -> tuple[str, ...]:
        """Return the addresses to connect to instead of `host`; a trusted host is returned as it is.

        Raises:
            InvalidRequest: One of its addresses is not public, or the port is not allowed.
            OSError: The name cannot be resolved.
        """
        host = host.lower()
        if any((host, port) == trusted[1:] for trusted in self._trusted):
            return (host,)
        is_local = self._loopback and is_loopback_host(host)
        if not is_local:
            self._check_port(port)
        addresses = _resolve(host, port)
        for address in addresses:
            if not (ipaddress.ip_address(address).is_loopback if is_local else is_public_address(address)):
                raise InvalidRequest(f"{host} is at an address that is not public; it cannot be reached from here.")
        return addresses

    def _check_port(self, port: int) -> None:
        if port != HTTPS_PORT:
            raise InvalidRequest(f"The address must use port {HTTPS_PORT}, not {port}.")


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
        raise InvalidRequest("The address must be a plain URL: printable ASCII without spaces or backslashes.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidRequest("The address is not a URL. Write it like https://models.example.com/v1.") from None
    if parts.scheme not in ("https", "http") or not host:
        raise InvalidRequest("The address is not a URL. Write it like https://models.example.com/v1.")
    if "@" in parts.netloc:
        raise InvalidRequest("The address must not hold a user name or password. Send the key as 'apiKey'.")
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
