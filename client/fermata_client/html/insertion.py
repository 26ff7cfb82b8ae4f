"""Compute the splices that insert and remove elements, with the white space that their neighbours have."""

import re
from itertools import pairwise

from fermata_client.html.edit_error import EditError
from fermata_client.html.fragment import INLINE_TAGS, HtmlFragment, is_within_preformatted
from fermata_client.html.indentation import (
    WHITESPACE,
    detect_indent_unit,
    detect_newline,
    indent_at,
    is_at_line_start,
    reindent_text,
    widen_to_lines,
)
from fermata_client.html.splices import Splice
from fermata_client.html.tags import ROOT_TAG
from fermata_client.html.template_preamble import content_block_start, head_block_end, is_filled_into_template
from fermata_client.html.tree import Element, HtmlTree

_METADATA_TAGS = frozenset({"base", "link", "meta", "script", "style", "title"})
_BLANK_LINE_GAP = re.compile(rb"[^\n]*\n[ \t]*\r?\n")
_TEMPLATE_END = re.compile(rb"\s*(?:<[?%]|\{[%{]|<!--#|@(?:end|stop|show))")
_SAME_LINE_COMMENT = re.compile(rb"[ \t]*<!--(?!\[if )[^\n]*?-->")
_COMMENTS_ONLY = re.compile(rb"(?:[ \t\r\n\f]++|<!--.*?-->|<![A-Za-z][^>]*>)*+", re.DOTALL)
_COMMENT_LINE_BEFORE = re.compile(rb"\n[ \t]*(<!--(?:(?!-->)[^\n])*-->)[ \t]*\r?\n[ \t]*\Z")


def insertion_splice(source: bytes, parent: Element, index: int | None, fragment: HtmlFragment) -> Splice:
    """Insert a fragment before the `index`-th child element, or after all content (None)."""
    content = source[parent.inner_start : parent.inner_end]
    if is_within_preformatted(parent):
        return _verbatim_splice(parent, index, fragment)
    if not content.strip(WHITESPACE):
        return content_splice(source, parent, fragment)
    child_index = len(parent.children) if index is None else min(index, len(parent.children))
    is_last = child_index == len(parent.children)
    if b"\n" not in content and _stays_on_line(source, parent, fragment):
        position = _content_end(source, parent) if is_last else parent.children[child_index].start
        return Splice(position, position, _inline_text(source, fragment))
    if is_last:
        return _splice_after(source, parent, _append_position(source, parent), fragment)
    if child_index == 0 and _has_only_comments(source[parent.inner_start : parent.children[0].start]):
        return _splice_at_content_start(source, parent, fragment)
    following = parent.children[child_index].start
    if not is_at_line_start(source, following):
        return Splice(following, following, _indented_text(source, fragment, indent_at(source, following)))
    if child_index == 0:
        indent = _child_indent(source, parent)
        text = _indented_text(source, fragment, indent) + detect_newline(source) + indent
        return Splice(following, following, text)
    previous_end = trailing_comment_end(source, parent.children[child_index - 1].end)
    return _splice_after(source, parent, previous_end, fragment)


def _verbatim_splice(parent: Element, index: int | None, fragment: HtmlFragment) -> Splice:
    """Insert a fragment without any white space around it, because it would be shown."""
    is_last = index is None or index >= len(parent.children)
    position = parent.inner_end if is_last or index is None else parent.children[index].start
    return Splice(position, position, fragment.markup)


def content_splice(source: bytes, element: Element, fragment: HtmlFragment) -> Splice:
    """Replace the whole content of an element with a fragment."""
    newline = detect_newline(source)
    if is_within_preformatted(element):
        return Splice(element.inner_start, element.inner_end, fragment.markup)
    is_one_line = b"\n" not in fragment.markup
    if element.tag == ROOT_TAG:
        text = _break_after_doctype(source, element) + _indented_text(source, fragment, b"") + newline
        return Splice(element.inner_start, element.inner_end, text)
    if is_one_line and (fragment.is_inline or b"\n" not in source.strip(WHITESPACE)):
        return Splice(element.inner_start, element.inner_end, fragment.markup.strip())
    indent = _child_indent(source, element)
    text = newline + indent + _indented_text(source, fragment, indent)
    closing_line = newline + indent_at(source, element.start) if element.has_end_tag else b""
    return Splice(element.inner_start, element.inner_end, text + closing_line)


def head_splice(source: bytes, tree: HtmlTree, lines: list[bytes]) -> Splice:
    """Insert an element, given as lines, at the end of the head. A missing head is created.

    In a page without head tags it is inserted after the elements of the head that the page begins with, so that its
    rules apply after those of the sheets among them.
    """
    newline, unit = detect_newline(source), detect_indent_unit(source)
    head, html = tree.find_first("head"), tree.find_first("html")
    indent = indent_at(source, head.start) + unit if head else unit if html else b""
    block = newline.join(indent + line if line else b"" for line in lines)
    if head is not None:
        content_end = head.inner_start + len(source[head.inner_start : head.inner_end].rstrip())
        if is_at_line_start(source, head.inner_end):
            return Splice(content_end, content_end, newline + block)
        return Splice(content_end, head.inner_end, newline + block + newline + indent_at(source, head.start))
    if html is None and is_filled_into_template(source):
        return _template_splice(source, tree, lines)
    last = _last_leading_metadata(source, html or tree.root)
    if last is not None:
        return _splice_below(source, last, lines)
    position = html.inner_start if html else tree.root.inner_start
    if html is not None:
        block = b"<head>" + newline + block + newline + b"</head>"
    line_before = b"" if is_at_line_start(source, position) else newline
    line_after = b"" if source[position : position + 1] in (b"\r", b"\n") else newline
    return Splice(position, position, line_before + block + line_after)


def _last_leading_metadata(source: bytes, container: Element) -> Element | None:
    """Return the last element of those for the head that the container begins with, with nothing else in between."""
    last, position = None, container.inner_start
    for child in container.children:
        if child.tag not in _METADATA_TAGS or not _has_only_comments(source[position : child.start]):
            break
        last, position = child, child.end
    return last


def _splice_below(source: bytes, element: Element, lines: list[bytes]) -> Splice:
    """Insert lines below an element, with its indentation."""
    newline, indent = detect_newline(source), indent_at(source, element.start)
    position = trailing_comment_end(source, element.end)
    text = b"".join(newline + indent + line if line else newline for line in lines)
    ends_line = not source[position:].strip(WHITESPACE) or source[position : position + 1] in (b"\r", b"\n")
    return Splice(position, position, text if ends_line else text + newline + indent)


def _template_splice(source: bytes, tree: HtmlTree, lines: list[bytes]) -> Splice:
    """Insert lines where a file that fills blocks of another template shows them.

    This is the end of the block for the head, or the start of the content.
    """
    newline = detect_newline(source)
    block_end = head_block_end(source, for_script=lines[0].startswith(b"<script"))
    if block_end is not None:
        indent = indent_at(source, block_end)
        line_before = b"" if is_at_line_start(source, block_end) else newline + indent
        return Splice(block_end, block_end, line_before + (newline + indent).join(lines) + newline + indent)
    first_start = tree.elements[0].start if tree.elements else None
    position = content_block_start(source, first_start)
    if position is None:
        raise EditError(
            "This file fills blocks of another template, and has none that a style or script could be in. Put it into "
            "a file that the page loads, or add a block by hand."
        )
    if position == first_start:
        indent = indent_at(source, position)
        return Splice(position, position, (newline + indent).join([*lines, b""]))
    line_after = b"" if source[position : position + 1] in (b"\r", b"\n") else newline
    return Splice(position, position, newline + newline.join(lines) + line_after)


def removal_splice(source: bytes, element: Element, start: int, end: int) -> Splice:
    """Remove an element's range with the lines it leaves empty.

    If the element was the first or last one of its parent, the blank line to its neighbour is removed too.
    """
    if element.parent is not None and is_within_preformatted(element.parent):
        return Splice(start, end, b"")
    start, end = widen_to_lines(source, start, end)
    if element.parent is not None and source[start - 1 : start] == b"\n" and source[end - 1 : end] == b"\n":
        before, after = source[element.parent.inner_start : start], source[end : element.parent.inner_end]
        if not before.strip(WHITESPACE) and after.strip(WHITESPACE):
            end += len(after) - len(re.sub(rb"\A(?:[ \t]*\r?\n)+", b"", after))
        elif not after.strip(WHITESPACE) and before.strip(WHITESPACE):
            start -= len(before) - before.index(b"\n", len(before.rstrip(WHITESPACE))) - 1
    return Splice(start, end, b"")


def sibling_gap(source: bytes, parent: Element) -> bytes:
    """Return the line ends between the children of an element: two if a blank line separates most of them."""
    gaps = [
        source[before.end : after.start]
        for before, after in pairwise(parent.children)
        if is_at_line_start(source, after.start)
    ]
    blank_line_count = sum(1 for gap in gaps if _BLANK_LINE_GAP.match(gap))
    return detect_newline(source) * (2 if gaps and blank_line_count * 2 > len(gaps) else 1)


def trailing_comment_end(source: bytes, position: int) -> int:
    """Return the end of a comment on the same line, as in `</section> <!-- hero -->`; `position` if there is none."""
    comment = _SAME_LINE_COMMENT.match(source, position)
    return comment.end() if comment else position


def leading_comment_start(source: bytes, element: Element) -> int:
    """Return the start of a comment on the line before the element; the element's own start if there is none."""
    assert element.parent is not None
    previous_ends = [child.end for child in element.parent.children if child.end <= element.start]
    search_start = previous_ends[-1] if previous_ends else element.parent.inner_start
    if not is_at_line_start(source, element.start):
        return element.start
    comment = _COMMENT_LINE_BEFORE.search(source[search_start : element.start])
    return search_start + comment.start(1) if comment and b"[if " not in comment[1] else element.start


def _splice_after(source: bytes, parent: Element, position: int, fragment: HtmlFragment) -> Splice:
    """Insert a fragment on new lines after the child that ends at `position`."""
    indent = _child_indent(source, parent)
    text = (fragment.gap or sibling_gap(source, parent)) + indent + _indented_text(source, fragment, indent)
    rest = source[position : parent.inner_end]
    needs_closing_line = (
        parent.has_end_tag and parent.tag != ROOT_TAG and b"\n" not in rest and not rest.strip(WHITESPACE)
    )
    if needs_closing_line:
        return Splice(position, parent.inner_end, text + detect_newline(source) + indent_at(source, parent.start))
    return Splice(position, position, text)


def _splice_at_content_start(source: bytes, parent: Element, fragment: HtmlFragment) -> Splice:
    newline, indent = detect_newline(source), _child_indent(source, parent)
    gap = fragment.gap or sibling_gap(source, parent)
    text = _indented_text(source, fragment, indent)
    if parent.tag == ROOT_TAG and not _break_after_doctype(source, parent):
        return Splice(parent.inner_start, parent.inner_start, text + gap)
    content = source[parent.inner_start : parent.inner_end]
    existing_line_count = content[: len(content) - len(content.lstrip(WHITESPACE))].count(b"\n")
    missing_lines = newline * (gap.count(b"\n") - existing_line_count)
    return Splice(parent.inner_start, parent.inner_start, newline + indent + text + missing_lines)


def _inline_text(source: bytes, fragment: HtmlFragment) -> bytes:
    if fragment.is_inline and b"\n" not in fragment.markup:
        return fragment.markup
    return _indented_text(source, fragment, b"")


def _indented_text(source: bytes, fragment: HtmlFragment, indent: bytes) -> bytes:
    """Return the fragment's markup at an indentation, without that of its first line."""
    if fragment.is_from_page:
        return _shifted_text(source, fragment, indent)
    return reindent_text(
        fragment.markup,
        indent=indent,
        unit=detect_indent_unit(source),
        newline=detect_newline(source),
        keep=fragment.verbatim_lines,
    )


def _shifted_text(source: bytes, fragment: HtmlFragment, indent: bytes) -> bytes:
    """Return markup of the page itself at an indentation. Its lines keep their steps and their line ends."""
    first, *lines = fragment.markup.split(b"\n")
    shifted = [
        line if number in fragment.verbatim_lines or not line.strip() else indent + line
        for number, line in enumerate(lines, 1)
    ]
    return b"\n".join([first, *shifted])


def _stays_on_line(source: bytes, parent: Element, fragment: HtmlFragment) -> bool:
    """Return whether an addition to content of one line is put on that line."""
    has_block_children = any(child.tag not in INLINE_TAGS for child in parent.children)
    starts_own_line = b"\n" in source.strip(WHITESPACE) and is_at_line_start(source, parent.start)
    return fragment.is_inline or has_block_children or not starts_own_line


def _break_after_doctype(source: bytes, root: Element) -> bytes:
    """Return the line end that is missing between a doctype and the content."""
    return b"" if is_at_line_start(source, root.inner_start) else detect_newline(source)


def _child_indent(source: bytes, element: Element) -> bytes:
    for child in element.children:
        if is_at_line_start(source, child.start):
            return indent_at(source, child.start)
    if element.tag == ROOT_TAG:
        return b""
    return indent_at(source, element.start) + detect_indent_unit(source)


def _content_end(source: bytes, parent: Element) -> int:
    return parent.inner_start + len(source[parent.inner_start : parent.inner_end].rstrip(WHITESPACE))


def _append_position(source: bytes, parent: Element) -> int:
    """Return where content is appended: at the end, but in a whole file before what a template engine reads last."""
    end = _content_end(source, parent)
    if parent.tag != ROOT_TAG or not parent.children:
        return end
    last_end = trailing_comment_end(source, parent.children[-1].end)
    return last_end if _TEMPLATE_END.match(source, last_end) else end


def _has_only_comments(text: bytes) -> bool:
    return _COMMENTS_ONLY.fullmatch(text) is not None
