"""Prepare a piece of markup for its insertion into a page."""

import re
from dataclasses import dataclass

from fermata_client.html.indentation import indent_at
from fermata_client.html.parser import parse_html
from fermata_client.html.splices import Splice, apply_splices
from fermata_client.html.tags import name_set
from fermata_client.html.tree import Element, HtmlTree

INLINE_TAGS = name_set(
    "a abbr b bdi bdo br button cite code data del dfn em i img input ins kbd label mark meter output picture progress "
    "q ruby s samp select small span strong sub sup svg textarea time u var wbr"
)
PREFORMATTED_TAGS = name_set("pre textarea listing xmp plaintext script")

_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_PRE_STYLE = re.compile(r"white-space(?:-collapse)?\s*:\s*(?:pre|break-spaces|preserve)")


@dataclass(frozen=True)
class HtmlFragment:
    markup: bytes
    """Every element in it is closed. Its line ends are LF, unless it is from the page."""
    css: str
    """Content of the style elements that were taken out of the markup."""
    is_inline: bool
    """All its top-level elements flow within a line."""
    element_count: int
    verbatim_lines: frozenset[int]
    """Numbers of the markup's lines (from 0) that begin in preformatted text or in an attribute, and stay."""
    note: str = ""
    """What was left out, as a sentence for the model."""
    is_from_page: bool = False
    """The markup comes from the page itself. Its lines have no indentation but their steps within the fragment."""
    gap: bytes = b""
    """Line ends between the fragment and its siblings; empty to detect them from the siblings."""
    tags: tuple[str, ...] = ()
    """Tags of its top-level elements."""
    all_tags: frozenset[str] = frozenset()
    loose_text: str = ""
    """Text outside of all elements."""


def fragment_from_markup(
    markup: bytes,
    *,
    css: str = "",
    is_from_page: bool = False,
    gap: bytes = b"",
    preformatted: frozenset[str] = frozenset(),
    is_foreign: bool = False,
) -> HtmlFragment:
    tree = parse_html(markup, is_foreign=is_foreign)
    return HtmlFragment(
        markup,
        css,
        is_inline=has_only_inline_elements(tree),
        element_count=len(tree.elements),
        verbatim_lines=_verbatim_lines(markup, tree, preformatted),
        is_from_page=is_from_page,
        gap=gap,
        tags=tuple(element.tag for element in tree.root.children),
        all_tags=frozenset(element.tag for element in tree.elements),
        loose_text=_loose_text(markup, tree),
    )


def _loose_text(markup: bytes, tree: HtmlTree) -> str:
    without_elements = apply_splices(markup, [Splice(child.start, child.end, b"") for child in tree.root.children])
    return _COMMENT.sub(b"", without_elements).decode("utf-8", "replace").strip()


def fragment_from_page(
    source: bytes,
    start: int,
    end: int,
    gap: bytes,
    preformatted: frozenset[str] = frozenset(),
    *,
    is_foreign: bool = False,
) -> HtmlFragment:
    """Take a piece of the page, to insert it elsewhere in the page. Only the indentation of its lines is removed.

    Args:
        preformatted: classes (`.code`) and tags of elements whose white space is shown.
        is_foreign: the piece is within an SVG or MathML element.
    """
    indent = indent_at(source, start)
    piece = source[start:end]
    verbatim_lines = _verbatim_lines(piece, parse_html(piece, is_foreign=is_foreign), preformatted)
    lines = enumerate(piece.split(b"\n"))
    shifted = [line if number in verbatim_lines else line.removeprefix(indent) for number, line in lines]
    return fragment_from_markup(
        close_elements(b"\n".join(shifted), is_foreign=is_foreign),
        is_from_page=True,
        gap=gap,
        preformatted=preformatted,
        is_foreign=is_foreign,
    )


def close_elements(markup: bytes, *, is_foreign: bool = False) -> bytes:
    """Add the end tags that are missing, so that nothing after the markup becomes part of its elements."""
    end_tags_by_position: dict[int, bytes] = {}
    for element in parse_html(
        markup, is_foreign=is_foreign
    ).elements:  # outer elements come first, and their end tags last
        if not (element.has_end_tag or element.is_void):
            end_tag = b"</" + element.tag.encode() + b">"
            end_tags_by_position[element.end] = end_tag + end_tags_by_position.get(element.end, b"")
    splices = [Splice(position, position, end_tags) for position, end_tags in end_tags_by_position.items()]
    return apply_splices(markup, splices)


def has_only_inline_elements(tree: HtmlTree) -> bool:
    return all(element.tag in INLINE_TAGS for element in tree.root.children)


def is_preformatted(element: Element) -> bool:
    """Return whether white space in the element is shown, or is part of a script."""
    style = (element.attribute_value("style") or "").lower()
    is_pre = element.tag in PREFORMATTED_TAGS or _PRE_STYLE.search(style) is not None
    return is_pre or element.attribute_value("xml:space") == "preserve"


def is_within_preformatted(element: Element) -> bool:
    return is_preformatted(element) or any(is_preformatted(ancestor) for ancestor in element.ancestors())


def _verbatim_lines(markup: bytes, tree: HtmlTree, preformatted: frozenset[str]) -> frozenset[int]:
    ranges = [
        (element.inner_start, element.inner_end)
        for element in tree.elements
        if is_preformatted(element) or not preformatted.isdisjoint((element.tag, *(f".{c}" for c in element.classes)))
    ]
    ranges += [(own.start, own.end) for element in tree.elements for own in element.attributes]
    numbers: set[int] = set()
    for start, end in ranges:
        line_count = markup.count(b"\n", start, end)
        if line_count:
            first = markup.count(b"\n", 0, start) + 1
            numbers.update(range(first, first + line_count))
    return frozenset(numbers)
