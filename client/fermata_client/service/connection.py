"""Where the service is and who we are there: options first, then the environment, then what `make run` wrote down."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

DEFAULT_URL = "http://127.0.0.1:8787"
STATE_FILE = Path(".fermata") / "local.json"


class ConnectionNotConfiguredError(ValueError):
    """What is known is not enough to ask anything. The message says what to do about it."""


@dataclass(frozen=True)
class Connection:
    url: str
    token: str


def find_connection(url: str | None = None, token: str | None = None, start: Path | None = None) -> Connection:
    """A token found in the state file is used for the address found there and for no other."""
    local = read_local_connection(start or Path.cwd())
    url = _address(url or os.environ.get("FERMATA_URL") or (local.url if local else DEFAULT_URL))
    token = token or os.environ.get("FERMATA_TOKEN")
    if not token and local and local.url == url:
        token = local.token
    if not token:
        raise ConnectionNotConfiguredError(
            f"There is no token for {url}. Start the service with `make run`, which writes {STATE_FILE}, "
            "or give one with --token or FERMATA_TOKEN."
        )
    return Connection(url, _token(token))


def read_local_connection(start: Path) -> Connection | None:
    """From the nearest `.fermata/local.json`, here or in a folder above."""
    for folder in (start, *start.parents):
        file = folder / STATE_FILE
        if file.is_file():
            return _parse(file)
    return None


def _parse(file: Path) -> Connection:
    try:
        state = json.loads(file.read_text(encoding="utf-8"))
        return Connection(str(state["url"]).rstrip("/"), str(state["token"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConnectionNotConfiguredError(
            f"{file} cannot be read. Start the service again with `make run`."
        ) from error


def _address(text: str) -> str:
    url = text.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one or not url.isascii() or not url.isprintable() or " " in url:
        raise ConnectionNotConfiguredError(f"{text.strip()!r} is not an address. Write it like {DEFAULT_URL}.")
    return url


def _token(text: str) -> str:
    """Pasted and piped tokens bring a line end along."""
    token = text.strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConnectionNotConfiguredError("The token holds characters no token has. Give it alone, on one line.")
    return token
