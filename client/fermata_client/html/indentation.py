"""Detect and apply a file's lines, indentation and newlines, so that an edit looks like its neighbours."""

import re
from collections import Counter
from itertools import pairwise

WHITESPACE = b" \t\r\n\f"

_DEFAULT_INDENT_UNIT = b"  "
_DEFAULT_STEP_COLUMNS = 2
_TAB = b"    "
_BLANKS = re.compile(rb"[ \t]*+")
_BLANK_LINE = re.compile(rb"[ \t]*+\r?\n")


def detect_newline(source: bytes) -> bytes:
    crlf_count = source.count(b"\r\n")
    return b"\r\n" if crlf_count * 2 > source.count(b"\n") else b"\n"


def detect_indent_unit(source: bytes) -> bytes:
    """Return one step of indentation: the most frequent step from a line to the next."""
    steps: Counter[bytes] = Counter()
    previous_indent = b""
    for line in source.splitlines():
        if not line.strip():
            continue
        indent = line[: len(line) - len(line.lstrip(b" \t"))]
        if len(indent) > len(previous_indent) and indent.startswith(previous_indent):
            steps[indent[len(previous_indent) :]] += 1
        previous_indent = indent
    return steps.most_common(1)[0][0] if steps else _DEFAULT_INDENT_UNIT


def line_start(source: bytes, position: int) -> int:
    return source.rfind(b"\n", 0, position) + 1


def is_at_line_start(source: bytes, position: int) -> bool:
    """Return whether the line has only white space before the position."""
    return not source[line_start(source, position) : position].strip(b" \t\xef\xbb\xbf")


def indent_at(source: bytes, position: int) -> bytes:
    """Return the white space at the start of the position's line."""
    line = source[line_start(source, position) : position]
    return line[: len(line) - len(line.lstrip(b" \t"))]


def indent_lines(text: bytes, indent: bytes) -> list[bytes]:
    """Return the lines of a text, each with `indent` in front. Blank lines become empty."""
    return [indent + line if line.strip() else b"" for line in text.splitlines()]


def widen_to_lines(source: bytes, start: int, end: int) -> tuple[int, int]:
    """Widen a range for removal, so that it leaves no empty line and no double space.

    It becomes whole lines where nothing else is on them, with one of the blank lines around them. Within a line it
    takes one of two spaces around it.
    """
    after = _end_of_blanks(source, end)
    if is_at_line_start(source, start) and (
        source[after : after + 2] == b"\r\n" or source[after : after + 1] in (b"\n", b"")
    ):
        return _with_blank_line(source, line_start(source, start), _after_newline(source, after))
    if source[start - 1 : start] == b" " and source[end : end + 1] == b" ":
        return start, end + 1
    return start, end


def _with_blank_line(source: bytes, start: int, end: int) -> tuple[int, int]:
    has_blank_before = start > 0 and not source[line_start(source, start - 1) : start].strip()
    blank_after = _BLANK_LINE.match(source, end)
    if has_blank_before and blank_after:
        return start, blank_after.end()
    return start, end


def _end_of_blanks(source: bytes, position: int) -> int:
    blanks = _BLANKS.match(source, position)
    return blanks.end() if blanks else position


def _after_newline(source: bytes, position: int) -> int:
    if source[position : position + 2] == b"\r\n":
        return position + 2
    return min(position + 1, len(source))


def reindent_text(
    text: bytes, *, indent: bytes, unit: bytes, newline: bytes, keep: frozenset[int] = frozenset()
) -> bytes:
    """Move a text to an indentation, with its own steps converted to the file's.

    The first line gets no indentation, because the caller places it.

    Args:
        indent: indentation of the text's outermost lines.
        unit: one step of indentation in the file.
        newline: line end of the file.
        keep: numbers of lines (from 0) that stay as they are.
    """
    lines = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").strip(b"\n").split(b"\n")
    base_columns = _base_columns(lines, keep)
    step_columns = _step_columns(lines, keep)
    moved = [lines[0].lstrip(b" \t")]
    for number, line in enumerate(lines[1:], 1):
        if number in keep or not line.strip():
            moved.append(line if number in keep else b"")
            continue
        level = max(0, round((_indent_columns(line) - base_columns) / step_columns))
        moved.append(indent + unit * level + line.lstrip(b" \t"))
    return newline.join(moved)


def _indent_columns(line: bytes) -> int:
    indent = line[: len(line) - len(line.lstrip(b" \t"))]
    return len(indent.replace(b"\t", _TAB))


def _base_columns(lines: list[bytes], keep: frozenset[int]) -> int:
    """Return the indentation of the text: its first line's, or its closing line's if the first one was trimmed."""
    first, last = _indent_columns(lines[0]), lines[-1]
    if first == 0 and len(lines) > 1 and len(lines) - 1 not in keep and last.lstrip().startswith((b"</", b"}")):
        return _indent_columns(last)
    return first


def _step_columns(lines: list[bytes], keep: frozenset[int]) -> int:
    columns = [_indent_columns(line) for number, line in enumerate(lines) if line.strip() and number not in keep]
    steps = Counter(after - before for before, after in pairwise(columns) if after > before)
    return steps.most_common(1)[0][0] if steps else _DEFAULT_STEP_COLUMNS
