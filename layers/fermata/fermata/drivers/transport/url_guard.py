"""Where a request may go. An address that a user typed reaches the open internet, and nothing behind our walls.

An address is looked at twice. `admit` reads it as text, before it is stored and before each request. `pin` resolves
its host and says which numbers may be connected to: whoever connects uses exactly these, so that a name which means
something else a moment later (DNS rebinding) gains nothing. Redirects are not followed by anybody.
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
_NOT_HOSTS = tuple(
    ipaddress.ip_network(block)
    for block in (
        "192.0.0.0/24",  # protocol assignments
        "192.88.99.0/24",  # relays to 6to4
        "2001::/23",  # protocol assignments, Teredo among them: tunnels to addresses that cannot be seen from here
        "2002::/16",  # 6to4, the same
        "3fff::/20",  # documentation
    )
)


class UrlGuard:
    """`trusted` are the operator's own addresses, which may lie anywhere. With `loopback`, this machine may be named
    too, in plain http and on any port.
    """

    def __init__(self, trusted: Iterable[str] = (), *, loopback: bool = False) -> None:
        self._trusted = {_origin(url) for url in trusted}
        self._loopback = loopback

    def check_url(self, url: str) -> None:
        """Raises Invalid, with a sentence for whoever typed the address, when no request may be sent there."""
        scheme, host, port = _origin(url)
        if (scheme, host, port) in self._trusted or (self._loopback and _is_this_machine(host)):
            return
        if scheme != "https":
            raise InvalidRequest(f"The address must begin with https://, not {scheme}://.")
        self._admit_port(port)

    def check_url_and_host(self, url: str) -> None:
        """For an address that is about to be stored: it must be admitted, and lead to a public host today."""
        self.check_url(url)
        if "?" in url or "#" in url:
            raise InvalidRequest("The address must end with its path, without '?' or '#'.")
        _, host, port = _origin(url)
        try:
            self.resolve_allowed_addresses(host, port)
        except OSError:
            raise InvalidRequest(f"There is no host {host}. Check how it is spelled.") from None

    def resolve_allowed_addresses(self, host: str, port: int) -> tuple[str, ...]:
        """What to connect to instead of `host`. Raises Invalid for a private address, OSError for an unknown name."""
        host = host.lower()
        if any((host, port) == trusted[1:] for trusted in self._trusted):
            return (host,)
        is_here = self._loopback and _is_this_machine(host)
        if not is_here:
            self._admit_port(port)
        addresses = _resolved(host, port)
        for address in addresses:
            if not (ipaddress.ip_address(address).is_loopback if is_here else is_public_address(address)):
                raise InvalidRequest(f"{host} is at an address that is not public; it cannot be reached from here.")
        return addresses

    def _admit_port(self, port: int) -> None:
        if port != HTTPS_PORT:
            raise InvalidRequest(f"The address must use port {HTTPS_PORT}, not {port}.")


def is_public_address(address: str) -> bool:
    """Whether it belongs to somebody on the internet, also where an IPv6 address carries an IPv4 one."""
    found: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):
        if found in _NAT64:
            found = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        elif found.ipv4_mapped:
            found = found.ipv4_mapped
        elif found not in _INTERNET:
            return False
    return found.is_global and not found.is_multicast and not any(found in block for block in _NOT_HOSTS)


def _origin(url: str) -> tuple[str, str, int]:
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


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _resolved(host: str, port: int) -> tuple[str, ...]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise OSError(f"{host!r} is not a host name") from error
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
