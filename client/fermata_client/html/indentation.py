"""Lines, indentation and newlines: how a file is laid out, so that an edit looks like its neighbours."""

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

WHITESPACE = b" \t\r\n\f"


@dataclass(frozen=True)
class Splice:
    """Bytes `start` to `end` become `text`. Everything else stays as it is."""

    start: int
    end: int
    text: bytes


def apply_splices(source: bytes, splices: list[Splice]) -> bytes:
    """`source` with every splice applied; they must not overlap."""
    pieces, at = [], 0
    for splice in sorted(splices, key=lambda splice: (splice.start, splice.end)):
        if splice.start < at:
            raise ValueError("Splices overlap.")
        pieces += [source[at : splice.start], splice.text]
        at = splice.end
    return b"".join([*pieces, source[at:]])


def detect_newline(source: bytes) -> bytes:
    windows = source.count(b"\r\n")
    return b"\r\n" if windows * 2 > source.count(b"\n") else b"\n"


def detect_indent_unit(source: bytes) -> bytes:
    """One step of indentation: the step between neighbouring lines that the file takes most often."""
    steps: Counter[bytes] = Counter()
    before = b""
    for line in source.splitlines():
        if not line.strip():
            continue
        indent = line[: len(line) - len(line.lstrip(b" \t"))]
        if len(indent) > len(before) and indent.startswith(before):
            steps[indent[len(before) :]] += 1
        before = indent
    return steps.most_common(1)[0][0] if steps else b"  "


def line_start(source: bytes, at: int) -> int:
    return source.rfind(b"\n", 0, at) + 1


def is_at_line_start(source: bytes, at: int) -> bool:
    """Whether only white space stands before `at` on its line."""
    return not source[line_start(source, at) : at].strip(b" \t\xef\xbb\xbf")


def indent_at(source: bytes, at: int) -> bytes:
    """The white space that begins the line of `at`."""
    begin = line_start(source, at)
    line = source[begin:at]
    return line[: len(line) - len(line.lstrip(b" \t"))]


def indent_lines(text: bytes, indent: bytes) -> list[bytes]:
    """The lines of a text, each moved by `indent`."""
    return [indent + line if line.strip() else b"" for line in text.splitlines()]


def widen_to_lines(source: bytes, start: int, end: int) -> tuple[int, int]:
    """`start` to `end`, widened to whole lines when nothing else stands on them, or by one of two spaces around it."""
    after = end + len(source[end:]) - len(source[end:].lstrip(b" \t"))
    if is_at_line_start(source, start) and (
        source[after : after + 2] == b"\r\n" or source[after : after + 1] in (b"\n", b"")
    ):
        return _with_blank_line(source, line_start(source, start), _after_newline(source, after))
    if source[start - 1 : start] == b" " and source[end : end + 1] == b" ":
        return start, end + 1
    return start, end


def _with_blank_line(source: bytes, start: int, end: int) -> tuple[int, int]:
    """Of the blank lines before and after, one is enough."""
    blank_before = re.search(rb"(?:^|\n)[ \t]*\r?\n\Z", source[:start])
    blank_after = re.match(rb"[ \t]*\r?\n", source[end:])
    if blank_before and blank_after:
        return start, end + blank_after.end()
    return start, end


def _after_newline(source: bytes, at: int) -> int:
    if source[at : at + 2] == b"\r\n":
        return at + 2
    return min(at + 1, len(source))


def reindent_text(
    text: bytes, *, indent: bytes, unit: bytes, newline: bytes, keep: frozenset[int] = frozenset()
) -> bytes:
    """`text` moved to `indent`, its own steps turned into the file's. Lines numbered in `keep` are left alone.

    The first line carries no indentation: it goes where the caller stands.
    """
    lines = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").strip(b"\n").split(b"\n")
    base, step = _base(lines, keep), _step(lines, keep)
    moved = [lines[0].lstrip(b" \t")]
    for number, line in enumerate(lines[1:], 1):
        if number in keep or not line.strip():
            moved.append(line if number in keep else b"")
            continue
        depth = _width(line) - base
        level = max(0, round(depth / step))
        moved.append(indent + unit * level + line.lstrip(b" \t"))
    return newline.join(moved)


def _width(line: bytes) -> int:
    lead = line[: len(line) - len(line.lstrip(b" \t"))]
    return len(lead.replace(b"\t", b"    "))


def _base(lines: list[bytes], keep: frozenset[int]) -> int:
    """The indentation the text stands at: its first line's, or its closing line's when the first was trimmed."""
    first, last = _width(lines[0]), lines[-1]
    if first == 0 and len(lines) > 1 and len(lines) - 1 not in keep and last.lstrip().startswith((b"</", b"}")):
        return _width(last)
    return first


def _step(lines: list[bytes], keep: frozenset[int]) -> int:
    widths = [_width(line) for number, line in enumerate(lines) if line.strip() and number not in keep]
    steps = Counter(b - a for a, b in pairwise(widths) if b > a)
    return steps.most_common(1)[0][0] if steps else 2
