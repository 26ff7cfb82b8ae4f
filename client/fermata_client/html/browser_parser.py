"""Parse HTML as a browser does, without positions, to judge what an edit would mean there (decision 0124).

The positions of an edit come from `parser`, whose grammar is more tolerant than the HTML standard.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

from fermata_client.html.tags import FOREIGN_TAGS, ROOT_TAG, name_set
from fermata_client.html.tree import Element

AMBIGUOUS_TEXT_TAGS = name_set("style xmp iframe noembed noframes plaintext")
"""Elements whose content is text or markup, depending on the browser's age and on the elements around them."""

IMPLIED_TABLE_TAGS = name_set("tbody colgroup tr")
"""Parents that browsers add around the rows and columns of a table."""

_NAMESPACE_TAGS = FOREIGN_TAGS | name_set("foreignobject")
_END_MARK = "the end"


@dataclass(frozen=True)
class FragmentContext:
    """The element that a fragment of HTML is parsed in, as the HTML standard defines it."""

    tag: str = "div"
    namespace: str = "html"

    @property
    def is_foreign(self) -> bool:
        """Whether it is an SVG or MathML element."""
        return self.namespace != "html"

    @classmethod
    def from_element(cls, element: Element) -> "FragmentContext":
        tags = (element.tag, *(ancestor.tag for ancestor in element.ancestors()))
        namespace_tag = next((tag for tag in tags if tag in _NAMESPACE_TAGS), "")
        tag = "body" if element.tag in ("html", ROOT_TAG) else element.tag
        return cls(tag, namespace_tag if namespace_tag in FOREIGN_TAGS else "html")


def parse_page(source: bytes, *, scripting: bool) -> LexborHTMLParser:
    """Parse a page as a browser with or without scripting does: `<noscript>` differs."""
    return LexborHTMLParser(source, scripting=scripting)


def parse_fragment(markup: bytes, context: FragmentContext, *, scripting: bool) -> LexborHTMLParser:
    """Parse a fragment in its context; as `parse_page` otherwise."""

    def parse_within(tag: str) -> LexborHTMLParser:
        return LexborHTMLParser(
            markup, is_fragment=True, fragment_tag=tag, fragment_namespace=context.namespace, scripting=scripting
        )

    try:
        return parse_within(context.tag)
    except ValueError:  # a custom element, on which no parsing rule depends
        return parse_within("div" if context.namespace == "html" else context.namespace)


def iter_elements(parser: LexborHTMLParser) -> Iterator[LexborNode]:
    """Yield all elements, also those in templates."""
    if parser.root is None:
        return
    yield from (node for node in parser.root.traverse() if node.is_element_node)
    pending = parser.template_fragments()
    while pending:
        fragment = pending.pop()
        yield from (node for node in fragment.traverse() if node.is_element_node)
        pending += fragment.template_fragments()


def count_elements(source: bytes) -> Counter[int]:
    """Count the elements of a page by a hash of their attributes and of the tags around them."""
    path_hashes: dict[int, int] = {}
    counts: Counter[int] = Counter()
    for node in iter_elements(parse_page(source, scripting=True)):
        parent_hash = 0 if node.parent is None else path_hashes.get(node.parent.mem_id, 0)
        path_hash = hash((parent_hash, node.tag))
        path_hashes[node.mem_id] = path_hash
        counts[hash((path_hash, *sorted(node.attributes.items(), key=str)))] += 1
    return counts


def count_raw_texts(source: bytes) -> Counter[str]:
    """Count the contents of a page's script and style elements."""
    nodes = iter_elements(parse_page(source, scripting=True))
    return Counter(node.text(deep=True) for node in nodes if node.tag in ("script", "style"))


def find_unfinished_tag(markup: bytes, context: FragmentContext | None = None) -> str:
    """Return the first tag that another one begins in, as `<scr` of `<scr<b>`; empty if there is none.

    Without a context the markup is a whole page.
    """
    parser = parse_fragment(markup, context, scripting=True) if context else parse_page(markup, scripting=True)
    for node in iter_elements(parser):
        if any("<" in name for name in (str(node.tag), *node.attributes)):
            return f"<{str(node.tag).partition('<')[0]}"
    return ""


def is_open_ended(markup: bytes, context: FragmentContext) -> bool:
    """Return whether text after the markup would become part of a tag, comment, text or element in it."""
    if context.tag in AMBIGUOUS_TEXT_TAGS:
        return False
    parser = parse_fragment(markup + b"<!--" + _END_MARK.encode() + b"-->", context, scripting=False)
    if parser.root is None:
        return True
    mark = next((node for node in parser.root.traverse() if _is_end_mark(node)), None)
    while mark is not None and mark.parent is not None and _is_implied(mark.parent, markup):
        mark = mark.parent  # a parent that the browser has added, which ends with the table
    return mark is None or mark.mem_id not in _top_level_ids(parser.root)


def _is_end_mark(node: LexborNode) -> bool:
    return node.is_comment_node and node.comment_content == _END_MARK


def _is_implied(node: LexborNode, markup: bytes) -> bool:
    return str(node.tag) in IMPLIED_TABLE_TAGS and f"<{node.tag}".encode() not in markup.lower()


def _top_level_ids(first: LexborNode) -> set[int]:
    ids: set[int] = set()
    node: LexborNode | None = first
    while node is not None:
        ids.add(node.mem_id)
        node = node.next
    return ids
