"""Format a unified diff of two texts, in colour where the terminal supports it."""

import difflib
import os
from collections.abc import Iterator
from typing import TextIO

RED, GREEN, CYAN, BOLD, RESET = "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[1m", "\x1b[0m"

NO_NEWLINE_MARK = "\x00"
"""Marks a last line without line end, so that it differs from the same line with one."""


def should_use_color(stream: TextIO, forced: bool | None = None) -> bool:
    """Decide by `forced`; if None by NO_COLOR and FORCE_COLOR; if they are not set by whether it is a terminal."""
    if forced is not None:
        return forced
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def unified_diff_lines(before: str, after: str, name: str, context: int = 3) -> Iterator[str]:
    """Yield the lines of the diff without their line ends; none if the texts are equal."""
    old_lines, new_lines = _split_lines(before), _split_lines(after)
    old_name, new_name = f"{name} (before)", f"{name} (after)"
    for line in difflib.unified_diff(old_lines, new_lines, old_name, new_name, n=context, lineterm=""):
        yield line.removesuffix(NO_NEWLINE_MARK)
        if line.endswith(NO_NEWLINE_MARK):
            yield "\\ No newline at end of file"


def _split_lines(text: str) -> list[str]:
    *lines, last = text.split("\n")
    return [*lines, last + NO_NEWLINE_MARK] if last else lines


def colorize_line(line: str) -> str:
    """Return a line of a diff in the colour of its kind."""
    if line.startswith(("---", "+++")):
        return BOLD + line + RESET
    color = {"+": GREEN, "-": RED, "@": CYAN}.get(line[:1])
    return color + line + RESET if color else line
