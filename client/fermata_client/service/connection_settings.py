"""Find the service's address and the caller's token: options, then the environment, then what `make run` wrote."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

DEFAULT_URL = "http://127.0.0.1:8787"
STATE_FILE = Path(".fermata") / "local.json"


class ConnectionNotConfiguredError(ValueError):
    """There is no usable address or token. The message says what to do."""


@dataclass(frozen=True)
class Connection:
    url: str
    token: str


def find_connection(url: str | None = None, token: str | None = None, start: Path | None = None) -> Connection:
    """Find the address and token to use.

    The token of the state file is used for the address of that file only, so that it is sent to no other server.

    Args:
        start: the folder where the search for the state file begins; None is the working directory.

    Raises:
        ConnectionNotConfiguredError: there is no token for the address, or one of them is malformed.
    """
    local = read_local_connection(start or Path.cwd())
    url = _clean_url(url or os.environ.get("FERMATA_URL") or (local.url if local else DEFAULT_URL))
    token = token or os.environ.get("FERMATA_TOKEN")
    if not token and local and local.url == url:
        token = local.token
    if not token:
        raise ConnectionNotConfiguredError(
            f"There is no token for {url}. Start the service with `make run`, which writes {STATE_FILE}, "
            "or give one with --token or FERMATA_TOKEN."
        )
    return Connection(url, _clean_token(token))


def read_local_connection(start: Path) -> Connection | None:
    """Read the nearest `.fermata/local.json` in `start` or a folder above it; None if there is none."""
    for folder in (start, *start.parents):
        file = folder / STATE_FILE
        if file.is_file():
            return _read_state_file(file)
    return None


def _read_state_file(file: Path) -> Connection:
    try:
        state = json.loads(file.read_text(encoding="utf-8"))
        return Connection(str(state["url"]).rstrip("/"), str(state["token"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConnectionNotConfiguredError(
            f"{file} cannot be read. Start the service again with `make run`."
        ) from error


def _clean_url(text: str) -> str:
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
