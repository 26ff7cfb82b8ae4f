"""HTML that somebody else wrote, made fit to be put into a page.

No scripts and no inline handlers, no node ids of ours, style sheets set aside, every element closed, nothing that
closes an element outside. What is left is written exactly as it came.
"""

import re
from dataclasses import dataclass
from html import unescape

from fermata_client.html.layout import Splice, indent_at, spliced, whole_lines
from fermata_client.html.tree import Element, Page, names, parse

INLINE = names(
    "a abbr b bdi bdo br button cite code data del dfn em i img input ins kbd label mark meter output picture progress "
    "q ruby s samp select small span strong sub sup svg textarea time u var wbr"
)
ADDRESSES = names("href src action formaction xlink:href data to from values poster srcset ping")
"""Attributes whose value may be an address, in SVG animations also for another attribute."""
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


def prepare(html: str) -> Payload:
    source = html.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace")
    source = _content(source)
    page = parse(source)
    css = "\n".join(_inner(source, style) for style in _outermost(page, "style"))
    markup, note = spliced(source, _merged(source, page)).strip(b"\n"), _left_out(page)
    if not markup.strip():
        return Payload(b"", css.strip(), True, 0, frozenset(), note)
    whole = closed(markup.strip() if b"\n" not in markup else markup.rstrip())
    page = parse(whole)
    inline = all(element.tag in INLINE for element in page.root.children)
    if inline and b"\n" not in whole:
        whole = b" " * markup.startswith(b" ") + whole + b" " * markup.endswith(b" ")  # a space between words counts
    return Payload(whole, css.strip(), inline, len(page.elements), _verbatim(whole, page), note)


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


def _left_out(page: Page) -> str:
    scripts = len(_scripts(page))
    names = {a.name for e in page.elements for a in e.attributes if a.name != "uid" and _unwanted(a.name, a.value)}
    parts = [f"{scripts} script{'s' * (scripts > 1)}"] if scripts else []
    parts += [", ".join(sorted(names))] if names else []
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
    """What is taken away: scripts, style blocks, stray end tags, doctypes, and attributes that run code."""
    unwanted = [*_scripts(page), *_outermost(page, "style")]
    cuts = [whole_lines(source, element.start, element.end) for element in unwanted]
    cuts += page.strays
    cuts += [(a.start, a.end) for e in page.elements for a in e.attributes if _unwanted(a.name, a.value)]
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


def _unwanted(name: str, value: str) -> bool:
    if name.startswith("on") or name in ("uid", "srcdoc"):
        return True
    return name in ADDRESSES and is_code(unescape(value))


def is_code(address: str) -> bool:
    """Whether a browser would run it; it does not mind white space and control characters within."""
    return re.sub(r"[\x00-\x20]", "", address).lower().startswith(("javascript:", "vbscript:"))


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


def _scripts(page: Page) -> list[Element]:
    """Also those within a picture."""
    return [element for element in page.elements if element.tag == "script"]


def _outermost(page: Page, tag: str) -> list[Element]:
    return [e for e in page.elements if e.tag == tag and not e.within("svg")]


def _inner(source: bytes, element: Element) -> str:
    return source[element.inner_start : element.inner_end].decode("utf-8", "replace")
