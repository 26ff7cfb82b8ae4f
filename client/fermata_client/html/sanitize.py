"""HTML that somebody else wrote, made fit to be put into a page.

No scripts and no inline handlers, no node ids of ours, style sheets set aside, every element closed, nothing that
closes an element outside. What is left is written exactly as it came, unless a browser would still find code in it:
then it is written anew, as the browser understands it.
"""

import re
from collections import Counter
from dataclasses import dataclass, replace
from html import unescape

from fermata_client.html.active_content import (
    ActiveContent,
    FragmentContext,
    find_active_content_in_fragment,
    find_unfinished_tag,
    is_active_attribute,
    is_active_element,
    is_open_ended,
    remove_active_content,
)
from fermata_client.html.errors import EditError
from fermata_client.html.indentation import Splice, apply_splices, indent_at, widen_to_lines
from fermata_client.html.tree import Attribute, Element, HtmlTree, name_set, parse_html

INLINE_TAGS = name_set(
    "a abbr b bdi bdo br button cite code data del dfn em i img input ins kbd label mark meter output picture progress "
    "q ruby s samp select small span strong sub sup svg textarea time u var wbr"
)
PREFORMATTED_TAGS = frozenset({"pre", "textarea"})


@dataclass(frozen=True)
class HtmlFragment:
    """`markup` with LF newlines, `css` from its style blocks, and whether the markup flows within a line."""

    markup: bytes
    css: str
    is_inline: bool
    element_count: int
    """How many elements it holds."""
    verbatim_lines: frozenset[int]
    """Lines of `markup` that begin inside preformatted text and must not be indented."""
    note: str = ""
    """What was left out, in a sentence for whoever sent it."""
    is_from_page: bool = False
    """The markup stood in the page before: its lines carry no indentation but their steps among each other."""
    gap: bytes = b""
    """The line ends between it and its neighbours, when they are not to be found out from those."""


def sanitize_html(html: str, place: FragmentContext) -> HtmlFragment:
    """What of `html` may stand in `place`; CannotDo when it holds code that cannot be told from the rest."""
    source = _content(html.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace"))
    _check_finished(source, place)
    payload, left_out = _prepared(source), _left_out(parse_html(source))
    live = find_active_content_in_fragment(payload.markup, place)
    if live:
        _add(left_out, live)
        payload = replace(_prepared(remove_active_content(payload.markup, place)), css=payload.css)
        live = find_active_content_in_fragment(payload.markup, place)
    if live:
        found = ", ".join(sorted({str(one) for one in live}))
        raise EditError(f"This HTML hides code from some readers ({found}). Send it without; HTML brings no code.")
    _check_finished(payload.markup, place)
    if is_open_ended(payload.markup, place):
        opened = _last_opened(source)
        raise EditError(f"What stands behind this HTML would become a part of it, from {opened} on. Close it first.")
    return replace(payload, note=_note(left_out))


def _check_finished(markup: bytes, place: FragmentContext) -> None:
    if begun := find_unfinished_tag(markup, place):
        raise EditError(f"The tag {begun} is not closed: another one begins within it. Close it with > first.")


def _last_opened(markup: bytes) -> str:
    """The beginning of the last tag or comment that opens something."""
    found = re.findall(rb"<(?:!--|[A-Za-z/][^\s<>]*)", markup)
    return found[-1].decode("utf-8", "replace") if found else "its beginning"


def _prepared(source: bytes) -> HtmlFragment:
    page = parse_html(source)
    css = "\n".join(_inner(source, style) for style in _outermost(page, "style"))
    markup = apply_splices(source, _merged(source, page)).strip(b"\n")
    if not markup.strip():
        return HtmlFragment(b"", css.strip(), True, 0, frozenset())
    whole = close_elements(markup.strip() if b"\n" not in markup else markup.rstrip())
    page = parse_html(whole)
    inline = all(element.tag in INLINE_TAGS for element in page.root.children)
    if inline and b"\n" not in whole:
        whole = b" " * markup.startswith(b" ") + whole + b" " * markup.endswith(b" ")  # a space between words counts
    return HtmlFragment(whole, css.strip(), inline, len(page.elements), _verbatim(whole, page))


def fragment_from_page(source: bytes, start: int, end: int, gap: bytes) -> HtmlFragment:
    """A piece of the page itself, to stand at another place of it: nothing is taken out, everything is closed."""
    lead = indent_at(source, start)
    lines = source[start:end].replace(b"\r\n", b"\n").split(b"\n")
    verbatim = _verbatim(b"\n".join(lines), parse_html(b"\n".join(lines)))
    shifted = [line if number in verbatim else line.removeprefix(lead) for number, line in enumerate(lines)]
    markup = close_elements(b"\n".join(shifted))
    page = parse_html(markup)
    inline = all(element.tag in INLINE_TAGS for element in page.root.children)
    return HtmlFragment(markup, "", inline, len(page.elements), _verbatim(markup, page), is_from_page=True, gap=gap)


def _left_out(page: HtmlTree) -> Counter[str]:
    """What goes by its name: attributes, and elements with how many there are."""
    names = {a.name for e in page.elements for a in e.attributes if a.name != "uid" and _unwanted(e.tag, a)}
    return Counter(element.tag for element in _live_elements(page)) + Counter(names)


def _add(left_out: Counter[str], live: frozenset[ActiveContent]) -> None:
    for name, count in Counter(one.tag if one.is_element else one.name for one in live).items():
        left_out[name] += count


def _note(left_out: Counter[str]) -> str:
    scripts, others = left_out["script"], sorted(left_out.keys() - {"script"})
    parts = [f"{scripts} script{'s' * (scripts > 1)}"] if scripts else []
    parts += [", ".join(others)] if others else []
    if not parts:
        return ""
    return f"Left out: {' and '.join(parts)}. HTML brings no code; write behaviour with write_code_asset."


def _content(source: bytes) -> bytes:
    """Of a whole document only what its body holds, and the style blocks of its head."""
    page = parse_html(source)
    body, html, head = page.find_first("body"), page.find_first("html"), page.find_first("head")
    if body is None and html is None:
        return source[page.root.inner_start :]
    styles = b"".join(source[style.start : style.end] for style in _outermost(page, "style") if style.is_within("head"))
    if body is not None:
        return styles + source[body.inner_start : body.inner_end]
    assert html is not None
    begin = head.end if head else html.inner_start
    return styles + source[begin : html.inner_end]


def _merged(source: bytes, page: HtmlTree) -> list[Splice]:
    """What is taken away: scripts and their like, style blocks, stray end tags, doctypes, attributes that run code."""
    unwanted = [*_live_elements(page), *_outermost(page, "style")]
    cuts = [widen_to_lines(source, element.start, element.end) for element in unwanted]
    cuts += page.stray_end_tags
    cuts += [(a.start, a.end) for e in page.elements for a in e.attributes if _unwanted(e.tag, a)]
    cuts += _doctypes(source)
    merged: list[tuple[int, int]] = []
    for start, end in sorted(cuts):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return [Splice(_with_space(source, start, end), end, b"") for start, end in merged]


def _with_space(source: bytes, start: int, end: int) -> int:
    """Take the white space in front of an attribute along."""
    attribute = source[end : end + 1] in (b">", b" ", b"/", b"\n", b"\t") and source[start : start + 1].isalpha()
    return start - 1 if attribute and source[start - 1 : start] == b" " else start


def _unwanted(tag: str, attribute: Attribute) -> bool:
    return attribute.name == "uid" or is_active_attribute(tag, attribute.name, unescape(attribute.value))


def _doctypes(source: bytes) -> list[tuple[int, int]]:
    begin = source.lower().find(b"<!doctype")
    end = source.find(b">", begin)
    return [(begin, end + 1)] if begin != -1 and end != -1 else []


def close_elements(markup: bytes) -> bytes:
    """Give every element that has none its end tag, so that nothing after the payload falls into it."""
    missing = [e for e in parse_html(markup).elements if not (e.has_end_tag or e.is_void)]
    at: dict[int, bytes] = {}
    for element in missing:  # outer elements come first, and close last
        at[element.end] = b"</" + element.tag.encode() + b">" + at.get(element.end, b"")
    return apply_splices(markup, [Splice(end, end, tags) for end, tags in at.items()])


def _verbatim(markup: bytes, page: HtmlTree) -> frozenset[int]:
    kept: set[int] = set()
    for element in page.elements:
        if element.tag in PREFORMATTED_TAGS:
            first = markup.count(b"\n", 0, element.inner_start) + 1
            kept.update(range(first, markup.count(b"\n", 0, element.inner_end) + 1))
    return frozenset(kept)


def _live_elements(page: HtmlTree) -> list[Element]:
    """Also those within a picture."""
    return [e for e in page.elements if is_active_element(e.tag, {a.name: unescape(a.value) for a in e.attributes})]


def _outermost(page: HtmlTree, tag: str) -> list[Element]:
    return [e for e in page.elements if e.tag == tag and not e.is_within("svg")]


def _inner(source: bytes, element: Element) -> str:
    return source[element.inner_start : element.inner_end].decode("utf-8", "replace")
