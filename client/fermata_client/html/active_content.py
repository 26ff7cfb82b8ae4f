"""Find and remove active content: what a browser would run, and what redirects or loads documents (decision 0124).

Markup is read with and without scripting, because code may hide from either reading.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

from fermata_client.html.browser_parser import (
    AMBIGUOUS_TEXT_TAGS,
    FragmentContext,
    iter_elements,
    parse_fragment,
    parse_page,
)
from fermata_client.html.edit_error import EditError
from fermata_client.html.tags import name_set
from fermata_client.html.tree import HtmlTree

ADDRESS_ATTRIBUTES = name_set(
    "href src action formaction xlink:href data to from by values poster srcset ping cite background manifest codebase"
)
"""Attributes whose value may be an address; in SVG animations, the value for another attribute."""
IMAGE_TAGS_BY_ATTRIBUTE = {
    "src": name_set("img input source"),
    "srcset": name_set("img source"),
    "poster": name_set("video"),
    "href": name_set("image feimage"),
    "xlink:href": name_set("image feimage"),
}
"""Elements that show an attribute's address as an image, so that nothing in it runs."""
ANIMATION_TAGS = name_set("set animate animatetransform animatemotion")
MULTIPLE_VALUE_ATTRIBUTES = ("values", "from", "to", "by")
META_REFRESH = "meta refresh"
MAX_NESTING_DEPTH = 5_000
"""Depth of elements within each other: parsing as a browser takes time for each of them at every tag."""


@dataclass(frozen=True, order=True)
class ActiveContent:
    """An element that is active, or an active attribute of an element."""

    name: str
    """Name of the attribute; for an element its tag, or `META_REFRESH`."""
    tag: str
    value: str
    """The code or address; for an element what distinguishes it from others."""

    @property
    def is_element(self) -> bool:
        return self.name in (self.tag, META_REFRESH)

    def __str__(self) -> str:
        return f"<{self.tag}>" if self.is_element else f"{self.name} of <{self.tag}>"


def find_active_content(source: bytes) -> frozenset[ActiveContent]:
    """Return the active content of a page."""
    parsers = (parse_page(source, scripting=scripting) for scripting in (True, False))
    return frozenset(active for parser in parsers for active in _iter_active(parser))


def find_active_content_in_fragment(markup: bytes, context: FragmentContext) -> frozenset[ActiveContent]:
    parsers = (parse_fragment(markup, context, scripting=scripting) for scripting in (True, False))
    return frozenset(active for parser in parsers for active in _iter_active(parser))


def remove_active_content(markup: bytes, context: FragmentContext) -> bytes:
    """Serialize a fragment as a browser understands it, without its active content."""
    parser = parse_fragment(markup, context, scripting=True)
    for node in list(iter_elements(parser)):
        active = list(_active_parts(node))
        if any(part.is_element for part in active):
            node.decompose()
            continue
        for name in {part.name for part in active}:
            del node.attrs[name]
    return (parser.html or "").encode("utf-8", "replace")


def is_active_element(tag: str, attributes: dict[str, str]) -> bool:
    """Return whether the element as a whole runs, redirects, or moves the addresses of others."""
    is_refresh = tag == "meta" and attributes.get("http-equiv", "").strip().lower() == "refresh"
    return tag in ("script", "base") or is_refresh


def is_active_attribute(tag: str, name: str, value: str) -> bool:
    if name.startswith("on") or name == "srcdoc" or is_active_address(tag, name, value):
        return True
    return tag in ANIMATION_TAGS and name == "attributename" and value.strip().lower().startswith("on")


def is_active_address(tag: str, name: str, value: str) -> bool:
    """Return whether an attribute's value is code, or a `data:` document that is not shown as an image.

    Browsers ignore white space and control characters in it. Attributes of animations hold several values.
    """
    if name not in ADDRESS_ATTRIBUTES:
        return False
    addresses = value.split(";") if name in MULTIPLE_VALUE_ATTRIBUTES else [value]
    if name == "srcset":
        addresses += re.split(r"(?<![\s,])[\s,]++(?=[A-Za-z]+:)", value)
    return any(_runs_code(tag, name, re.sub(r"[\x00-\x20]", "", address).lower()) for address in addresses)


def _runs_code(tag: str, name: str, address: str) -> bool:
    if address.startswith(("javascript:", "vbscript:")):
        return True
    is_image = address.startswith("data:image/") and tag in IMAGE_TAGS_BY_ATTRIBUTE.get(name, ())
    return address.startswith("data:") and not is_image


def check_nesting_depth(tree: HtmlTree) -> None:
    """Raise `EditError` for a page with elements deeper than `MAX_NESTING_DEPTH`."""
    depths: dict[int, int] = {}
    for element in tree.elements:
        depth = depths.get(id(element.parent), 0) + 1
        depths[id(element)] = depth
        if depth > MAX_NESTING_DEPTH:
            raise EditError(
                f"The elements of this page lie more than {MAX_NESTING_DEPTH} deep in each other. Close them first."
            )


def _iter_active(parser: LexborHTMLParser) -> Iterator[ActiveContent]:
    for node in iter_elements(parser):
        yield from _active_parts(node)


def _active_parts(node: LexborNode) -> Iterator[ActiveContent]:
    tag = str(node.tag).lower()
    attributes = {name.lower(): value or "" for name, value in node.attributes.items()}
    if is_active_element(tag, attributes):
        yield ActiveContent(META_REFRESH if tag == "meta" else tag, tag, _element_identity(tag, attributes, node))
    if (
        tag in AMBIGUOUS_TEXT_TAGS
        and "<" in (text := node.text(deep=True))
        and find_active_content_in_fragment(text.encode(), FragmentContext())
    ):
        yield ActiveContent(tag, tag, text)
    for name, value in node.attributes.items():
        if is_active_attribute(tag, name.lower(), value or ""):
            yield ActiveContent(name, tag, value or "")


def _element_identity(tag: str, attributes: dict[str, str], node: LexborNode) -> str:
    """Return what distinguishes an active element from others: a script's address and code, any other's attributes."""
    if tag != "script":
        return str(sorted(attributes.items()))
    address = attributes.get("src") or attributes.get("href") or attributes.get("xlink:href") or ""
    script_type = attributes.get("type", "").lower()
    holds_data = "/" in script_type and "script" not in script_type
    return f"{'data' if holds_data else 'code'} {address}\n{node.text(deep=True)}"
