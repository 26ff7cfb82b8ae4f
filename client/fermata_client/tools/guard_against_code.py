"""Check that an edit adds no code to the page, and changes nothing outside of what it edits (decision 0124).

Both are decided on the edited page, read as a browser reads it.
"""

from collections.abc import Iterable
from functools import wraps

from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.active_content import ActiveContent
from fermata_client.html.browser_parser import count_elements, count_raw_texts
from fermata_client.html.edit_error import EditError
from fermata_client.html.template_preamble import find_server_code
from fermata_client.tools.arguments import ToolArguments
from fermata_client.tools.tool_function import ToolEffect, ToolFunction

MAX_LISTED_FINDINGS = 5


def guard_against_code(tool: ToolFunction) -> ToolFunction:
    """Wrap a tool, so that it raises `EditError` if the page would run more than before."""

    @wraps(tool)
    def guarded(document: HtmlDocument, arguments: ToolArguments) -> ToolEffect:
        edited, data = tool(document, arguments)
        check_no_new_code(document, edited)
        check_no_new_server_code(document, edited)
        return edited, data

    return guarded


def check_no_new_code(before: HtmlDocument, after: HtmlDocument) -> None:
    """Raise `EditError` for active content that only `after` has."""
    added = sorted(after.active_content - before.active_content) if before.source != after.source else []
    if added:
        raise EditError(
            f"A browser would find code in this: {_describe(added)}. Nothing was changed. Send it without that; write "
            "behaviour with write_code_asset."
        )


def check_no_new_server_code(before: HtmlDocument, after: HtmlDocument) -> None:
    """Raise `EditError` for code of the server, such as PHP's, that only `after` has."""
    if find_server_code(after.source) - find_server_code(before.source):
        raise EditError("A server could run a part of this, between <? and ?> or <% and %>. Send it without that.")


def check_same_end(before: HtmlDocument, after: HtmlDocument, tag: str, old_text: str, new_text: str) -> None:
    """Raise `EditError` unless the new text of a script or style element is the only difference."""
    expected_texts = count_raw_texts(before.source)
    expected_texts[_normalize_newlines(old_text)] -= 1
    expected_texts[_normalize_newlines(new_text)] += 1
    has_same_texts = +expected_texts == count_raw_texts(after.source)
    if not has_same_texts or count_elements(before.source) != count_elements(after.source):
        raise EditError(
            f"With this text the <{tag}> would end at another place, so the page behind it would be lost or become "
            f"code. Do not write <!-- together with <script, nor </{tag}; a backslash parts them, as in <\\!--."
        )


def _describe(active: Iterable[ActiveContent]) -> str:
    described = list(dict.fromkeys(str(part) for part in active))
    return ", ".join(described[:MAX_LISTED_FINDINGS]) + (" and more" if len(described) > MAX_LISTED_FINDINGS else "")


def _normalize_newlines(text: str) -> str:
    """Normalize line ends as a browser does."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
