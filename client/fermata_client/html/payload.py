"""HTML that somebody else wrote, made fit to be put into a page.

No scripts and no inline handlers, no node ids of ours, style sheets set aside, every element closed, nothing that
closes an element outside. What is left is written exactly as it came, unless a browser would still find code in it:
then it is written anew, as the browser understands it.
"""

import re
from collections import Counter
from dataclasses import dataclass, replace
from html import unescape

from fermata_client.html.cannot import CannotDo
from fermata_client.html.layout import Splice, indent_at, spliced, whole_lines
from fermata_client.html.live import (
    Live,
    Place,
    is_live_attribute,
    is_live_element,
    is_open_ended,
    live_in_fragment,
    unfinished_tag,
    without_live,
)
from fermata_client.html.tree import Attribute, Element, Page, names, parse

INLINE = names(
    "a abbr b bdi bdo br button cite code data del dfn em i img input ins kbd label mark meter output picture progress "
    "q ruby s samp select small span strong sub sup svg textarea time u var wbr"
)
KEEPS_WHITE_SPACE = frozenset({"pre", "textarea"})


@dataclass(frozen=True)
class Payload:
    """`markup` with LF newlines, `css` from its style blocks, and whether the markup flows within a line."""

    markup: bytes
    css: str
    inline: bool
    size: int
    """How many elements it holds."""
    verbatim_lines: frozenset[int]
    """Lines of `markup` that begin inside preformatted text and must not be indented."""
    note: str = ""
    """What was left out, in a sentence for whoever sent it."""
    is_own: bool = False
    """The markup stood in the page before: its lines carry no indentation but their steps among each other."""
    gap: bytes = b""
    """The line ends between it and its neighbours, when they are not to be found out from those."""


def prepare(html: str, place: Place) -> Payload:
    """What of `html` may stand in `place`; CannotDo when it holds code that cannot be told from the rest."""
    source = _content(html.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace"))
    _check_finished(source, place)
    payload, left_out = _prepared(source), _left_out(parse(source))
    live = live_in_fragment(payload.markup, place)
    if live:
        _add(left_out, live)
        payload = replace(_prepared(without_live(payload.markup, place)), css=payload.css)
        live = live_in_fragment(payload.markup, place)
    if live:
        found = ", ".join(sorted({str(one) for one in live}))
        raise CannotDo(f"This HTML hides code from some readers ({found}). Send it without; HTML brings no code.")
    _check_finished(payload.markup, place)
    if is_open_ended(payload.markup, place):
        opened = _last_opened(source)
        raise CannotDo(f"What stands behind this HTML would become a part of it, from {opened} on. Close it first.")
    return replace(payload, note=_note(left_out))


def _check_finished(markup: bytes, place: Place) -> None:
    if begun := unfinished_tag(markup, place):
        raise CannotDo(f"The tag {begun} is not closed: another one begins within it. Close it with > first.")


def _last_opened(markup: bytes) -> str:
    """The beginning of the last tag or comment that opens something."""
    found = re.findall(rb"<(?:!--|[A-Za-z/][^\s<>]*)", markup)
    return found[-1].decode("utf-8", "replace") if found else "its beginning"


def _prepared(source: bytes) -> Payload:
    page = parse(source)
    css = "\n".join(_inner(source, style) for style in _outermost(page, "style"))
    markup = spliced(source, _merged(source, page)).strip(b"\n")
    if not markup.strip():
        return Payload(b"", css.strip(), True, 0, frozenset())
    whole = closed(markup.strip() if b"\n" not in markup else markup.rstrip())
    page = parse(whole)
    inline = all(element.tag in INLINE for element in page.root.children)
    if inline and b"\n" not in whole:
        whole = b" " * markup.startswith(b" ") + whole + b" " * markup.endswith(b" ")  # a space between words counts
    return Payload(whole, css.strip(), inline, len(page.elements), _verbatim(whole, page))


def own(source: bytes, start: int, end: int, gap: bytes) -> Payload:
    """A piece of the page itself, to stand at another place of it: nothing is taken out, everything is closed."""
    lead = indent_at(source, start)
    lines = source[start:end].replace(b"\r\n", b"\n").split(b"\n")
    verbatim = _verbatim(b"\n".join(lines), parse(b"\n".join(lines)))
    shifted = [line if number in verbatim else line.removeprefix(lead) for number, line in enumerate(lines)]
    markup = closed(b"\n".join(shifted))
    page = parse(markup)
    inline = all(element.tag in INLINE for element in page.root.children)
    return Payload(markup, "", inline, len(page.elements), _verbatim(markup, page), is_own=True, gap=gap)


def _left_out(page: Page) -> Counter[str]:
    """What goes by its name: attributes, and elements with how many there are."""
    names = {a.name for e in page.elements for a in e.attributes if a.name != "uid" and _unwanted(e.tag, a)}
    return Counter(element.tag for element in _live_elements(page)) + Counter(names)


def _add(left_out: Counter[str], live: frozenset[Live]) -> None:
    for name, count in Counter(one.on if one.is_element else one.what for one in live).items():
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
    page = parse(source)
    body, html, head = page.first("body"), page.first("html"), page.first("head")
    if body is None and html is None:
        return source[page.root.inner_start :]
    styles = b"".join(source[style.start : style.end] for style in _outermost(page, "style") if style.within("head"))
    if body is not None:
        return styles + source[body.inner_start : body.inner_end]
    assert html is not None
    begin = head.end if head else html.inner_start
    return styles + source[begin : html.inner_end]


def _merged(source: bytes, page: Page) -> list[Splice]:
    """What is taken away: scripts and their like, style blocks, stray end tags, doctypes, attributes that run code."""
    unwanted = [*_live_elements(page), *_outermost(page, "style")]
    cuts = [whole_lines(source, element.start, element.end) for element in unwanted]
    cuts += page.strays
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
    return attribute.name == "uid" or is_live_attribute(tag, attribute.name, unescape(attribute.value))


def _doctypes(source: bytes) -> list[tuple[int, int]]:
    begin = source.lower().find(b"<!doctype")
    end = source.find(b">", begin)
    return [(begin, end + 1)] if begin != -1 and end != -1 else []


def closed(markup: bytes) -> bytes:
    """Give every element that has none its end tag, so that nothing after the payload falls into it."""
    missing = [e for e in parse(markup).elements if not (e.has_end_tag or e.is_void)]
    at: dict[int, bytes] = {}
    for element in missing:  # outer elements come first, and close last
        at[element.end] = b"</" + element.tag.encode() + b">" + at.get(element.end, b"")
    return spliced(markup, [Splice(end, end, tags) for end, tags in at.items()])


def _verbatim(markup: bytes, page: Page) -> frozenset[int]:
    kept: set[int] = set()
    for element in page.elements:
        if element.tag in KEEPS_WHITE_SPACE:
            first = markup.count(b"\n", 0, element.inner_start) + 1
            kept.update(range(first, markup.count(b"\n", 0, element.inner_end) + 1))
    return frozenset(kept)


def _live_elements(page: Page) -> list[Element]:
    """Also those within a picture."""
    return [e for e in page.elements if is_live_element(e.tag, {a.name: unescape(a.value) for a in e.attributes})]


def _outermost(page: Page, tag: str) -> list[Element]:
    return [e for e in page.elements if e.tag == tag and not e.within("svg")]


def _inner(source: bytes, element: Element) -> str:
    return source[element.inner_start : element.inner_end].decode("utf-8", "replace")
