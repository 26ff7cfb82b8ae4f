"""Find the service's address and the caller's token: options, then the environment, then what was saved."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from fermata_client.service.connection_files import (
    ConnectionNotConfiguredError,
    describe_unreadable_file,
    iter_connection_files,
    read_connection_file,
)

DEFAULT_URL = "http://127.0.0.1:8787"


@dataclass(frozen=True)
class Connection:
    url: str
    token: str


def find_connection(url: str | None = None, token: str | None = None, start: Path | None = None) -> Connection:
    """Find the address and token to use.

    A saved token is used for the address that it was saved with only, so that it is sent to no other server.

    Args:
        start: the folder where the search for the state file begins; None is the working directory.

    Raises:
        ConnectionNotConfiguredError: there is no token for the address, one of them is malformed, or a saved
            file is not the user's own.
    """
    url = url or os.environ.get("FERMATA_URL")
    token = token or os.environ.get("FERMATA_TOKEN")
    saved = [] if url and token else list(_iter_saved_connections(start or Path.cwd()))
    url = clean_url(url or (saved[0].url if saved else DEFAULT_URL))
    token = token or next((connection.token for connection in saved if connection.url == url), None)
    if not token:
        raise ConnectionNotConfiguredError(
            f"There is no token for {url}. Start the service with `make run`, which saves one for you, save one with "
            f"`fermata connect {url}`, or give one with --token or FERMATA_TOKEN."
        )
    return Connection(url, _clean_token(token))


def _iter_saved_connections(start: Path) -> Iterator[Connection]:
    for file in iter_connection_files(start):
        state = read_connection_file(file)
        url, token = state.get("url"), state.get("token")
        if not (isinstance(url, str) and isinstance(token, str)):
            raise ConnectionNotConfiguredError(describe_unreadable_file(file))
        yield Connection(url.rstrip("/"), token)


def clean_url(text: str) -> str:
    """Return the address of a service without a slash at its end.

    Raises:
        ConnectionNotConfiguredError: it is none.
    """
    url = text.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        is_http_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_http_url = False
    if not is_http_url or not url.isascii() or not url.isprintable() or " " in url:
        raise ConnectionNotConfiguredError(f"{text.strip()!r} is not an address. Write it like {DEFAULT_URL}.")
    return url


def _clean_token(text: str) -> str:
    """Check a token, without the line end that pasted and piped tokens have."""
    token = text.strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConnectionNotConfiguredError(
            "The token has characters that no token contains. Give the token alone, on one line."
        )
    return token
