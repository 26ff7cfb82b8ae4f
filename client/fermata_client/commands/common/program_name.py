"""Find the words that start this program, for commands that its hints suggest."""

import os
import shlex
import shutil
import sys
from pathlib import Path

PROGRAM_NAME = "fermata"


def get_program() -> str:
    """Return `fermata` if the shell finds this program under its name, or else the path that it was started with."""
    path = sys.argv[0]
    if Path(path).name != PROGRAM_NAME:
        return PROGRAM_NAME  # started as a module or by a test
    found = shutil.which(PROGRAM_NAME)
    is_found = found is not None and os.path.realpath(found) == os.path.realpath(path)
    return PROGRAM_NAME if is_found else shlex.quote(path)


def suggest_command(command: str, *values: str, url: str | None = None, **options: str) -> str:
    """Return a command that can be pasted into a shell as it stands.

    Args:
        command: one or more words, as `credentials test`.
        values: its arguments; ids and file names may begin with a hyphen.
        url: the address that this command was given, which the suggested one needs as well.
        options: by name, without hyphens.
    """
    given: list[str] = []
    for name, value in (options | ({"url": url} if url else {})).items():
        given += [f"--{name}={value}"] if value.startswith("-") else [f"--{name}", value]
    needs_separator = any(value.startswith("-") for value in values)
    arguments = [*given, "--", *values] if needs_separator else [*values, *given]
    return f"{get_program()} {shlex.join([*command.split(), *arguments])}"
