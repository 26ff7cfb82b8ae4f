"""A unified diff, in colour where the terminal has any."""

import difflib
import os
from collections.abc import Iterator
from typing import TextIO

RED, GREEN, CYAN, BOLD, RESET = "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[1m", "\x1b[0m"


def should_use_color(stream: TextIO, forced: bool | None = None) -> bool:
    """What was asked for; else NO_COLOR and FORCE_COLOR; else whether a person is looking."""
    if forced is not None:
        return forced
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def unified_diff_lines(before: str, after: str, name: str, context: int = 3) -> Iterator[str]:
    """The lines of the diff without their line ends; none when nothing changed."""
    old, new = _lines(before), _lines(after)
    for line in difflib.unified_diff(old, new, f"{name} (before)", f"{name} (after)", n=context, lineterm=""):
        yield line.removesuffix(NO_NEWLINE_MARK)
        if line.endswith(NO_NEWLINE_MARK):
            yield "\\ No newline at end of file"


NO_NEWLINE_MARK = "\x00"
"""Marks a last line without line end, so that it differs from the same line with one."""


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    return [*lines, last + NO_NEWLINE_MARK] if last else lines


def colorize_line(line: str) -> str:
    if line.startswith(("---", "+++")):
        return BOLD + line + RESET
    paint = {"+": GREEN, "-": RED, "@": CYAN}.get(line[:1])
    return paint + line + RESET if paint else line
