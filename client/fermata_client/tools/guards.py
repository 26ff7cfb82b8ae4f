"""No edit brings code into the page unless it is a tool for code, and none lets new markup swallow what was there.

Both are decided on the page as it would be, read as a browser reads it.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.active_content import ActiveContent
from fermata_client.html.browser_parser import count_elements, count_raw_texts
from fermata_client.html.errors import EditError
from fermata_client.tools.arguments import ToolArguments

ToolFunction = Callable[[HtmlDocument, ToolArguments], tuple[HtmlDocument, Any]]
"""The document afterwards, and what the model is told; raises CannotDo with a sentence for it."""
MAX_LISTED_FINDINGS = 5


def guard_against_code(tool: ToolFunction) -> ToolFunction:
    """The tool, refused where the page would run more than before."""

    @wraps(tool)
    def checked(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
        edited, data = tool(document, given)
        check_no_new_code(document, edited)
        return edited, data

    return checked


def check_no_new_code(before: HtmlDocument, after: HtmlDocument) -> None:
    new = sorted(after.active_content - before.active_content) if before.source != after.source else []
    if new:
        raise EditError(
            f"A browser would find code in this: {_listed(new)}. Nothing was changed. Send it without; behaviour is "
            "written with write_code_asset."
        )


def check_same_end(before: HtmlDocument, after: HtmlDocument, kind: str, old: str, new: str) -> None:
    """For another content of a script or style element: it must end where it ended."""
    there, now = count_raw_texts(before.source), count_raw_texts(after.source)
    old, new = _plain(old), _plain(new)
    swapped = there.copy()
    swapped[old] -= 1
    swapped[new] += 1
    if +swapped != now or count_elements(before.source) != count_elements(after.source):
        raise EditError(
            f"With this text the <{kind}> would end at another place, so the page behind it would be lost or become "
            f"code. Do not write <!-- together with <script, nor </{kind}; a backslash parts them, as in <\\!--."
        )


def _listed(new: list[ActiveContent]) -> str:
    described = list(dict.fromkeys(str(one) for one in new))
    return ", ".join(described[:MAX_LISTED_FINDINGS]) + (" and more" if len(described) > MAX_LISTED_FINDINGS else "")


def _plain(text: str) -> str:
    """With the line ends that a browser makes of them."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
