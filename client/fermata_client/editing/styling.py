"""`applyCss` in its four operations."""

from typing import Any

from fermata_client.editing import given as read
from fermata_client.editing.given import Given
from fermata_client.html.cannot import CannotDo
from fermata_client.html.css_removal import without_properties, without_rules
from fermata_client.html.css_rules import key_of
from fermata_client.html_document import HtmlDocument, css_counts

OPERATIONS = ("merge", "replace", "delete", "remove-properties")


def apply_css(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    match given.get("operation", "merge"):
        case "merge" | "replace" as operation:
            styled, counts = document.style(read.text(given, "css"), replace_whole=operation == "replace")
            return styled, css_counts(counts)
        case "delete":
            return _delete(document, read.texts(given, "selectors"))
        case "remove-properties":
            return _remove(document, read.texts(given, "selectors"), read.texts(given, "properties"))
        case other:
            raise CannotDo(f"There is no operation `{other}`: it is one of {', '.join(OPERATIONS)}.")


def _delete(document: HtmlDocument, selectors: list[str]) -> tuple[HtmlDocument, Any]:
    contents, gone = without_rules(_contents(document), selectors)
    missing = [selector for selector in selectors if key_of(selector) not in gone]
    if not gone:
        raise CannotDo(_unknown(missing))
    note = {"note": _unknown(missing)} if missing else {}
    return document.with_sheets(contents), {"cssRulesDeleted": len(gone), **note}


def _remove(document: HtmlDocument, selectors: list[str], properties: list[str]) -> tuple[HtmlDocument, Any]:
    contents, count = without_properties(_contents(document), selectors, properties)
    if not count:
        raise CannotDo(f"No rule for {', '.join(selectors)} sets {', '.join(properties)}. Read the document's css.")
    return document.with_sheets(contents), {"cssPropertiesRemoved": count}


def _contents(document: HtmlDocument) -> list[bytes]:
    return [document.sheet(sheet) for sheet in document.writable_sheets]


def _unknown(selectors: list[str]) -> str:
    return f"There is no rule for {', '.join(selectors)}. Take the selector as it stands in the document's css."
