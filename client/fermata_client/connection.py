"""Where the service is and who we are there: options first, then the environment, then what `make run` wrote down."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

DEFAULT_URL = "http://127.0.0.1:8787"
STATE_FILE = Path(".fermata") / "local.json"


class NoToken(ValueError):
    pass


@dataclass(frozen=True)
class Connection:
    url: str
    token: str


def find_connection(url: str | None = None, token: str | None = None, start: Path | None = None) -> Connection:
    """A token found in the state file is used for the address found there and for no other."""
    local = read_state(start or Path.cwd())
    url = (url or os.environ.get("FERMATA_URL") or (local.url if local else DEFAULT_URL)).rstrip("/")
    token = token or os.environ.get("FERMATA_TOKEN")
    if not token and local and local.url == url:
        token = local.token
    if not token:
        raise NoToken(
            f"There is no token for {url}. Start the service with `make run`, which writes {STATE_FILE}, "
            "or give one with --token or FERMATA_TOKEN."
        )
    return Connection(url, token)


def read_state(start: Path) -> Connection | None:
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
        raise NoToken(f"{file} cannot be read. Start the service again with `make run`.") from error
