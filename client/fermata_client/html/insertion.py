"""Where new markup goes among its siblings, and with which white space around it."""

import re
from itertools import pairwise

from fermata_client.html.indentation import (
    WHITESPACE,
    Splice,
    detect_indent_unit,
    detect_newline,
    indent_at,
    is_at_line_start,
    reindent_text,
    widen_to_lines,
)
from fermata_client.html.sanitize import INLINE_TAGS, HtmlFragment
from fermata_client.html.tree import ROOT_TAG, Element, HtmlTree


def insertion_splice(source: bytes, parent: Element, index: int | None, payload: HtmlFragment) -> Splice:
    """The one splice that puts the payload before the `index`-th child element, or behind everything."""
    content = source[parent.inner_start : parent.inner_end]
    if not content.strip(WHITESPACE):
        return content_splice(source, parent, payload)
    place = len(parent.children) if index is None else min(index, len(parent.children))
    appending = place == len(parent.children)
    if b"\n" not in content and _flows(source, parent, payload):
        at = _content_end(source, parent) if appending else parent.children[place].start
        return Splice(at, at, _flowing(source, payload))
    if appending:
        return _behind(source, parent, _content_end(source, parent), payload)
    if place == 0 and _only_comments(source[parent.inner_start : parent.children[0].start]):
        return _at_the_top(source, parent, payload)
    following = parent.children[place]
    if not is_at_line_start(source, following.start):
        return Splice(following.start, following.start, _text(source, payload, indent_at(source, following.start)))
    if place == 0:
        indent = _child_indent(source, parent)
        text = _text(source, payload, indent) + detect_newline(source) + indent
        return Splice(following.start, following.start, text)
    return _behind(source, parent, trailing_comment_end(source, parent.children[place - 1].end), payload)


def content_splice(source: bytes, element: Element, payload: HtmlFragment) -> Splice:
    """The splice that makes the payload the whole content of the element."""
    newline, outer = detect_newline(source), indent_at(source, element.start)
    one_line = b"\n" not in payload.markup
    if element.tag == ROOT_TAG:
        text = _line_break(source, element) + _text(source, payload, b"") + newline
        return Splice(element.inner_start, element.inner_end, text)
    if one_line and (payload.is_inline or b"\n" not in source.strip(WHITESPACE)):
        return Splice(element.inner_start, element.inner_end, payload.markup.strip())
    inner = _child_indent(source, element)
    text = newline + inner + _text(source, payload, inner)
    return Splice(element.inner_start, element.inner_end, text + (newline + outer if element.has_end_tag else b""))


def head_splice(source: bytes, page: HtmlTree, lines: list[bytes]) -> Splice:
    """An element, given line by line, at the end of the head, which is made when there is none."""
    newline, unit = detect_newline(source), detect_indent_unit(source)
    head, html = page.find_first("head"), page.find_first("html")
    indent = indent_at(source, head.start) + unit if head else unit if html else b""
    block = newline.join(indent + line if line else b"" for line in lines)
    if head is not None:
        at = head.inner_start + len(source[head.inner_start : head.inner_end].rstrip())
        tail = b"" if is_at_line_start(source, head.inner_end) else newline + indent_at(source, head.start)
        return Splice(at, head.inner_end if tail else at, newline + block + tail)
    at = html.inner_start if html else page.root.inner_start
    if html is not None:
        block = b"<head>" + newline + block + newline + b"</head>"
    lead = b"" if is_at_line_start(source, at) else newline
    return Splice(at, at, lead + block + (b"" if source[at : at + 1] in (b"\r", b"\n") else newline))


def _behind(source: bytes, parent: Element, at: int, payload: HtmlFragment) -> Splice:
    indent = _child_indent(source, parent)
    text = (payload.gap or sibling_gap(source, parent)) + indent + _text(source, payload, indent)
    rest = source[at : parent.inner_end]
    closing = parent.has_end_tag and parent.tag != ROOT_TAG and b"\n" not in rest and not rest.strip(WHITESPACE)
    if closing:
        return Splice(at, parent.inner_end, text + detect_newline(source) + indent_at(source, parent.start))
    return Splice(at, at, text)


def _at_the_top(source: bytes, parent: Element, payload: HtmlFragment) -> Splice:
    newline, indent = detect_newline(source), _child_indent(source, parent)
    text = _text(source, payload, indent)
    if parent.tag == ROOT_TAG and not _line_break(source, parent):
        return Splice(parent.inner_start, parent.inner_start, text + (payload.gap or sibling_gap(source, parent)))
    content = source[parent.inner_start : parent.inner_end]
    there = content[: len(content) - len(content.lstrip(WHITESPACE))].count(b"\n")
    extra = newline * ((payload.gap or sibling_gap(source, parent)).count(b"\n") - there)
    return Splice(parent.inner_start, parent.inner_start, newline + indent + text + extra)


def _flowing(source: bytes, payload: HtmlFragment) -> bytes:
    return payload.markup if payload.is_inline and b"\n" not in payload.markup else _text(source, payload, b"")


def _text(source: bytes, payload: HtmlFragment, indent: bytes) -> bytes:
    if payload.is_from_page:
        return _at_indent(source, payload, indent)
    return reindent_text(
        payload.markup,
        indent=indent,
        unit=detect_indent_unit(source),
        newline=detect_newline(source),
        keep=payload.verbatim_lines,
    )


def _at_indent(source: bytes, payload: HtmlFragment, indent: bytes) -> bytes:
    """Lines that stood in this file before keep their steps among each other."""
    first, *lines = payload.markup.split(b"\n")
    moved = [
        line if number in payload.verbatim_lines or not line.strip() else indent + line
        for number, line in enumerate(lines, 1)
    ]
    return detect_newline(source).join([first, *moved])


def _flows(source: bytes, parent: Element, payload: HtmlFragment) -> bool:
    """Whether an addition to a one-line content stays on that line."""
    blocks = any(child.tag not in INLINE_TAGS for child in parent.children)
    own_lines = b"\n" in source.strip(WHITESPACE) and is_at_line_start(source, parent.start)
    return payload.is_inline or blocks or not own_lines


def _line_break(source: bytes, root: Element) -> bytes:
    """What separates the first line of the content from the doctype."""
    return b"" if is_at_line_start(source, root.inner_start) else detect_newline(source)


def _child_indent(source: bytes, element: Element) -> bytes:
    for child in element.children:
        if is_at_line_start(source, child.start):
            return indent_at(source, child.start)
    if element.tag == ROOT_TAG:
        return b""
    return indent_at(source, element.start) + detect_indent_unit(source)


def sibling_gap(source: bytes, parent: Element) -> bytes:
    """The line ends between siblings here: one, or two where a blank line separates them."""
    gaps = [
        source[before.end : after.start]
        for before, after in pairwise(parent.children)
        if is_at_line_start(source, after.start)
    ]
    apart = sum(1 for gap in gaps if re.match(rb"[^\n]*\n[ \t]*\r?\n", gap))
    return detect_newline(source) * (2 if gaps and apart * 2 > len(gaps) else 1)


def _content_end(source: bytes, parent: Element) -> int:
    return parent.inner_start + len(source[parent.inner_start : parent.inner_end].rstrip(WHITESPACE))


def _only_comments(text: bytes) -> bool:
    return not re.sub(rb"<!--.*?-->|<![A-Za-z][^>]*>", b"", text, flags=re.DOTALL).strip(WHITESPACE)


def trailing_comment_end(source: bytes, at: int) -> int:
    """The end of a comment that belongs to what ends at `at`, as in `</section> <!-- hero -->`."""
    comment = re.compile(rb"[ \t]*<!--(?!\[if )[^\n]*?-->").match(source, at)
    return comment.end() if comment else at


def removal_splice(source: bytes, element: Element, start: int, end: int) -> Splice:
    """The splice that takes an element away, with the lines it leaves empty: also the blank one between it and a
    neighbour, when it was the first or the last of its parent.
    """
    start, end = widen_to_lines(source, start, end)
    if element.parent is not None and source[start - 1 : start] == b"\n" and source[end - 1 : end] == b"\n":
        before, after = source[element.parent.inner_start : start], source[end : element.parent.inner_end]
        if not before.strip(WHITESPACE) and after.strip(WHITESPACE):
            end += len(after) - len(re.sub(rb"\A(?:[ \t]*\r?\n)+", b"", after))
        elif not after.strip(WHITESPACE) and before.strip(WHITESPACE):
            start -= len(before) - len(re.sub(rb"(?<=\n)(?:[ \t]*\r?\n)+\Z", b"", before))
    return Splice(start, end, b"")


def leading_comment_start(source: bytes, element: Element) -> int:
    """The start of the element, or of a comment that stands on the line above it and says what it is."""
    assert element.parent is not None
    before = [child.end for child in element.parent.children if child.end <= element.start]
    begin = before[-1] if before else element.parent.inner_start
    if not is_at_line_start(source, element.start):
        return element.start
    comment = re.search(rb"\n[ \t]*(<!--(?:(?!-->)[^\n])*-->)[ \t]*\r?\n[ \t]*\Z", source[begin : element.start])
    return begin + comment.start(1) if comment and b"[if " not in comment[1] else element.start
