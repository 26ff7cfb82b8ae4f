"""Tell the model about markup and rules that an edit brings in and that work other than they look."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import wraps
from html import unescape

from fermata_client.css.foreign_imports import foreign_imports
from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.content_model import UNNESTABLE_TAGS
from fermata_client.html.template_preamble import UTF8_BOM
from fermata_client.tools.arguments import ToolArguments
from fermata_client.tools.tool_function import ToolEffect, ToolFunction

MAX_LISTED_WARNINGS = 5
_CHARSET_IN_CONTENT = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.I)


def warn_of_new_problems(tool: ToolFunction) -> ToolFunction:
    """Wrap a tool, so that its note names the problems that only the edited page has."""

    @wraps(tool)
    def warning(document: HtmlDocument, arguments: ToolArguments) -> ToolEffect:
        edited, data = tool(document, arguments)
        if edited is document:
            return edited, data
        old_warnings = set(iter_warnings(document))
        added = [text for text in dict.fromkeys(iter_warnings(edited)) if text not in old_warnings]
        if not added:
            return edited, data
        notes = [str((data or {}).get("note", "")), *added[:MAX_LISTED_WARNINGS]]
        return edited, {**(data or {}), "note": " ".join(note for note in notes if note)}

    return warning


def iter_warnings(document: HtmlDocument) -> Iterator[str]:
    """Yield a sentence for each problem of the page."""
    yield from _iter_nested(document)
    if (charset := _foreign_charset(document)) and not document.source.isascii():
        yield (
            f"The page says that its characters are in {charset}, but it is saved as UTF-8: browsers show wrong "
            "characters. Change that meta element to utf-8."
        )
    ids = [unescape(own_id) for element in document.tree.elements if (own_id := element.attribute_value("id"))]
    for own_id, count in Counter(ids).items():
        if count > 1:
            yield f"The id “{own_id}” occurs more than once on this page; links and scripts find the first only."
    for sheet in document.sheet_elements:
        for address in foreign_imports(document.sheet_source(sheet)):
            yield (
                f"An @import loads {address} from another site each time the page is shown. It cannot be read here; "
                "leave it out unless it was asked for."
            )


def _foreign_charset(document: HtmlDocument) -> str | None:
    """Return the character set that the page declares, if browsers do not read it as UTF-8 then."""
    if document.source.startswith(UTF8_BOM):
        return None
    for element in document.tree.elements:
        if element.tag == "meta":
            content = _CHARSET_IN_CONTENT.search(element.attribute_value("content") or "")
            is_header = (element.attribute_value("http-equiv") or "").strip().lower() == "content-type"
            charset = element.attribute_value("charset") or (content[1] if content and is_header else None)
            if charset:
                return None if charset.strip().lower().startswith(("utf", "unicode")) else charset.strip()
    return None


def _iter_nested(document: HtmlDocument) -> Iterator[str]:
    for element in document.tree.elements:
        if element.tag in UNNESTABLE_TAGS:
            outer = next((ancestor for ancestor in element.ancestors() if ancestor.tag == element.tag), None)
            if outer is not None:
                yield (
                    f"The <{element.tag}> {element.uid} is within the <{element.tag}> {outer.uid}, which browsers "
                    "do not allow: they end the outer one or ignore the inner one. Put them next to each other."
                )
