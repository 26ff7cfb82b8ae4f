"""`applyCss` in its four operations."""

from typing import Any

from fermata_client.css.parser import rule_key
from fermata_client.css.removal import remove_properties, remove_rules
from fermata_client.document.html_document import HtmlDocument, rule_counts_to_wire
from fermata_client.html.errors import EditError
from fermata_client.tools.arguments import ToolArguments, required_text, required_texts

CSS_OPERATIONS = ("merge", "replace", "delete", "remove-properties")


def apply_css(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    match given.get("operation", "merge"):
        case "merge" | "replace" as operation:
            styled, counts = document.put_css(required_text(given, "css"), replace_existing=operation == "replace")
            return styled, rule_counts_to_wire(counts)
        case "delete":
            return _delete(document, required_texts(given, "selectors"))
        case "remove-properties":
            return _remove(document, required_texts(given, "selectors"), required_texts(given, "properties"))
        case other:
            raise EditError(f"There is no operation `{other}`: it is one of {', '.join(CSS_OPERATIONS)}.")


def _delete(document: HtmlDocument, selectors: list[str]) -> tuple[HtmlDocument, Any]:
    contents, gone = remove_rules(_contents(document), selectors)
    missing = [selector for selector in selectors if rule_key(selector) not in gone]
    if not gone:
        raise EditError(_unknown(missing))
    note = {"note": _unknown(missing)} if missing else {}
    return document.with_sheet_contents(contents), {"cssRulesDeleted": len(gone), **note}


def _remove(document: HtmlDocument, selectors: list[str], properties: list[str]) -> tuple[HtmlDocument, Any]:
    contents, count = remove_properties(_contents(document), selectors, properties)
    if not count:
        raise EditError(f"No rule for {', '.join(selectors)} sets {', '.join(properties)}. Read the document's css.")
    return document.with_sheet_contents(contents), {"cssPropertiesRemoved": count}


def _contents(document: HtmlDocument) -> list[bytes]:
    return [document.sheet_source(sheet) for sheet in document.writable_sheets]


def _unknown(selectors: list[str]) -> str:
    return f"There is no rule for {', '.join(selectors)}. Take the selector as it stands in the document's css."
