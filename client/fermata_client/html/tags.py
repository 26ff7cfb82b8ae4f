"""List sets of HTML tag names, by how the HTML standard parses them."""

from dataclasses import dataclass


def name_set(text: str) -> frozenset[str]:
    """Return the names in a text, which spaces separate."""
    return frozenset(text.split())


ROOT_TAG = "#document"
"""Tag of the element that represents the whole file."""
VOID_TAGS = name_set(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr"
)
HIDDEN_TEXT_TAGS = name_set("iframe noembed noframes")
"""Elements whose content is text that no browser of today shows."""
RAW_TEXT_TAGS = name_set("script style textarea title xmp plaintext") | HIDDEN_TEXT_TAGS
"""Elements whose content is text. A browser with scripting also reads that of `<noscript>` so (decision 0414)."""
TAGS_TO_THE_END = frozenset({"plaintext"})
"""Elements that nothing ends: the rest of the page is their text."""
HEAD_TAGS = name_set("base link meta noscript script style template title")
FOREIGN_TAGS = frozenset({"svg", "math"})
PARAGRAPH_CLOSING_TAGS = name_set(
    "address article aside blockquote details dialog div dl fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 "
    "header hgroup hr main menu nav ol p pre search section table ul"
)
PARAGRAPH_SCOPE_TAGS = "button td th caption table svg math"
"""A paragraph outside of one of these is not closed by what is inside of it."""
ISOLATING_TAGS = frozenset({"template", "noscript"})
"""Elements whose content ends no element around them."""
ENCLOSING_TAGS = name_set("table td th caption") | ISOLATING_TAGS
"""Elements out of which no end tag reaches, but those of tables and of the page."""
REACHING_TAGS = name_set("table caption colgroup thead tbody tfoot tr td th template noscript head body html")
"""Elements whose end tags reach out of enclosing elements."""


@dataclass(frozen=True)
class ImpliedEnd:
    """A start tag ends open elements of the tags `closes`, unless an open one of `scope` is inside of them."""

    closes: frozenset[str]
    scope: frozenset[str]


def _implied_end(closes: str, scope: str) -> ImpliedEnd:
    return ImpliedEnd(name_set(closes), name_set(scope) | ISOLATING_TAGS)


IMPLIED_ENDS: dict[str, ImpliedEnd] = {
    "li": _implied_end("li", scope="ul ol menu"),
    "dt": _implied_end("dt dd", scope="dl"),
    "dd": _implied_end("dt dd", scope="dl"),
    "tr": _implied_end("tr td th", scope="table"),
    "td": _implied_end("td th", scope="tr table"),
    "th": _implied_end("td th", scope="tr table"),
    "thead": _implied_end("thead tbody tfoot tr", scope="table"),
    "tbody": _implied_end("thead tbody tfoot tr caption colgroup", scope="table"),
    "tfoot": _implied_end("thead tbody tfoot tr", scope="table"),
    "option": _implied_end("option", scope="select datalist"),
    "optgroup": _implied_end("option optgroup", scope="select"),
    "rb": _implied_end("rb rt rtc rp", scope="ruby"),
    "rtc": _implied_end("rb rt rtc rp", scope="ruby"),
    "rt": _implied_end("rb rt rp", scope="ruby rtc"),
    "rp": _implied_end("rb rt rp", scope="ruby rtc"),
    "body": _implied_end("head", scope="html"),
}
"""By the tag that starts."""
PARAGRAPH_IMPLIED_END = _implied_end("p", scope=PARAGRAPH_SCOPE_TAGS)
