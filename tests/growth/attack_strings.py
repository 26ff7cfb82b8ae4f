"""Derive strings on which a regular expression may backtrack, from the expression itself.

An attack is a beginning that leads into a repetition, a piece that is repeated, and an end that lets the match fail.
The pieces are single characters of every kind that the expression tells apart, pairs of them, and texts that match its
parts. This finds nested repetitions, neighbours that match the same, and searches that begin anew at every place.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

_FIRST_CHARACTERS = "a0 \n\t<-_.:,;/\"'`\\{}[]()=%#@!&xAZ\x00\xa0é"
_MANY_REPETITIONS = 50
"""A repetition with a lower limit takes a bounded time."""
_MAX_PAIRED = 9
"""Kinds of characters up to which all pairs are tried."""
_MAX_SAMPLES = 4


class Attack(NamedTuple):
    beginning: str
    piece: str
    end: str

    def build(self, size: int) -> str:
        """Return an attack of about `size` characters."""
        return self.beginning + self.piece * max(1, size // len(self.piece)) + self.end


def derive_attacks(pattern: "re.Pattern[Any]") -> list[Attack]:
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = parser.parse(text, pattern.flags & ~re.DEBUG & ~(0 if isinstance(pattern.pattern, str) else re.UNICODE))
    kinds = _select_kinds(tree, pattern.flags)
    sampler = _Sampler(pattern.flags)
    places = list(sampler.iter_places(tree, "", kinds))
    pieces = [*kinds, *itertools.chain.from_iterable(body for _, body in places)]
    if len(kinds) <= _MAX_PAIRED:
        pieces += map("".join, itertools.permutations(kinds, 2))
    parts = list(sampler.iter_parts(tree))
    ends = ["", "\x00", "\n"]
    attacks = [Attack("", piece, end) for piece in (*pieces, *parts) for end in ends[:2]]
    attacks += [Attack(beginning, piece, end) for beginning, body in places for piece in body for end in ends]
    return [attack for attack in dict.fromkeys(attacks) if attack.piece]


def _select_kinds(tree: Any, flags: int) -> list[str]:
    """Return one character for each set of characters between which the expression does not distinguish."""
    atoms = list(_iter_atoms(tree))
    literals = [chr(value) for op, value in atoms if op in (codes.LITERAL, codes.NOT_LITERAL)]
    matchers = [_compile_atom(atom, flags) for atom in atoms]
    kinds: dict[tuple[bool, ...], str] = {}
    for character in dict.fromkeys([*literals, *_FIRST_CHARACTERS]):
        kinds.setdefault(tuple(matcher(character) for matcher in matchers), character)
    return list(kinds.values())


def _iter_atoms(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Iterate over the literals and sets of a parsed expression."""
    for op, argument in tree:
        if op in (codes.LITERAL, codes.NOT_LITERAL, codes.IN, codes.ANY):
            yield op, argument
        else:
            for part in _list_subtrees(op, argument):
                yield from _iter_atoms(part)


def _list_subtrees(op: Any, argument: Any) -> list[Any]:
    if op is codes.BRANCH:
        return list(argument[1])
    if op in (codes.ASSERT, codes.ASSERT_NOT):
        return [argument[1]]
    if op is codes.ATOMIC_GROUP:
        return [argument]
    if op is codes.SUBPATTERN:
        return [argument[3]]
    if op in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        return [argument[2]]
    if op is codes.GROUPREF_EXISTS:
        return [part for part in argument[1:] if part is not None]
    return []


def _compile_atom(atom: tuple[Any, Any], flags: int) -> Any:
    return _compile_part([atom], flags)


def _compile_part(tree: Any, flags: int) -> Any:
    """Return a function that says whether a text matches a part, which may not refer to groups."""
    state = parser.State()
    state.flags = flags
    bare = parser.SubPattern(state, _without_groups(tree))
    try:
        compiled = re._compiler.compile(bare, flags & ~re.VERBOSE)  # type: ignore[attr-defined]
    except re.error:
        return lambda text: False
    return lambda text: compiled.fullmatch(text) is not None


def _without_groups(tree: Any) -> list[tuple[Any, Any]]:
    """Return the items of a part without numbers of groups."""
    items = []
    for op, argument in tree:
        if op is codes.SUBPATTERN:
            argument = (None, *argument[1:3], _rebuild(argument[3]))
        elif op in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            argument = (*argument[:2], _rebuild(argument[2]))
        elif op is codes.BRANCH:
            argument = (argument[0], [_rebuild(branch) for branch in argument[1]])
        elif op is codes.GROUPREF:
            op, argument = codes.NOT_LITERAL, 0
        items.append((op, argument))
    return items


def _rebuild(tree: Any) -> Any:
    return parser.SubPattern(tree.state, _without_groups(tree))


class _Sampler:
    """Builds texts that match parts of an expression."""

    def __init__(self, flags: int) -> None:
        self._flags = flags
        self._groups: dict[int, str] = {}

    def iter_places(self, tree: Any, before: str, kinds: list[str]) -> Iterator[tuple[str, list[str]]]:
        """Iterate over the repetitions: a text that leads to it, and texts and characters that match its body."""
        for op, argument in tree:
            if op in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT) and argument[1] > _MANY_REPETITIONS:
                matches = _compile_part(argument[2], self._flags)
                yield before, [*self.sample(argument[2]), *filter(matches, kinds)]
            for part in _list_subtrees(op, argument):
                yield from self.iter_places(part, before, kinds)
            before += self._sample_item(op, argument)[0]

    def iter_parts(self, tree: Any) -> Iterator[str]:
        """Iterate over texts that match the beginnings of sequences, up to each of their items."""
        before = ""
        for op, argument in tree:
            for part in _list_subtrees(op, argument):
                yield from self.iter_parts(part)
            for sample in self._sample_item(op, argument):
                yield before + sample
            before += self._sample_item(op, argument)[0]

    def sample(self, tree: Any) -> list[str]:
        samples = [""]
        for op, argument in tree:
            choices = self._sample_item(op, argument)
            samples = [
                samples[min(number, len(samples) - 1)] + choices[min(number, len(choices) - 1)]
                for number in range(max(len(samples), len(choices)))
            ][:_MAX_SAMPLES]
        return samples

    def _sample_item(self, op: Any, argument: Any) -> Sequence[str]:
        if op is codes.LITERAL:
            return [chr(argument)]
        if op in (codes.IN, codes.NOT_LITERAL, codes.ANY):
            matches = _compile_atom((op, argument), self._flags)
            return [character for character in _FIRST_CHARACTERS if matches(character)][:_MAX_SAMPLES] or [
                next(filter(matches, map(chr, range(0x110000))), "")
            ]
        if op in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            times = min(max(argument[0], 1), argument[1])
            return [sample * times for sample in self.sample(argument[2])]
        if op is codes.BRANCH:
            return [sample for branch in argument[1] for sample in self.sample(branch)[:1]]
        if op is codes.GROUPREF:
            return [self._groups.get(argument, "")]
        if op is codes.SUBPATTERN:
            samples = self.sample(argument[3])
            self._groups[argument[0]] = samples[0]
            return samples
        if op is codes.ATOMIC_GROUP:
            return self.sample(argument)
        return [""]
