"""`applyCss`: merge, replace and delete rules, and remove properties."""

from fermata_client.css.parser import rule_key
from fermata_client.css.removal import remove_properties, remove_rules
from fermata_client.document.edit_result_data import rule_counts_to_wire
from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.edit_error import EditError
from fermata_client.service.json_types import JsonObject
from fermata_client.tools.arguments import ToolArguments, required_text, required_texts
from fermata_client.tools.tool_function import ToolEffectWithData

CSS_OPERATIONS = ("merge", "replace", "delete", "remove-properties")


def apply_css(document: HtmlDocument, arguments: ToolArguments) -> ToolEffectWithData:
    match arguments.get("operation", "merge"):
        case "merge" | "replace" as operation:
            css = required_text(arguments, "css")
            edited, counts = document.put_css(css, replace_existing=operation == "replace")
            return edited, {**rule_counts_to_wire(counts)}
        case "delete":
            return _delete_rules(document, required_texts(arguments, "selectors"))
        case "remove-properties":
            selectors = required_texts(arguments, "selectors")
            return _remove_properties(document, selectors, required_texts(arguments, "properties"))
        case other:
            raise EditError(f"There is no operation `{other}`: it is one of {', '.join(CSS_OPERATIONS)}.")


def _delete_rules(document: HtmlDocument, selectors: list[str]) -> ToolEffectWithData:
    contents, removed_keys = remove_rules(_writable_contents(document), selectors)
    known_keys = frozenset(removed_keys)
    unknown = [selector for selector in selectors if rule_key(selector) not in known_keys]
    if not removed_keys:
        raise EditError(_describe_unknown(unknown))
    data: JsonObject = {"cssRulesDeleted": len(removed_keys)}
    if unknown:
        data["note"] = _describe_unknown(unknown)
    return document.with_sheet_contents(contents), data


def _remove_properties(document: HtmlDocument, selectors: list[str], properties: list[str]) -> ToolEffectWithData:
    contents, removed_count = remove_properties(_writable_contents(document), selectors, properties)
    if not removed_count:
        raise EditError(f"No rule for {', '.join(selectors)} sets {', '.join(properties)}. Read the document's css.")
    return document.with_sheet_contents(contents), {"cssPropertiesRemoved": removed_count}


def _writable_contents(document: HtmlDocument) -> list[bytes]:
    return [document.sheet_source(sheet) for sheet in document.writable_sheets]


def _describe_unknown(selectors: list[str]) -> str:
    return f"There is no rule for {', '.join(selectors)}. Use the selector as it is written in the document's css."
