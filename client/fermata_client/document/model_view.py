"""A page as the model reads it: every element with its id, style sheets apart, nothing huge, in bounded parts."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

from fermata_client.html.errors import EditError
from fermata_client.html.splices import Splice, apply_splices
from fermata_client.html.tree import Element, HtmlTree

MAX_PART_CHARS = 80_000
"""Of one part, counted as the JSON text the model is sent."""
MAX_PAGE_INFO_CHARS = 1_000

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[\w=.+-]+)*);base64,([A-Za-z0-9+/=_-]{120,})")
_LONG_URL = re.compile(r"(?:https?:|data:)[^\s\"'<>)]{400,}")


@dataclass(frozen=True)
class CleanedText:
    text: str
    data_urls: int
    long_urls: int


def annotate_uids(source: bytes, page: HtmlTree, start: int, end: int, *, whole: bool) -> str:
    """The bytes from `start` to `end` with `uid` on every element; `whole` keeps style sheets and scripts in place."""
    splices: list[Splice] = []
    for element in page.elements:
        if not start <= element.start < end:
            continue
        splices.append(Splice(element.name_end, element.name_end, f' uid="{element.uid}"'.encode()))
        splices += [Splice(a.start, a.end, b"") for a in element.attributes if a.name == "uid"]
        if not whole and element.tag in ("style", "script"):
            splices += _set_aside(source, element)
    local = [Splice(splice.start - start, splice.end - start, splice.text) for splice in splices]
    return apply_splices(source[start:end], local).decode("utf-8", "replace")


def _set_aside(source: bytes, element: Element) -> list[Splice]:
    content = source[element.inner_start : element.inner_end]
    if not content.strip():
        return []
    sheet = element.tag == "style" and not element.is_within("svg")
    note = "/* see css */" if sheet else f"/* {len(content)} bytes, left as they are */"
    return [Splice(element.inner_start, element.inner_end, note.encode())]


def join_stylesheets(sheets: Iterable[bytes]) -> str:
    """The contents of several style sheets as one text."""
    texts = (sheet.decode("utf-8", "replace").removeprefix("\ufeff") for sheet in sheets)
    return "\n\n".join(dedent(text.replace("\r\n", "\n")).strip() for text in texts if text.strip())


def omit_long_urls(text: str) -> CleanedText:
    """Without base64 data and with the middle of very long addresses left out."""
    text, data_urls = _DATA_URL.subn(lambda m: f"data:{m[1] or ''}{m[2]};base64,[omitted {len(m[3])} chars]", text)
    text, long_urls = _LONG_URL.subn(lambda m: f"{m[0][:120]}[omitted {len(m[0]) - 160} chars]{m[0][-40:]}", text)
    return CleanedText(text, data_urls, long_urls)


def document_part(html: str, css: str, part: int, max_chars: int = MAX_PART_CHARS) -> dict[str, Any]:
    """`{html, css, pageInfo}` of one part; `pageInfo.nextPart` names the next one."""
    clean_html, clean_css = omit_long_urls(html), omit_long_urls(css)
    parts = _parts(clean_html.text, clean_css.text, max_chars - MAX_PAGE_INFO_CHARS)
    if part > len(parts):
        raise EditError(f"There is no part {part}; the document has {len(parts)}.")
    html_range, css_range = parts[part - 1]
    body = {"html": clean_html.text[slice(*html_range)], "css": clean_css.text[slice(*css_range)]}
    texts = {"html": (html_range, clean_html.text), "css": (css_range, clean_css.text)}
    info = {
        "part": part,
        "totalParts": len(parts),
        "nextPart": part + 1 if part < len(parts) else None,
        "maxChars": max_chars,
        "totalChars": len(clean_html.text) + len(clean_css.text),
        "returnedChars": len(body["html"]) + len(body["css"]),
        "serializedChars": _json_chars(body["html"]) + _json_chars(body["css"]),
        "ranges": [
            {"field": name, "start": at[0], "end": at[1], "totalChars": len(text)}
            for name, (at, text) in texts.items()
            if at[1] > at[0]
        ],
        "cleanedStrings": {
            "base64DataUrls": clean_html.data_urls + clean_css.data_urls,
            "longUrls": clean_html.long_urls + clean_css.long_urls,
        },
        "note": "Read the next part until nextPart is null." if len(parts) > 1 else "This is the whole document.",
    }
    info["serializedChars"] = len(json.dumps({**body, "pageInfo": info}, ensure_ascii=False))
    return {**body, "pageInfo": info}


TextRange = tuple[int, int]


def _parts(html: str, css: str, budget: int) -> list[tuple[TextRange, TextRange]]:
    """First the HTML, then the CSS, each part within the budget; the last HTML part is filled up with CSS."""
    parts: list[tuple[TextRange, TextRange]] = []
    at = 0
    while True:
        end = _cut(html, at, budget)
        room = budget - _json_chars(html[at:end]) if end == len(html) else 0
        css_end = _cut(css, 0, room) if room > 0 else 0
        parts.append(((at, end), (0, css_end)))
        at = end
        if at == len(html):
            break
    while css_end < len(css):
        end = _cut(css, css_end, budget)
        parts.append(((len(html), len(html)), (css_end, end)))
        css_end = end
    return parts


def _cut(text: str, start: int, budget: int) -> int:
    """The furthest end within the budget, behind a line or a tag where there is one near."""
    low, high = start, min(len(text), start + budget)
    while low < high:  # characters cost between one and six, so look for the end by halving
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _json_chars(text[start:middle]) <= budget else (low, middle - 1)
    if low == len(text):
        return low
    near = max(text.rfind("\n", start, low), text.rfind(">", start, low)) + 1
    end = near if near > start + (low - start) // 2 else low
    return max(end, start + 1) if budget >= 6 else end


def _json_chars(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False)) - 2
