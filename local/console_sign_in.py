"""Make one-time links that sign a browser in to the console: `python -m local.console_sign_in` prints one.

A link carries a random code in its fragment, which browsers send to no server. The code is a file of the state
directory until it is used: deleting the file is what makes it valid once, also across a restart of the service.
The same holds for sessions (decision 0277).
"""

import hashlib
import secrets
import sys
import time
from pathlib import Path
from urllib.parse import quote

from local.lock_or_delete_state import STATE_DIRECTORY

CODE_SECONDS = 600
SESSION_SECONDS = 7 * 86_400
_FOLDERS = {"codes": CODE_SECONDS, "sessions": SESSION_SECONDS}
MAX_SECRET_CHARACTERS = 64


class ConsoleSecrets:
    """The codes and the sessions of a service. Only their hashes are stored."""

    def __init__(self, directory: Path) -> None:
        """
        Args:
            directory: The state directory of the service.
        """
        self._directory = directory / "console"

    def issue_code(self) -> str:
        """Make a code that signs one browser in, within `CODE_SECONDS`."""
        return self._create("codes")

    def open_session(self, code: str) -> str | None:
        """Use a code up, and return the secret of a new session; None if the code was used, has expired or is none."""
        if not self._is_valid("codes", code) or not self._delete("codes", code):
            return None
        return self._create("sessions")

    def has_session(self, session: str) -> bool:
        return self._is_valid("sessions", session)

    def close_session(self, session: str) -> None:
        self._delete("sessions", session)

    def _create(self, kind: str) -> str:
        folder = self._directory / kind
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._delete_expired(folder, _FOLDERS[kind])
        secret = secrets.token_urlsafe(32)
        (folder / _hash_secret(secret)).touch(mode=0o600)
        return secret

    def _is_valid(self, kind: str, secret: str) -> bool:
        if len(secret) > MAX_SECRET_CHARACTERS:
            return False
        try:
            created_at = (self._directory / kind / _hash_secret(secret)).stat().st_mtime
        except FileNotFoundError:
            return False
        return time.time() - created_at < _FOLDERS[kind]

    def _delete(self, kind: str, secret: str) -> bool:
        """Return whether this call has deleted it: of two at the same time only one has."""
        try:
            (self._directory / kind / _hash_secret(secret)).unlink()
        except FileNotFoundError:
            return False
        return True

    def _delete_expired(self, folder: Path, seconds: int) -> None:
        for file in folder.iterdir():
            if time.time() - file.stat().st_mtime >= seconds:
                file.unlink(missing_ok=True)


def make_sign_in_link(url: str, directory: Path, page: str = "") -> str:
    """Return a link that signs one browser in, once.

    Args:
        url: Of the service.
        directory: Its state directory.
        page: The page of the console that is opened, such as `studio/bakery/main`; empty for the first one.
    """
    to = f"&open={quote(page)}" if page else ""
    return f"{url}/console/#code={ConsoleSecrets(directory).issue_code()}{to}"


def main(state_directory: Path = STATE_DIRECTORY) -> None:
    from fermata_client.service.connection_files import (  # the front door has no use for it
        LOCAL_FILE_NAME,
        read_connection_file,
    )

    connection_file = state_directory / LOCAL_FILE_NAME
    if not connection_file.exists():
        sys.exit("No service runs in this folder. Start it with `make run`, which prints a link too.")
    print(make_sign_in_link(str(read_connection_file(connection_file)["url"]), state_directory))


def _hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


if __name__ == "__main__":
    main()
