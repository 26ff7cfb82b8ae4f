"""Count what is drawn of an SVG in all: its parts, and again whatever they refer to (decision 0617).

A few hundred bytes may draw billions of shapes: groups that use groups, and patterns, masks, clip paths, filters or
markers in which others are used. What is counted is never less than what a browser draws, except for the tiles of a
pattern, which it draws once and repeats.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

MAX_DRAWN = 100_000
_TOO_MANY = MAX_DRAWN + 1
_MAX_CHAIN = 500
"""Of parts in parts and references, in calls of Python, which follows them as deep as browsers have to."""
_CALLS_OF_A_REFERENCE = 5
_NUMBERS_OF_A_SHAPE = 50
"""So many numbers of a path cost about as much as a shape."""
_TARGET = re.compile(r"""url\(\s*(?:"#([^"]*)|'#([^']*)|#([^"')\s]*))""", re.IGNORECASE)
_UNREAD_IN_ADDRESSES = str.maketrans("", "", "\t\r\n")
_NUMBER = re.compile(r"\d*\.?\d+|[zZ]")
"""What a path has for each of its points: numbers, or a letter that closes it."""
_UNDRAWN = frozenset({"linearGradient", "radialGradient", "stop"})
_PARTS_BY_ADDRESS = frozenset({"use", "pattern"})
"""What draws the part of a file that its `href` names."""
_SHOWN_TEXT = frozenset({"text", "tspan", "textPath"})
_INHERIT, _ONCE_OR_STYLE = "inherit", ("mask", "clip-path", "filter", "style")
_CONTEXT_PAINT = "context-"
_PLAIN_SELECTOR = re.compile(r"[\w\s.#*>+~:-]*", re.ASCII)
_CLASS_OR_ID = re.compile(r"[.#][A-Za-z_][\w-]*")
_ELEMENT = re.compile(r"[A-Za-z]+")


@dataclass(eq=False, frozen=True, slots=True)
class _References:
    """The ids that a part refers to.

    Attributes:
        once: What is drawn once for the part: its mask, clip path and filter.
        painted: What is drawn for each shape in it, because what is in it inherits it: fill, stroke, ends of lines.
        pointed: What is drawn at each point of each shape in it: markers.
    """

    once: tuple[str, ...] = ()
    painted: tuple[str, ...] = ()
    pointed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.once or self.painted or self.pointed)


class _DrawnSizes(NamedTuple):
    """How much each kind of references draws."""

    once: int
    painted: int
    pointed: int


_ENDLESS = _DrawnSizes(_TOO_MANY, _TOO_MANY, _TOO_MANY)


@dataclass(eq=False, slots=True)
class _Part:
    name: str
    selectors: tuple[str, ...]
    """By which styles mean it: its element, id and classes."""
    numbers: int
    used: str
    references: _References
    children: "list[_Part]" = field(default_factory=list)
    letters: int = 0

    @property
    def own_size(self) -> int:
        return 0 if self.name in _UNDRAWN else 1 + self.letters + self.numbers // _NUMBERS_OF_A_SHAPE


class SvgParts:
    """The parts of an SVG and its styles, as they are read."""

    def __init__(self) -> None:
        self._root: _Part | None = None
        self._open: list[_Part] = []
        self._by_id: dict[str, _Part] = {}
        self._styles: dict[str, list[_References]] = {}
        self._sizes: dict[_Part, int] = {}
        self._drawn_sizes: dict[_References, _DrawnSizes] = {}
        self._style_sizes: dict[str, _DrawnSizes] = {}
        self._is_all_inherited = False
        self._has_context_paint = False

    def open(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take the start of an element that is kept."""
        own_id, classes = attributes.get("id", ""), attributes.get("class", "").split()
        numbers = sum(1 for said in ("d", "points") for _ in _NUMBER.finditer(attributes.get(said, "")))
        used = attributes.get("href", "").removeprefix("#") if name in _PARTS_BY_ADDRESS else ""
        selectors = ("*", name, *([f"#{own_id}"] if own_id else []), *(f".{one}" for one in classes))
        self._is_all_inherited |= any(_INHERIT in attributes.get(said, "").lower() for said in _ONCE_OR_STYLE)
        self._has_context_paint |= any(_CONTEXT_PAINT in value.lower() for value in attributes.values())
        part = _Part(name, selectors, numbers, used, _read_references(_iter_declarations(attributes)))
        if self._open:
            self._open[-1].children.append(part)
        else:
            self._root = part
        self._open.append(part)
        if own_id:
            self._by_id.setdefault(own_id, part)  # of parts with one id, browsers take the first

    def add_text(self, text: str) -> None:
        """Take text of the element that was opened last. Of what is shown, each letter and blank is a shape."""
        if self._open[-1].name in _SHOWN_TEXT:
            self._open[-1].letters += len(text)

    def close(self) -> None:
        """Take the end of the element that was opened last."""
        self._open.pop()

    def add_style(self, css: str) -> None:
        """Take the rules of a style sheet. They hold for at least all that they mean."""
        self._is_all_inherited |= _INHERIT in css.lower()
        self._has_context_paint |= _CONTEXT_PAINT in css.lower()
        for rule in css.split("}"):
            before, _, body = rule.rpartition("{")
            selectors = before.rpartition("{")[2]
            if _TARGET.search(before) or not selectors:  # rules in rules: whatever they mean
                body, selectors = f"{before.replace('{', ';')};{body}", "*"
            references = _read_references(_split_declarations(body))
            if references:
                for selector in selectors.split(","):
                    self._styles.setdefault(_simplify_selector(selector), []).append(references)

    def count_drawn(self) -> int:
        """Return how much is drawn, up to one more than `MAX_DRAWN`, which also stands for a circle."""
        drawn = self._measure(self._root, 0) if self._root else 0
        if self._has_context_paint:  # the fill and the stroke of a shape may be those of its markers
            drawn *= 1 + 2 * max((one.painted for one in self._drawn_sizes.values()), default=0)
        return min(drawn, _TOO_MANY)

    def _measure(self, part: _Part, chain: int) -> int:
        """Return how much a part draws, with what it refers to."""
        if part in self._sizes:
            return self._sizes[part]
        self._sizes[part] = _TOO_MANY  # while it is being measured: what draws itself is drawn without end
        if chain > _MAX_CHAIN:
            return _TOO_MANY
        own = size = part.own_size
        for child in part.children:
            size += self._measure(child, chain + 1)
            if size > MAX_DRAWN:
                return _TOO_MANY
        size += self._measure_targets((part.used,), chain)
        size += self._count_painted(part, own, size, chain + _CALLS_OF_A_REFERENCE)
        self._sizes[part] = min(size, _TOO_MANY)
        return self._sizes[part]

    def _count_painted(self, part: _Part, own: int, size: int, chain: int) -> int:
        """Return how much is drawn for a part besides its shapes, of which so many are its own."""
        points, drawn = own + part.numbers + _NUMBERS_OF_A_SHAPE * (size - own), 0
        times_once = size if self._is_all_inherited else 1
        for found in self._iter_drawn_sizes(part, chain):
            drawn += found.once * times_once + found.painted * size + found.pointed * points
        return drawn

    def _iter_drawn_sizes(self, part: _Part, chain: int) -> Iterator[_DrawnSizes]:
        if part.references:
            yield self._measure_references(part.references, chain)
        for selector in part.selectors:
            if selector in self._styles:
                yield self._measure_style(selector, chain)

    def _measure_style(self, selector: str, chain: int) -> _DrawnSizes:
        """Return how much all rules of a selector draw for an element."""
        if selector not in self._style_sizes:
            self._style_sizes[selector] = _ENDLESS  # as in `_measure`
            found = [self._measure_references(one, chain) for one in self._styles[selector]]
            self._style_sizes[selector] = _DrawnSizes(*map(sum, zip(*found, strict=True)))
        return self._style_sizes[selector]

    def _measure_references(self, references: _References, chain: int) -> _DrawnSizes:
        if references not in self._drawn_sizes:
            self._drawn_sizes[references] = _ENDLESS  # as in `_measure`
            kinds = (references.once, references.painted, references.pointed)
            self._drawn_sizes[references] = _DrawnSizes(*(self._measure_targets(kind, chain) for kind in kinds))
        return self._drawn_sizes[references]

    def _measure_targets(self, targets: Iterable[str], chain: int) -> int:
        size = 0
        for target in targets:
            part = self._by_id.get(target)
            size += self._measure(part, chain + 2) if part else 0
        return min(size, _TOO_MANY)


def _iter_declarations(attributes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in attributes.items():
        if "(" in value:
            yield from _split_declarations(value) if name == "style" else ((name, value),)


def _split_declarations(css: str) -> Iterator[tuple[str, str]]:
    for declaration in css.split(";"):
        name, colon, value = declaration.partition(":")
        yield (name.strip().lower(), value) if colon else ("", declaration)


def _find_targets(value: str) -> Iterator[str]:
    """Yield the ids that the addresses of a value name, as browsers read them."""
    for found in _TARGET.finditer(value):
        name = found[found.lastindex or 0].translate(_UNREAD_IN_ADDRESSES).strip()
        yield from dict.fromkeys((name, unquote(name)))


def _read_references(declarations: Iterable[tuple[str, str]]) -> _References:
    once, painted, pointed = list[str](), list[str](), list[str]()
    for name, value in declarations:
        targets = _find_targets(value)
        if name in ("fill", "stroke", "marker-start", "marker-end"):
            painted += targets
        elif name in _ONCE_OR_STYLE:
            once += targets
        else:  # markers; and a variable, or what is no declaration, may stand for anything
            pointed += targets
    return _References(tuple(once), tuple(painted), tuple(pointed))


def _simplify_selector(selector: str) -> str:
    """Return a selector for at least what another one means: a class, id or element of its last part."""
    if not _PLAIN_SELECTOR.fullmatch(selector):  # it may exclude, compare attributes, or name what is around it
        return "*"
    last = selector.split()[-1] if selector.strip() else ""
    last = last.rpartition(">")[2].rpartition("+")[2].rpartition("~")[2]
    found = _CLASS_OR_ID.search(last.partition(":")[0].partition("[")[0])
    if found:
        return found[0]
    element = _ELEMENT.match(last)
    return element[0] if element else "*"
