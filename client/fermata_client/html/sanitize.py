"""Sanitize HTML from a model before it is inserted into a page (decision 0124).

Scripts, event handlers, `uid` attributes, style elements, doctypes and stray end tags are removed; every element is
closed. The rest keeps its bytes. Where a browser would still find active content, the markup is serialized as the
browser understands it, without that content.
"""

import re
from collections import Counter
from dataclasses import replace
from html import unescape

from fermata_client.html.active_content import (
    ActiveContent,
    check_nesting_depth,
    find_active_content_in_fragment,
    is_active_attribute,
    is_active_element,
    remove_active_content,
)
from fermata_client.html.browser_parser import FragmentContext, find_unfinished_tag, is_open_ended
from fermata_client.html.edit_error import EditError
from fermata_client.html.fragment import HtmlFragment, close_elements, fragment_from_markup, has_only_inline_elements
from fermata_client.html.indentation import widen_to_lines
from fermata_client.html.parser import parse_html
from fermata_client.html.splices import Splice, apply_splices
from fermata_client.html.template_preamble import UTF8_BOM
from fermata_client.html.tree import Attribute, Element, HtmlTree

_SERVER_CODE = re.compile(rb"<\?(?:(?!<\?).)*?\?>|<%(?:(?!<%).)*?%>|<\?(?:php|=).*\Z", re.DOTALL | re.IGNORECASE)
_SERVER_CODE_OPENING = re.compile(rb"<(?=[?%])")
_OPENING = re.compile(rb"<(?:!--|[A-Za-z/][^\s<>]*)")


def sanitize_html(html: str, context: FragmentContext) -> HtmlFragment:
    """Return the part of `html` that may be inserted in `context`, with a note of what was left out.

    Raises:
        EditError: it has active content that cannot be removed, or would take in what follows it in the page.
    """
    normalized = html.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace")
    without_code, code_count = _SERVER_CODE.subn(b"", normalized)
    source = _extract_content(_SERVER_CODE_OPENING.sub(b"&lt;", without_code))
    _check_finished(source, context)
    left_out = _count_unwanted(parse_html(source))
    if code_count:
        left_out["code of the server"] += code_count
    fragment = _clean_fragment(source, context)
    active = find_active_content_in_fragment(fragment.markup, context)
    if active:
        left_out += _count_active(active)
        fragment = replace(_clean_fragment(remove_active_content(fragment.markup, context), context), css=fragment.css)
        active = find_active_content_in_fragment(fragment.markup, context)
    if active:
        names = ", ".join(sorted({str(part) for part in active}))
        raise EditError(
            f"This HTML hides code from some readers ({names}). Send it without that: HTML cannot contain code."
        )
    _check_finished(fragment.markup, context)
    if is_open_ended(fragment.markup, context):
        opening = _last_opening(source)
        raise EditError(f"The page after this HTML would become a part of it, from {opening} on. Close it first.")
    return replace(fragment, note=_left_out_note(left_out))


def _check_finished(markup: bytes, context: FragmentContext) -> None:
    if tag := find_unfinished_tag(markup, context):
        raise EditError(f"The tag {tag} is not closed: another one begins within it. Close it with > first.")


def _last_opening(markup: bytes) -> str:
    """Return the start of the last tag or comment."""
    openings = _OPENING.findall(markup)
    return openings[-1].decode("utf-8", "replace") if openings else "its beginning"


def _extract_content(source: bytes) -> bytes:
    """Reduce a whole document to the content of its body and the style elements of its head."""
    tree = parse_html(source)
    check_nesting_depth(tree)
    body, html, head = (tree.find_first(tag) for tag in ("body", "html", "head"))
    if body is None and html is None:
        return source.removeprefix(UTF8_BOM)
    head_styles = [style for style in _style_elements(tree) if style.is_within("head")]
    styles = b"".join(source[style.start : style.end] for style in head_styles)
    if body is not None:
        return styles + source[body.inner_start : body.inner_end]
    assert html is not None
    return styles + source[head.end if head else html.inner_start : html.inner_end]


def _clean_fragment(source: bytes, context: FragmentContext) -> HtmlFragment:
    tree = parse_html(source, is_foreign=context.is_foreign)
    styles = [source[style.inner_start : style.inner_end] for style in _style_elements(tree)]
    css = b"\n".join(styles).decode("utf-8", "replace").strip()
    markup = apply_splices(source, _removal_splices(source, tree)).strip(b"\n")
    if not markup.strip():
        return HtmlFragment(b"", css, is_inline=True, element_count=0, verbatim_lines=frozenset())
    closed = close_elements(markup.strip() if b"\n" not in markup else markup.rstrip(), is_foreign=context.is_foreign)
    if b"\n" not in closed and has_only_inline_elements(parse_html(closed)):
        closed = b" " * markup.startswith(b" ") + closed + b" " * markup.endswith(b" ")  # spaces between words count
    return fragment_from_markup(closed, css=css, is_foreign=context.is_foreign)


def _removal_splices(source: bytes, tree: HtmlTree) -> list[Splice]:
    removed_elements = [*_active_elements(tree), *_style_elements(tree)]
    ranges = [widen_to_lines(source, element.start, element.end) for element in removed_elements]
    ranges += tree.stray_end_tags
    ranges += [(attribute.start, attribute.end) for attribute in _unwanted_attributes(tree)]
    ranges += _doctype_ranges(source)
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return [Splice(_start_with_space(source, start, end), end, b"") for start, end in merged]


def _start_with_space(source: bytes, start: int, end: int) -> int:
    """Return the start of a range, with the space before it if the range is an attribute."""
    is_attribute = source[end : end + 1] in (b">", b" ", b"/", b"\n", b"\t") and source[start : start + 1].isalpha()
    return start - 1 if is_attribute and source[start - 1 : start] == b" " else start


def _doctype_ranges(source: bytes) -> list[tuple[int, int]]:
    start = source.lower().find(b"<!doctype")
    end = source.find(b">", start)
    return [(start, end + 1)] if start != -1 and end != -1 else []


def _unwanted_attributes(tree: HtmlTree) -> list[Attribute]:
    """Return active attributes, and `uid`, which only the document assigns."""
    return [
        attribute
        for element in tree.elements
        for attribute in element.attributes
        if attribute.name == "uid" or is_active_attribute(element.tag, attribute.name, unescape(attribute.value))
    ]


def _active_elements(tree: HtmlTree) -> list[Element]:
    return [
        element
        for element in tree.elements
        if is_active_element(element.tag, {own.name: unescape(own.value) for own in element.attributes})
    ]


def _style_elements(tree: HtmlTree) -> list[Element]:
    """Return the style elements of HTML. Those of an SVG image stay in it."""
    return [element for element in tree.elements if element.tag == "style" and not element.is_within("svg")]


def _count_unwanted(tree: HtmlTree) -> Counter[str]:
    """Count active elements by tag, and name each active attribute once."""
    attribute_names = {attribute.name for attribute in _unwanted_attributes(tree)} - {"uid"}
    return Counter(element.tag for element in _active_elements(tree)) + Counter(attribute_names)


def _count_active(active: frozenset[ActiveContent]) -> Counter[str]:
    return Counter(part.tag if part.is_element else part.name for part in active)


def _left_out_note(left_out: Counter[str]) -> str:
    script_count = left_out["script"]
    other_names = sorted(left_out.keys() - {"script"})
    parts = [f"{script_count} script{'s' * (script_count > 1)}"] if script_count else []
    parts += [", ".join(other_names)] if other_names else []
    if not parts:
        return ""
    return f"Left out: {' and '.join(parts)}. HTML cannot contain code; write behaviour with write_code_asset."
