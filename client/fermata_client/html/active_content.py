"""What of some HTML a browser would run, or be led away by.

The positions of an edit come from `tree`. Whether it brings code is decided here, by a parser that reads as browsers
do: after a slash, in a picture, in `<noscript>`, behind a comment that ends early. Read with and without scripting.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

from fermata_client.html.errors import EditError
from fermata_client.html.tree import FOREIGN_TAGS, ROOT_TAG, Element, HtmlTree, name_set

ADDRESS_ATTRIBUTES = name_set(
    "href src action formaction xlink:href data to from by values poster srcset ping cite background manifest codebase"
)
"""Attributes whose value may be an address, in SVG animations also for another attribute."""
IMAGE_TAGS_BY_ATTRIBUTE = {
    "src": name_set("img input source"),
    "srcset": name_set("img source"),
    "poster": name_set("video"),
    "href": name_set("image feimage"),
    "xlink:href": name_set("image feimage"),
}
"""Where a browser shows what an attribute names as a picture, so that nothing in it runs."""
ANIMATION_TAGS = name_set("set animate animatetransform animatemotion")
AMBIGUOUS_TEXT_TAGS = name_set("style xmp iframe noembed noframes plaintext")
"""Elements whose content is text for one browser and markup for an older one, depending on what is around them."""
META_REFRESH = "meta refresh"
_END = "the end"
MAX_NESTING_DEPTH = 5_000
"""Elements within each other: a browser-like parser looks through all of them at every tag."""


@dataclass(frozen=True, order=True)
class ActiveContent:
    """`what` is an attribute or an element, `on` the element that has it, `value` the code or the address."""

    name: str
    tag: str
    value: str

    @property
    def is_element(self) -> bool:
        return self.name in (self.tag, META_REFRESH)

    def __str__(self) -> str:
        return f"<{self.tag}>" if self.is_element else f"{self.name} of <{self.tag}>"


@dataclass(frozen=True)
class FragmentContext:
    """The element that some HTML is to stand in."""

    tag: str = "div"
    namespace: str = "html"

    @classmethod
    def from_element(cls, element: Element) -> "FragmentContext":
        lines = (element.tag, *(above.tag for above in element.ancestors()))
        around = next((tag for tag in lines if tag in _EDGES), "")
        tag = "body" if element.tag in ("html", ROOT_TAG) else element.tag
        return cls(tag, around if around in FOREIGN_TAGS else "html")


_EDGES = FOREIGN_TAGS | name_set("foreignobject")


def find_active_content(source: bytes) -> frozenset[ActiveContent]:
    """All of a page. Scripts are told apart by what is in them."""
    return frozenset(found for scripting in (True, False) for found in _live(_parsed(source, scripting)))


def find_active_content_in_fragment(markup: bytes, place: FragmentContext) -> frozenset[ActiveContent]:
    return frozenset(found for scripting in (True, False) for found in _live(_fragment(markup, place, scripting)))


def remove_active_content(markup: bytes, place: FragmentContext) -> bytes:
    """The HTML as a browser understands it, written anew without what would run."""
    parser = _fragment(markup, place, scripting=True)
    for node in list(_elements(parser)):
        if any(found.is_element for found in _of(node)):
            node.decompose()
            continue
        for name in {found.name for found in _of(node)}:
            del node.attrs[name]
    return (parser.html or "").encode("utf-8", "replace")


def count_elements(source: bytes) -> Counter[int]:
    """The elements of a page as a browser sees them, told apart by their attributes and by what they stand in."""
    paths: dict[int, int] = {}
    found: Counter[int] = Counter()
    for node in _elements(_parsed(source, scripting=True)):
        around = 0 if node.parent is None else paths.get(node.parent.mem_id, 0)
        paths[node.mem_id] = path = hash((around, node.tag))
        found[hash((path, *sorted(node.attributes.items(), key=str)))] += 1
    return found


def count_raw_texts(source: bytes) -> Counter[str]:
    """What stands in the scripts and style sheets of a page as a browser sees it."""
    nodes = _elements(_parsed(source, scripting=True))
    return Counter(node.text(deep=True) for node in nodes if node.tag in ("script", "style"))


def find_unfinished_tag(markup: bytes, place: FragmentContext | None = None) -> str:
    """The first tag that another one begins in, as `<scr` of `<scr<b>`; nothing when there is none. Of a whole page
    without a place.
    """
    for node in _elements(_fragment(markup, place, scripting=True) if place else _parsed(markup, scripting=True)):
        if any("<" in name for name in (str(node.tag), *node.attributes)):
            return f"<{str(node.tag).partition('<')[0]}"
    return ""


def is_open_ended(markup: bytes, place: FragmentContext) -> bool:
    """Whether what stands behind it would become a part of it: of a tag, a comment, a text, an element."""
    if place.tag in AMBIGUOUS_TEXT_TAGS:
        return False
    parser = _fragment(markup + b"<!--" + _END.encode() + b"-->", place, scripting=False)
    last = parser.root
    while last is not None and last.next is not None:
        last = last.next
    return last is None or not last.is_comment_node or last.comment_content != _END


def is_active_address(tag: str, name: str, value: str) -> bool:
    """Whether it is code, or a document that carries its own: only pictures may be given as data. White space and
    control characters within do not matter, an animation has several values.
    """
    if name not in ADDRESS_ATTRIBUTES:
        return False
    parts = value.split(";") if name in ("values", "from", "to", "by") else [value]
    if name == "srcset":
        parts += re.split(r"[\s,]+(?=[A-Za-z]+:)", value)
    return any(_is_live(tag, name, re.sub(r"[\x00-\x20]", "", part).lower()) for part in parts)


def check_nesting_depth(page: HtmlTree) -> None:
    depths: dict[int, int] = {}
    for element in page.elements:
        depths[id(element)] = depth = depths.get(id(element.parent), 0) + 1
        if depth > MAX_NESTING_DEPTH:
            raise EditError(
                f"The elements of this page lie more than {MAX_NESTING_DEPTH} deep in each other. Close them first."
            )


def is_active_element(tag: str, attributes: dict[str, str]) -> bool:
    """Whether the element as a whole runs, or leads all the others elsewhere."""
    refreshes = tag == "meta" and attributes.get("http-equiv", "").strip().lower() == "refresh"
    return tag in ("script", "base") or refreshes


def is_active_attribute(tag: str, name: str, value: str) -> bool:
    if name.startswith("on") or name == "srcdoc" or is_active_address(tag, name, value):
        return True
    return tag in ANIMATION_TAGS and name == "attributename" and value.strip().lower().startswith("on")


def _is_live(tag: str, name: str, bare: str) -> bool:
    if bare.startswith(("javascript:", "vbscript:")):
        return True
    return bare.startswith("data:") and not (
        bare.startswith("data:image/") and tag in IMAGE_TAGS_BY_ATTRIBUTE.get(name, ())
    )


def _parsed(source: bytes, scripting: bool) -> LexborHTMLParser:
    return LexborHTMLParser(source, scripting=scripting)


def _fragment(markup: bytes, place: FragmentContext, scripting: bool) -> LexborHTMLParser:
    def within(tag: str) -> LexborHTMLParser:
        return LexborHTMLParser(
            markup, is_fragment=True, fragment_tag=tag, fragment_namespace=place.namespace, scripting=scripting
        )

    try:
        return within(place.tag)
    except ValueError:  # an element of the page's own: nothing in HTML depends on it
        return within("div" if place.namespace == "html" else place.namespace)


def _elements(parser: LexborHTMLParser) -> Iterator[LexborNode]:
    """Also those in templates."""
    if parser.root is None:
        return
    yield from (node for node in parser.root.traverse() if node.is_element_node)
    waiting = parser.template_fragments()
    while waiting:
        fragment = waiting.pop()
        yield from (node for node in fragment.traverse() if node.is_element_node)
        waiting += fragment.template_fragments()


def _live(parser: LexborHTMLParser) -> Iterator[ActiveContent]:
    for node in _elements(parser):
        yield from _of(node)


def _of(node: LexborNode) -> Iterator[ActiveContent]:
    tag = str(node.tag).lower()
    attributes = {name.lower(): value or "" for name, value in node.attributes.items()}
    if is_active_element(tag, attributes):
        yield ActiveContent(META_REFRESH if tag == "meta" else tag, tag, _identity(tag, attributes, node))
    if (
        tag in AMBIGUOUS_TEXT_TAGS
        and "<" in (text := node.text(deep=True))
        and find_active_content_in_fragment(text.encode(), FragmentContext())
    ):
        yield ActiveContent(tag, tag, text)
    for name, value in node.attributes.items():
        if is_active_attribute(tag, name.lower(), value or ""):
            yield ActiveContent(name, tag, value or "")


def _identity(tag: str, attributes: dict[str, str], node: LexborNode) -> str:
    if tag != "script":
        return str(sorted(attributes.items()))
    address = attributes.get("src") or attributes.get("href") or attributes.get("xlink:href") or ""
    kind = attributes.get("type", "").lower()
    holds_data = "/" in kind and "script" not in kind
    return f"{'data' if holds_data else 'code'} {address}\n{node.text(deep=True)}"
