"""Parse HTML into an element tree whose positions are those of the source.

tree-sitter finds the tags. Which element a tag opens or closes follows the HTML standard for void elements, optional
end tags and raw text, so that a page with missing end tags has the same tree here as in a browser. Nothing is repaired.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import tree_sitter_html
from tree_sitter import Language, Node, Tree

from fermata_client.html.syntax_tree import parse_syntax
from fermata_client.html.tags import (
    ENCLOSING_TAGS,
    FOREIGN_TAGS,
    HEAD_TAGS,
    IMPLIED_ENDS,
    ISOLATING_TAGS,
    PARAGRAPH_CLOSING_TAGS,
    PARAGRAPH_IMPLIED_END,
    RAW_TEXT_TAGS,
    REACHING_TAGS,
    ROOT_TAG,
    TAGS_TO_THE_END,
    VOID_TAGS,
    ImpliedEnd,
)
from fermata_client.html.template_preamble import TEMPLATE_CODE, UTF8_BOM, preamble_end
from fermata_client.html.tree import Attribute, Element, HtmlTree

_LANGUAGE = Language(tree_sitter_html.language())
TOO_MANY_UNCLOSED = "Too many tags of this HTML are not closed, so that it cannot be read. Close them first."
_TAG_NAME = re.compile(rb"</?[A-Za-z][^\s/>]*")
_END_TAG = re.compile(rb"</([A-Za-z][^\s/>]*+)[^>]*>")
_ATTRIBUTES = (
    rb"(?>"
    + TEMPLATE_CODE
    + rb"|[^<>\"']|\"(?>"
    + TEMPLATE_CODE
    + rb"|[^\"])*+\"|'(?>"
    + TEMPLATE_CODE
    + rb"|[^'])*+')*+"
)
_TEMPLATE_CODE = re.compile(TEMPLATE_CODE, re.DOTALL)
_RAW_TEXT_NAMES = tuple(name.encode() for name in sorted(RAW_TEXT_TAGS))
_RAW_TEXT_ENDS = {
    name: re.compile(rb"\Z" if name.decode() in TAGS_TO_THE_END else rb"</" + name + rb"[\s/>]", re.IGNORECASE)
    for name in _RAW_TEXT_NAMES
}
_MARKUP_OR_OPAQUE = re.compile(
    rb"<!--(?:-?>|.*?--!?>)"
    rb"|(?P<open><!--.*)"
    rb"|(?P<code>" + TEMPLATE_CODE + rb")"
    rb"|<(?P<name>" + b"|".join(_RAW_TEXT_NAMES) + rb")(?![^\s/>])" + _ATTRIBUTES + rb">"
    rb"|</?[A-Za-z]" + _ATTRIBUTES + rb">"
    rb"|(?P<stray><(?![A-Za-z/!?])|\x00)",
    re.DOTALL | re.IGNORECASE,
)
"""Comments and tags, which are markup, and named groups, which are not.

These are an unclosed comment, code of a server or a template engine, and a lone `<`. `name` is that of an element with
raw text, which follows.
"""
_DRAWING_TAG = re.compile(rb"<(?P<end>/?)(?:svg|math)(?=[\s/>])", re.IGNORECASE)
_OPAQUE_GROUPS = ("open", "code", "stray")


def parse_html(source: bytes, *, is_foreign: bool = False) -> HtmlTree:
    """Parse a page or a fragment. Any bytes have a tree, unless it takes too long.

    Args:
        is_foreign: the fragment is from an SVG or MathML element, where `<path/>` has no content.

    Raises:
        EditError: so many tags are not closed that parsing takes too long.
    """
    masked = _mask_opaque(source)
    return _TreeBuilder(source, is_foreign).build(
        _iter_tags(masked, parse_syntax(_LANGUAGE, masked, TOO_MANY_UNCLOSED))
    )


def _hide(code: re.Match[bytes]) -> bytes:
    """Return as many other bytes. They begin with a space where they would be a part of the tag's name."""
    first = b" " if _TAG_NAME.fullmatch(code.string, 0, code.start()) else b"x"
    return first + b"x" * (len(code.group()) - 1)


def _mask_opaque(source: bytes) -> bytes:
    """Replace everything that only looks like markup with as many other bytes, before tree-sitter sees it."""
    start = preamble_end(source)
    preamble = source[:start] if start <= len(UTF8_BOM) else source[:start].replace(b"<", b"x").replace(b">", b"x")
    return preamble + b"".join(_iter_masked(source, start))


def _iter_masked(source: bytes, position: int) -> Iterator[bytes]:
    """Yield the source from a position on, in pieces. The end of raw text is searched once a name (decision 0234).

    Raw text that nothing ends is the rest of the page, as in browsers. Within a drawing only what ends is masked:
    there `<style/>` has no content, and `<title>` has elements.
    """
    unclosed: set[bytes] = set()
    drawings = 0
    while match := _MARKUP_OR_OPAQUE.search(source, position):
        yield source[position : match.start()]
        is_opaque = any(match.group(name) for name in _OPAQUE_GROUPS)
        yield b"x" * len(match.group()) if is_opaque else _TEMPLATE_CODE.sub(_hide, match.group())
        position = match.end()
        drawings = max(0, drawings + _count_drawing(match.group()))
        name = (match["name"] or b"").lower()
        if name and name not in unclosed and not (drawings and match.group().endswith(b"/>")):
            raw_text_end = _RAW_TEXT_ENDS[name].search(source, position)
            if raw_text_end is None and drawings:
                unclosed.add(name)
            elif raw_text_end is None:
                yield b"x" * (len(source) - position)
                return
            else:
                yield b"x" * (raw_text_end.start() - position)
                position = raw_text_end.start()
    yield source[position:]


def _count_drawing(markup: bytes) -> int:
    """Return 1 for a tag that begins a drawing or a formula, -1 for one that ends it, and 0 for anything else."""
    tag = _DRAWING_TAG.match(markup)
    if tag is None:
        return 0
    return -1 if tag["end"] else int(not markup.endswith(b"/>"))


@dataclass(frozen=True, slots=True)
class _Tag:
    name: str
    start: int
    end: int
    start_tag: Node | None = None
    """None for an end tag."""


def _iter_tags(masked: bytes, syntax_tree: Tree) -> Iterator[_Tag]:
    """Yield every tag in document order, also within syntax errors."""
    pending = [syntax_tree.root_node]
    last_end, last_close = 0, masked.rfind(b">")
    while pending:
        node = pending.pop()
        if node.type in ("start_tag", "self_closing_tag"):
            name = next(child for child in node.children if child.type == "tag_name")
            if masked[node.end_byte - 1 : node.end_byte] == b">":  # otherwise the file ends within the tag
                yield _Tag(_lower_text(masked, name), node.start_byte, node.end_byte, node)
        elif node.type == "</":
            if node.start_byte < last_end or (node.start_byte > last_close):
                continue
            if end_tag := _END_TAG.match(masked, node.start_byte):
                last_end = end_tag.end()
                yield _Tag(end_tag[1].decode("utf-8", "replace").lower(), end_tag.start(), end_tag.end())
        elif node.type not in ("raw_text", "comment", "doctype", "text"):
            pending.extend(reversed(node.children))


def _lower_text(source: bytes, node: Node) -> str:
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace").lower()


class _TreeBuilder:
    def __init__(self, source: bytes, is_foreign: bool) -> None:
        self._source = source
        self._is_foreign = is_foreign
        content_start = preamble_end(source)
        self._root = Element(ROOT_TAG, 0, 0, content_start, len(source), len(source), has_end_tag=True)
        self._stack = [self._root]
        self._depths_by_tag: defaultdict[str, list[int]] = defaultdict(list)
        """Depths of each tag's open elements, so that the time to parse does not grow with the depth of a page."""
        self._elements: list[Element] = []
        self._stray_end_tags: list[tuple[int, int]] = []

    def build(self, tags: Iterable[_Tag]) -> HtmlTree:
        for tag in tags:
            if tag.start_tag is None:
                self._close_element(tag)
            else:
                self._open_element(tag, tag.start_tag)
        self._pop_to_depth(1, len(self._source))
        return HtmlTree(self._root, self._elements, self._stray_end_tags)

    def _open_element(self, tag: _Tag, node: Node) -> None:
        self._apply_implied_ends(tag.name, tag.start)
        parent = self._stack[-1]
        is_foreign = (
            self._is_foreign or tag.name in FOREIGN_TAGS or any(self._depths_by_tag[name] for name in FOREIGN_TAGS)
        )
        element = Element(
            tag=tag.name,
            start=tag.start,
            name_end=tag.start + 1 + len(tag.name.encode()),
            inner_start=tag.end,
            inner_end=tag.end,
            end=tag.end,
            parent=parent,
            attributes=tuple(self._attribute(child) for child in node.children if child.type == "attribute"),
            is_void=tag.name in VOID_TAGS or (is_foreign and node.type == "self_closing_tag"),
        )
        parent.children.append(element)
        self._elements.append(element)
        if not element.is_void:
            self._depths_by_tag[element.tag].append(len(self._stack))
            self._stack.append(element)

    def _close_element(self, tag: _Tag) -> None:
        if not self._depths_by_tag[tag.name] or not self._is_in_reach(tag.name):
            self._stray_end_tags.append((tag.start, tag.end))
            return
        self._pop_to_depth(self._depths_by_tag[tag.name][-1] + 1, tag.start)
        element = self._pop()
        element.inner_end = tag.start
        element.end = tag.end
        element.has_end_tag = True

    def _is_in_reach(self, tag: str) -> bool:
        """Return whether an end tag closes its innermost open element, which may be outside of a cell or template."""
        if tag == "noscript":  # a browser with scripting reads nothing else in it
            return True
        enclosing = ENCLOSING_TAGS if tag not in REACHING_TAGS else ISOLATING_TAGS - {tag}
        return self._depths_by_tag[tag][-1] > self._get_innermost_depth(enclosing)

    def _get_innermost_depth(self, tags: Iterable[str]) -> int:
        """Return the depth of the innermost open element of these tags; 0 if none is open."""
        return max((self._depths_by_tag[tag][-1] for tag in tags if self._depths_by_tag[tag]), default=0)

    def _apply_implied_ends(self, tag: str, position: int) -> None:
        if implied_end := IMPLIED_ENDS.get(tag):
            self._end_outermost(implied_end, position)
        if tag in PARAGRAPH_CLOSING_TAGS:
            self._end_outermost(PARAGRAPH_IMPLIED_END, position)
        if self._stack[-1].tag == "head" and tag not in HEAD_TAGS:
            self._pop_to_depth(len(self._stack) - 1, position)

    def _end_outermost(self, implied_end: ImpliedEnd, position: int) -> None:
        """End the outermost open element that is closed, inside of the innermost one of the scope."""
        depths_by_tag = self._depths_by_tag
        scope_depth = self._get_innermost_depth(implied_end.scope)
        depths = [
            tag_depths[bisect_right(tag_depths, scope_depth)]
            for tag in implied_end.closes
            if (tag_depths := depths_by_tag[tag]) and tag_depths[-1] > scope_depth
        ]
        if depths:
            self._pop_to_depth(min(depths), position)

    def _pop_to_depth(self, depth: int, position: int) -> None:
        """End the open elements deeper than `depth` where their content ends, before white space at `position`."""
        while len(self._stack) > depth:
            element = self._pop()
            content_end = element.children[-1].end if element.children else element.inner_start
            end = content_end + len(self._source[content_end:position].rstrip())
            element.inner_end = end
            element.end = end

    def _pop(self) -> Element:
        element = self._stack.pop()
        self._depths_by_tag[element.tag].pop()
        return element

    def _attribute(self, node: Node) -> Attribute:
        name, *value_nodes = node.children
        value = self._text(value_nodes[-1]) if len(value_nodes) > 1 else ""
        if value[:1] in ("'", '"'):
            value = value[1:-1]
        return Attribute(self._text(name).lower(), value, node.start_byte, node.end_byte)

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")
