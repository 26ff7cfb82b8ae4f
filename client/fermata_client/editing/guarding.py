"""No edit brings code into the page unless it is a tool for code, and none lets new markup swallow what was there.

Both are decided on the page as it would be, read as a browser reads it.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from fermata_client.editing.given import Given
from fermata_client.html.cannot import CannotDo
from fermata_client.html.live import Live, elements_of, raw_texts
from fermata_client.html_document import HtmlDocument

Tool = Callable[[HtmlDocument, Given], tuple[HtmlDocument, Any]]
"""The document afterwards, and what the model is told; raises CannotDo with a sentence for it."""
LISTED = 5


def guarded(tool: Tool) -> Tool:
    """The tool, refused where the page would run more than before."""

    @wraps(tool)
    def checked(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
        edited, data = tool(document, given)
        refuse_new_code(document, edited)
        return edited, data

    return checked


def refuse_new_code(before: HtmlDocument, after: HtmlDocument) -> None:
    new = sorted(after.live - before.live) if before.source != after.source else []
    if new:
        raise CannotDo(
            f"A browser would find code in this: {_listed(new)}. Nothing was changed. Send it without; behaviour is "
            "written with write_code_asset."
        )


def refuse_moved_end(before: HtmlDocument, after: HtmlDocument, kind: str, old: str, new: str) -> None:
    """For another content of a script or style element: it must end where it ended."""
    there, now = raw_texts(before.source), raw_texts(after.source)
    old, new = _plain(old), _plain(new)
    swapped = there.copy()
    swapped[old] -= 1
    swapped[new] += 1
    if +swapped != now or elements_of(before.source) != elements_of(after.source):
        raise CannotDo(
            f"With this text the <{kind}> would end at another place, so the page behind it would be lost or become "
            f"code. Do not write <!-- together with <script, nor </{kind}; a backslash parts them, as in <\\!--."
        )


def _listed(new: list[Live]) -> str:
    described = list(dict.fromkeys(str(one) for one in new))
    return ", ".join(described[:LISTED]) + (" and more" if len(described) > LISTED else "")


def _plain(text: str) -> str:
    """With the line ends that a browser makes of them."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
