"""Show a page to the model: elements with their ids, style sheets apart, long data omitted, in bounded parts."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import dedent

from fermata_client.document.split_by_json_length import TextRange, json_length, split_document
from fermata_client.html.edit_error import EditError
from fermata_client.html.linked_files import is_page_stylesheet
from fermata_client.html.splices import Splice, apply_splices
from fermata_client.html.tree import Element, HtmlTree
from fermata_client.service.json_types import JsonObject

MAX_PART_CHARS = 80_000
"""Length of one part as JSON text."""
MAX_PAGE_INFO_CHARS = 1_000
LONG_URL_HEAD_CHARS = 120
LONG_URL_TAIL_CHARS = 40

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[\w=.+-]+)*);base64,([A-Za-z0-9+/=_-]{120,})")
_LONG_URL = re.compile(r"(?:https?:|data:)[^\s\"'<>)]{400,}")


@dataclass(frozen=True)
class CleanedText:
    text: str
    data_url_count: int
    long_url_count: int


def annotate_uids(source: bytes, tree: HtmlTree, start: int, end: int, *, whole: bool) -> str:
    """Return the markup from `start` to `end` with the attribute `uid` on every element.

    Args:
        whole: keep the contents of style and script elements.
    """
    splices: list[Splice] = []
    for element in tree.elements:
        if not start <= element.start < end:
            continue
        splices.append(Splice(element.name_end, element.name_end, f' uid="{element.uid}"'.encode()))
        foreign_uids = (attribute for attribute in element.attributes if attribute.name == "uid")
        splices += [Splice(attribute.start, attribute.end, b"") for attribute in foreign_uids]
        if not whole and element.tag in ("style", "script"):
            splices += _omit_content(source, element)
    shifted = [Splice(splice.start - start, splice.end - start, splice.text) for splice in splices]
    return apply_splices(source[start:end], shifted).decode("utf-8", "replace")


def _omit_content(source: bytes, element: Element) -> list[Splice]:
    content = source[element.inner_start : element.inner_end]
    if not content.strip():
        return []
    note = "/* see css */" if is_page_stylesheet(element) else f"/* {len(content)} bytes, left as they are */"
    return [Splice(element.inner_start, element.inner_end, note.encode())]


def join_stylesheets(sheets: Iterable[bytes]) -> str:
    """Join the contents of several style sheets to one text."""
    texts = (sheet.decode("utf-8", "replace").removeprefix("\ufeff") for sheet in sheets)
    return "\n\n".join(dedent(text.replace("\r\n", "\n")).strip() for text in texts if text.strip())


def omit_long_urls(text: str) -> CleanedText:
    """Replace base64 data, and the middle of very long addresses, with a note of how much was omitted."""

    def shorten_data_url(match: re.Match[str]) -> str:
        return f"data:{match[1] or ''}{match[2]};base64,[omitted {len(match[3])} chars]"

    def shorten_url(match: re.Match[str]) -> str:
        omitted = len(match[0]) - LONG_URL_HEAD_CHARS - LONG_URL_TAIL_CHARS
        return f"{match[0][:LONG_URL_HEAD_CHARS]}[omitted {omitted} chars]{match[0][-LONG_URL_TAIL_CHARS:]}"

    text, data_url_count = _DATA_URL.subn(shorten_data_url, text)
    text, long_url_count = _LONG_URL.subn(shorten_url, text)
    return CleanedText(text, data_url_count, long_url_count)


def read_document_part(html: str, css: str, part_number: int, max_chars: int = MAX_PART_CHARS) -> JsonObject:
    """Return one part of a document, numbered from 1: `{html, css, pageInfo}`.

    Raises:
        EditError: there is no such part.
    """
    cleaned_html, cleaned_css = omit_long_urls(html), omit_long_urls(css)
    parts = split_document(cleaned_html.text, cleaned_css.text, max_chars - MAX_PAGE_INFO_CHARS)
    if part_number > len(parts):
        raise EditError(f"There is no part {part_number}; the document has {len(parts)}.")
    part = parts[part_number - 1]
    body = {"html": part.html.slice_of(cleaned_html.text), "css": part.css.slice_of(cleaned_css.text)}
    page_info = {
        "part": part_number,
        "totalParts": len(parts),
        "nextPart": part_number + 1 if part_number < len(parts) else None,
        "maxChars": max_chars,
        "totalChars": len(cleaned_html.text) + len(cleaned_css.text),
        "returnedChars": len(body["html"]) + len(body["css"]),
        "serializedChars": json_length(body["html"]) + json_length(body["css"]),
        "ranges": [
            *_describe_range("html", part.html, cleaned_html.text),
            *_describe_range("css", part.css, cleaned_css.text),
        ],
        "cleanedStrings": _count_omissions(cleaned_html, cleaned_css),
        "note": "Read the next part until nextPart is null." if len(parts) > 1 else "This is the whole document.",
    }
    page_info["serializedChars"] = len(json.dumps({**body, "pageInfo": page_info}, ensure_ascii=False))
    return {**body, "pageInfo": page_info}


def _describe_range(field: str, text_range: TextRange, text: str) -> list[JsonObject]:
    """Return where the part is in a text; nothing if it has none of it."""
    if text_range.end <= text_range.start:
        return []
    return [{"field": field, "start": text_range.start, "end": text_range.end, "totalChars": len(text)}]


def _count_omissions(*cleaned_texts: CleanedText) -> JsonObject:
    return {
        "base64DataUrls": sum(cleaned.data_url_count for cleaned in cleaned_texts),
        "longUrls": sum(cleaned.long_url_count for cleaned in cleaned_texts),
    }
