"""The elements of an HTML page with their byte positions.

tree-sitter finds the tags; which element a tag opens or closes follows the HTML rules for void elements, optional end
tags and raw text, so that a page with missing end tags has the same tree here as in a browser. Nothing is repaired:
every position is one of the file.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import tree_sitter_html
from tree_sitter import Language, Node, Parser, Tree


def name_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


VOID_TAGS = name_set("area base br col embed hr img input link meta param source track wbr")
RAW_TEXT_TAGS = frozenset({"script", "style", "textarea", "title"})
HEAD_TAGS = name_set("base link meta noscript script style template title")
FOREIGN_TAGS = frozenset({"svg", "math"})
PARAGRAPH_CLOSING_TAGS = name_set(
    "address article aside blockquote details dialog div dl fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 "
    "header hgroup hr main menu nav ol p pre search section table ul"
)

IMPLIED_END_TAGS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "li": (frozenset({"li"}), frozenset({"ul", "ol", "menu"})),
    "dt": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "dd": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "tr": (frozenset({"tr", "td", "th"}), frozenset({"table"})),
    "td": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "th": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "thead": (frozenset({"thead", "tbody", "tfoot", "tr"}), frozenset({"table"})),
    "tbody": (frozenset({"thead", "tbody", "tfoot", "tr", "caption", "colgroup"}), frozenset({"table"})),
    "tfoot": (frozenset({"thead", "tbody", "tfoot", "tr"}), frozenset({"table"})),
    "option": (frozenset({"option"}), frozenset({"select", "datalist"})),
    "optgroup": (frozenset({"option", "optgroup"}), frozenset({"select"})),
    "body": (frozenset({"head"}), frozenset({"html"})),
}
"""A start tag closes the open elements named first, looked for no further out than the elements named second."""
PARAGRAPH_SCOPE_TAGS = frozenset({"button", "td", "th", "caption", "table", "template", "svg", "math"})

_OPAQUE = re.compile(
    rb"<!--(?:-?>|.*?--!?>)"
    rb"|(?P<open><!--.*)"
    rb"|<(?P<name>script|style|textarea|title)\b(?:[^>\"']|\"[^\"]*\"|'[^']*')*>(?P<raw>.*?)(?=</(?P=name)[\s/>])"
    rb"|</?[A-Za-z](?:[^<>\"']|\"[^\"]*\"|'[^']*')*>"
    rb"|(?P<stray><(?![A-Za-z/!?])|\x00)",
    re.DOTALL | re.IGNORECASE,
)
"""Comments and tags as they are; a comment that never ends, raw text and a `<` that opens nothing must not reach the
parser as markup."""


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    value: str
    start: int
    end: int


@dataclass(slots=True, eq=False)
class Element:
    """`start` to `end` is the whole element, `inner_start` to `inner_end` its content; without an end tag they meet."""

    tag: str
    start: int
    name_end: int
    inner_start: int
    inner_end: int
    end: int
    parent: "Element | None" = field(default=None, repr=False)
    attributes: tuple[Attribute, ...] = ()
    children: list["Element"] = field(default_factory=list, repr=False)
    has_end_tag: bool = False
    is_void: bool = False
    uid: str = ""

    def attribute_value(self, name: str) -> str | None:
        return next((a.value for a in self.attributes if a.name == name), None)

    @property
    def classes(self) -> list[str]:
        return (self.attribute_value("class") or "").split()

    def ancestors(self) -> Iterator["Element"]:
        above = self.parent
        while above is not None:
            yield above
            above = above.parent

    def is_within(self, tag: str) -> bool:
        """Whether some ancestor is a `tag`."""
        return any(above.tag == tag for above in self.ancestors())


@dataclass(frozen=True)
class HtmlTree:
    """`root` stands for the file itself; `elements` are in document order; `strays` are end tags that close nothing."""

    root: Element
    elements: list[Element]
    stray_end_tags: list[tuple[int, int]]

    def find_first(self, tag: str) -> Element | None:
        return next((element for element in self.elements if element.tag == tag), None)


ROOT_TAG = "#document"
UTF8_BOM = b"\xef\xbb\xbf"
_parser_language = Language(tree_sitter_html.language())


def parse_html(source: bytes) -> HtmlTree:
    masked = _masked(source)
    return _Builder(source).page(_tags(masked, Parser(_parser_language).parse(masked)))


def _content_start(source: bytes) -> int:
    """Behind the byte order mark and the doctype."""
    begin = len(UTF8_BOM) if source.startswith(UTF8_BOM) else 0
    doctype = re.compile(rb"\s*<!doctype[^>]*>", re.IGNORECASE).match(source, begin)
    return doctype.end() if doctype else begin


def _masked(source: bytes) -> bytes:
    """The same length, with everything blanked out that only looks like markup."""

    def blank(match: re.Match[bytes]) -> bytes:
        whole = match.group()
        for name in ("open", "raw", "stray"):
            if match.group(name):
                start, end = (position - match.start() for position in match.span(name))
                return whole[:start] + b"x" * (end - start) + whole[end:]
        return whole

    return _OPAQUE.sub(blank, source)


@dataclass(frozen=True, slots=True)
class _Tag:
    name: str
    start: int
    end: int
    node: Node | None = None
    """Of a start tag."""


_END_TAG = re.compile(rb"</([A-Za-z][^\s/>]*)[^>]*>")


def _tags(masked: bytes, tree: Tree) -> Iterator[_Tag]:
    """Every tag in document order, also those in places the grammar could not make sense of."""
    waiting = [tree.root_node]
    while waiting:
        node = waiting.pop()
        if node.type in ("start_tag", "self_closing_tag"):
            name = next(child for child in node.children if child.type == "tag_name")
            if masked[node.end_byte - 1 : node.end_byte] == b">":  # else the file ends in it
                yield _Tag(_decoded(masked, name), node.start_byte, node.end_byte, node)
        elif node.type == "</":
            if found := _END_TAG.match(masked, node.start_byte):
                yield _Tag(found[1].decode("utf-8", "replace").lower(), found.start(), found.end())
        elif node.type not in ("raw_text", "comment", "doctype", "text"):
            waiting.extend(reversed(node.children))


def _decoded(source: bytes, node: Node) -> str:
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace").lower()


class _Builder:
    def __init__(self, source: bytes) -> None:
        self.source = source
        begin = _content_start(source)
        self.root = Element(ROOT_TAG, 0, 0, begin, len(source), len(source), has_end_tag=True)
        self.stack = [self.root]
        self.depths: defaultdict[str, list[int]] = defaultdict(list)
        """Where each tag stands in the stack, so that a page of any depth is read in one go."""
        self.elements: list[Element] = []
        self.strays: list[tuple[int, int]] = []

    def page(self, tags: Iterator[_Tag]) -> HtmlTree:
        for tag in tags:
            if tag.node is None:
                self.close(tag)
            else:
                self.open(tag, tag.node)
        self.pop_to(1, len(self.source))
        return HtmlTree(self.root, self.elements, self.strays)

    def open(self, tag: _Tag, node: Node) -> None:
        self.end_implied(tag.name, tag.start)
        parent, foreign = self.stack[-1], tag.name in FOREIGN_TAGS or any(self.depths[name] for name in FOREIGN_TAGS)
        element = Element(
            tag=tag.name,
            start=tag.start,
            name_end=tag.start + 1 + len(tag.name.encode()),
            inner_start=tag.end,
            inner_end=tag.end,
            end=tag.end,
            parent=parent,
            attributes=self.attributes(node),
            is_void=tag.name in VOID_TAGS or (foreign and node.type == "self_closing_tag"),
        )
        parent.children.append(element)
        self.elements.append(element)
        if not element.is_void:
            self.depths[element.tag].append(len(self.stack))
            self.stack.append(element)

    def close(self, tag: _Tag) -> None:
        if not self.depths[tag.name]:
            self.strays.append((tag.start, tag.end))
            return
        self.pop_to(self.depths[tag.name][-1] + 1, tag.start)
        element = self.popped()
        element.inner_end, element.end, element.has_end_tag = tag.start, tag.end, True

    def end_implied(self, tag: str, at: int) -> None:
        closed, barrier = IMPLIED_END_TAGS.get(tag, (frozenset(), frozenset()))
        if closed:
            self.close_open(closed, barrier, at)
        if tag in PARAGRAPH_CLOSING_TAGS:
            self.close_open(frozenset({"p"}), PARAGRAPH_SCOPE_TAGS, at)
        if self.stack[-1].tag == "head" and tag not in HEAD_TAGS:
            self.pop_to(len(self.stack) - 1, at)

    def close_open(self, closed: frozenset[str], barrier: frozenset[str], at: int) -> None:
        """End the outermost open element of `closed` that no `barrier` stands in front of."""
        wall = max((self.depths[tag][-1] for tag in barrier if self.depths[tag]), default=0)
        behind = [
            depths[bisect_right(depths, wall)] for tag in closed if (depths := self.depths[tag]) and depths[-1] > wall
        ]
        if behind:
            self.pop_to(min(behind), at)

    def pop_to(self, depth: int, at: int) -> None:
        """End what is open deeper than `depth` where its content ends, before the white space in front of `at`."""
        while len(self.stack) > depth:
            element = self.popped()
            last = element.children[-1].end if element.children else element.inner_start
            end = last + len(self.source[last:at].rstrip())
            element.inner_end = element.end = end

    def popped(self) -> Element:
        element = self.stack.pop()
        self.depths[element.tag].pop()
        return element

    def attributes(self, node: Node) -> tuple[Attribute, ...]:
        return tuple(self.attribute(child) for child in node.children if child.type == "attribute")

    def attribute(self, node: Node) -> Attribute:
        name, *rest = node.children
        value = self.text(rest[-1]) if len(rest) > 1 else ""
        if value[:1] in ("'", '"'):
            value = value[1:-1]
        return Attribute(self.text(name).lower(), value, node.start_byte, node.end_byte)

    def text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")
