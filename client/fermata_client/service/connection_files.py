"""Read and write the files that hold the address and token of a service: of a project, and of the user."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from fermata_client.service.file_trust import find_trust_problem
from fermata_client.service.json_types import JsonObject

PROJECT_CONNECTION_FILE = Path(".fermata") / "local.json"
"""Written by `make run` in its folder."""
CONNECTED_FILE_NAME = "connection.json"
"""Written by `fermata connect` in the user's own state folder."""
LOCAL_FILE_NAME = "local.json"
"""Written by `make run` there."""


class ConnectionNotConfiguredError(ValueError):
    """There is no usable address or token. The message says what to do."""


def user_connection_file(name: str) -> Path:
    """Return a file of the user's own state folder, which is found from every working directory."""
    if sys.platform == "win32":
        base, usual = os.environ.get("LOCALAPPDATA"), Path.home() / "AppData" / "Local"
    else:
        base, usual = os.environ.get("XDG_STATE_HOME"), Path.home() / ".local" / "state"
    # The specification says to ignore a relative one: it would name another folder in each working directory.
    return (Path(base) if base and Path(base).is_absolute() else usual) / "fermata" / name


def iter_connection_files(start: Path) -> Iterator[Path]:
    """Yield the existing files, the best first: the nearest one in `start` or above, then the user's own ones."""
    project_files = (folder / PROJECT_CONNECTION_FILE for folder in (start, *start.parents))
    nearest = next(filter(_is_file, project_files), None)
    if nearest is not None:
        yield nearest
    own_files = (user_connection_file(name) for name in (CONNECTED_FILE_NAME, LOCAL_FILE_NAME))
    yield from filter(_is_file, own_files)


def _is_file(path: Path) -> bool:
    """Return whether there is a file. One in a folder that the user may not enter stops nobody."""
    try:
        return path.is_file()
    except OSError:
        return False


def read_connection_file(file: Path) -> JsonObject:
    """Read a file, if it is the user's own and nobody else can write to it or replace it (decision 0232).

    Raises:
        ConnectionNotConfiguredError: it is not, or it holds no JSON object.
    """
    try:
        with file.open("rb") as opened:
            if problem := find_trust_problem(file, os.fstat(opened.fileno())):
                raise ConnectionNotConfiguredError(f"{file} is not used, because {problem}")
            state = json.loads(opened.read())
    except (OSError, ValueError) as error:
        if isinstance(error, ConnectionNotConfiguredError):
            raise
        raise ConnectionNotConfiguredError(describe_unreadable_file(file)) from error
    if not isinstance(state, dict):
        raise ConnectionNotConfiguredError(describe_unreadable_file(file))
    return state


def write_connection_file(file: Path, state: JsonObject) -> None:
    """Write a file that only its owner can read."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)  # of a killed process with the same number
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(json.dumps(state))
    temporary.replace(file)


def delete_connection_file(file: Path, token: str) -> None:
    """Delete a file that holds this token. One that another service has written since is kept."""
    try:
        if json.loads(file.read_text(encoding="utf-8")).get("token") == token:
            file.unlink()
    except (OSError, ValueError, AttributeError):
        return  # there is no file, or none of ours


def describe_unreadable_file(file: Path) -> str:
    """Return a sentence with what writes the file anew."""
    again = "Connect again with `fermata connect`" if file.name == CONNECTED_FILE_NAME else "Run `make run` again"
    return f"{file} cannot be read. {again}."
