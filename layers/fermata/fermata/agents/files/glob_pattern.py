"""Match paths against a glob: `*`, `?`, `[a-z]`, `{a,b}` and `**`, in time linear in the path.

A regular expression made of a glob with several stars tries every way to share a path among them.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar

from fermata.domain.value_dataclass import value_dataclass

MAX_ALTERNATIVES = 64
"""How many patterns the braces of a glob may stand for."""
MAX_GLOB_CHARS = 1_000
_ANY_SEGMENTS = "**"
_Unit = TypeVar("_Unit")
_Piece = TypeVar("_Piece")


class InvalidGlob(ValueError):
    """The pattern cannot be read."""


@value_dataclass(frozen=True)
class GlobPattern:
    """A glob. `matches` takes paths with `/` between their segments; a hidden name needs no dot in the pattern."""

    text: str

    def matches(self, path: str) -> bool:
        """Return whether the whole path matches."""
        segments = path.split("/")
        return any(
            _match(alternative, segments, _is_any_segments, _match_segment) for alternative in self._alternatives
        )

    @cached_property
    def _alternatives(self) -> list[list[str]]:
        if len(self.text) > MAX_GLOB_CHARS:
            raise InvalidGlob(f"The glob has more than {MAX_GLOB_CHARS} characters.")
        return [pattern.removeprefix("./").split("/") for pattern in _expand_braces(self.text)]


def _expand_braces(text: str) -> list[str]:
    """Return the patterns that a pattern with braces stands for. Braces without a comma are characters."""
    done: list[str] = []
    open_patterns = [text]
    while open_patterns:
        pattern = open_patterns.pop()
        braces = _find_braces(pattern)
        if braces is None:
            done.append(pattern)
        else:
            before, options, after = braces
            open_patterns += [before + option + after for option in options]
        if len(done) + len(open_patterns) > MAX_ALTERNATIVES:
            raise InvalidGlob(f"The braces of the glob stand for more than {MAX_ALTERNATIVES} patterns.")
    return done


def _find_braces(pattern: str) -> tuple[str, list[str], str] | None:
    """Return the text before the first innermost pair of braces with a comma, its options, and the text after it."""
    start = -1
    for index, char in enumerate(pattern):
        if char == "{":
            start = index
        elif char == "}" and start >= 0:
            options = pattern[start + 1 : index].split(",")
            if len(options) > 1:
                return pattern[:start], options, pattern[index + 1 :]
            start = -1
    return None


def _match(
    pattern: Sequence[_Piece],
    units: Sequence[_Unit],
    is_star: Callable[[_Piece], bool],
    matches_one: Callable[[_Piece, _Unit], bool],
) -> bool:
    """Match units against pieces of which some are stars. Only the last star that was met is ever tried again."""
    piece = unit = 0
    star, after_star = -1, 0
    while unit < len(units):
        if piece < len(pattern) and is_star(pattern[piece]):
            star, after_star = piece, unit
            piece += 1
        elif piece < len(pattern) and matches_one(pattern[piece], units[unit]):
            piece, unit = piece + 1, unit + 1
        elif star >= 0:
            after_star += 1
            piece, unit = star + 1, after_star
        else:
            return False
    return all(is_star(rest) for rest in pattern[piece:])


def _is_any_segments(segment: str) -> bool:
    return segment == _ANY_SEGMENTS


def _match_segment(pattern: str, name: str) -> bool:
    return _match(_split_pieces(pattern), name, _is_star_piece, _match_char)


def _is_star_piece(piece: str) -> bool:
    return piece == "*"


def _split_pieces(pattern: str) -> list[str]:
    """Split a segment into characters, stars and sets in brackets. A bracket that is not closed is a character."""
    pieces: list[str] = []
    index = 0
    while index < len(pattern):
        end = pattern.find("]", index + 2) if pattern[index] == "[" else -1
        if end > 0:
            pieces.append(pattern[index : end + 1])
            index = end + 1
        else:
            pieces.append(pattern[index])
            index += 1
    return pieces


def _match_char(piece: str, char: str) -> bool:
    if piece == "?":
        return True
    if len(piece) == 1:
        return piece == char
    body = piece[1:-1]
    is_negated = body[0] in "!^"
    return _is_in_set(body[1:] if is_negated else body, char) is not is_negated


def _is_in_set(body: str, char: str) -> bool:
    index = 0
    while index < len(body):
        if body[index + 1 : index + 2] == "-" and index + 2 < len(body):
            if body[index] <= char <= body[index + 2]:
                return True
            index += 3
        else:
            if body[index] == char:
                return True
            index += 1
    return False
