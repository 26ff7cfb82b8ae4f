"""Tell requests of web pages from those of programs, by what every browser sends (decision 0231)."""

from collections.abc import Iterable, Mapping

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
"""Names that no name server can give to this machine."""
PAGE_REFUSED_TEXT = "The local cloud answers programs on this machine, not web pages."
HOST_REFUSED_TEXT = "This server is asked under a name that is not its own."


def find_page_problem(headers: Mapping[str, str], port: int) -> str | None:
    """Say why a server that no browser needs refuses a request; None if it comes from a program of this machine.

    Args:
        headers: their names in lower case.
        port: where the server listens. A page's own name for this machine leads to the port, but is another host.
    """
    if "origin" in headers or "sec-fetch-site" in headers:
        return PAGE_REFUSED_TEXT
    name, _, given_port = headers.get("host", "").lower().rpartition(":")
    return None if name in LOOPBACK_NAMES and given_port == str(port) else HOST_REFUSED_TEXT


def decode_headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Decode the headers of an ASGI scope. Values of a repeated one are joined, as a signature covers them."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in pairs:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers
