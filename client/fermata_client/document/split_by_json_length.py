"""Split the HTML and CSS of a page into parts whose JSON text has a bounded length."""

import json
from dataclasses import dataclass

LONGEST_JSON_ESCAPE = 6
"""Characters of `\\u0000`, the longest text that one character becomes in JSON."""


@dataclass(frozen=True)
class TextRange:
    start: int
    end: int

    def slice_of(self, text: str) -> str:
        return text[self.start : self.end]


@dataclass(frozen=True)
class DocumentPart:
    html: TextRange
    css: TextRange


def split_document(html: str, css: str, max_json_chars: int) -> list[DocumentPart]:
    """Split the HTML, then the CSS. CSS also fills the rest of the last HTML part."""
    parts: list[DocumentPart] = []
    html_start = css_end = 0
    while True:
        html_end = _find_part_end(html, html_start, max_json_chars)
        is_last = html_end == len(html)
        remaining_chars = max_json_chars - json_length(html[html_start:html_end]) if is_last else 0
        css_end = _find_part_end(css, 0, remaining_chars) if remaining_chars > 0 else 0
        parts.append(DocumentPart(TextRange(html_start, html_end), TextRange(0, css_end)))
        html_start = html_end
        if is_last:
            break
    while css_end < len(css):
        css_start, css_end = css_end, _find_part_end(css, css_end, max_json_chars)
        parts.append(DocumentPart(TextRange(len(html), len(html)), TextRange(css_start, css_end)))
    return parts


def json_length(text: str) -> int:
    """Return the length of the text as JSON, without quotes around it."""
    return len(json.dumps(text, ensure_ascii=False)) - 2


def _find_part_end(text: str, start: int, max_json_chars: int) -> int:
    """Return the largest end within the limit; one after a line or a tag in the second half of the part."""
    low, high = start, min(len(text), start + max_json_chars)
    while low < high:  # bisection, because a character has one to six characters in JSON
        middle = (low + high + 1) // 2
        if json_length(text[start:middle]) <= max_json_chars:
            low = middle
        else:
            high = middle - 1
    if low == len(text):
        return low
    boundary = max(text.rfind("\n", start, low), text.rfind(">", start, low)) + 1
    end = boundary if boundary > start + (low - start) // 2 else low
    return max(end, start + 1) if max_json_chars >= LONGEST_JSON_ESCAPE else end
