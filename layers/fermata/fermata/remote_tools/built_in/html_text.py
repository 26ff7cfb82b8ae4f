"""Turn an HTML page into its title and its text, in one pass over it."""

from html import unescape
from typing import NamedTuple

_UNREAD = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "nav", "footer", "title"})
_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset", "figcaption"),
        *("figure", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "ol", "p", "pre"),
        *("section", "table", "td", "th", "tr", "ul"),
    )
)


class PageText(NamedTuple):
    """The title of a page, and what it says."""

    title: str
    text: str


def extract_page_text(html: str, max_chars: int) -> PageText:
    """Return what a page says, without scripts, styles, navigation and tags.

    Args:
        html: The page, which may be malformed in any way.
        max_chars: The greatest number of characters of the text.
    """
    lowered = html.lower()
    if len(lowered) != len(html):  # a few capital letters become two characters, which would move all places
        lowered = "".join(char.lower() if len(char.lower()) == 1 else char for char in html)
    title = _find_title(html, lowered)
    parts: list[str] = []
    place = 0
    while place < len(html):
        start = html.find("<", place)
        if start < 0:
            parts.append(html[place:])
            break
        parts.append(html[place:start])
        place = _skip_tag(lowered, start, parts)
    text = unescape("".join(parts))
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return PageText(title, "\n".join(line for line in lines if line)[:max_chars])


def _skip_tag(lowered: str, start: int, parts: list[str]) -> int:
    """Return where the text goes on behind a tag, a comment, or an element whose content is not read."""
    if lowered.startswith("<!--", start):
        return _find_after(lowered, "-->", start + 4)
    after = lowered[start + 1 : start + 2]
    if not (after.isalpha() or after in ("/", "!", "?")):
        parts.append("<")
        return start + 1
    end = _find_after(lowered, ">", start)
    name = lowered[start + 1 : min(end, start + 40)].lstrip("/").split(">", 1)[0].split("/", 1)[0].split(None, 1)
    tag = name[0] if name else ""
    if tag in _BLOCKS or tag in _UNREAD:
        parts.append("\n")
    if tag in _UNREAD and after != "/":
        return _find_after(lowered, ">", _find_after(lowered, f"</{tag}", end) - 1)
    return end


def _find_after(text: str, wanted: str, start: int) -> int:
    """Return the place behind a text, or the end if it does not occur any more, so that nothing is looked at twice."""
    found = text.find(wanted, start)
    return len(text) if found < 0 else found + len(wanted)


def _find_title(html: str, lowered: str) -> str:
    start = lowered.find("<title")
    if start < 0:
        return ""
    begin = _find_after(lowered, ">", start)
    end = lowered.find("</title", begin)
    return " ".join(unescape(html[begin : end if end >= 0 else begin]).split())[:300]
