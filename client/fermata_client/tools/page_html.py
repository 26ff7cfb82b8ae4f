"""Read and edit the page as a whole, and the content of its elements."""

import json
from html import escape

from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.broken_links import describe_broken_links
from fermata_client.html.edit_error import EditError
from fermata_client.html.removed_code import describe_code_within
from fermata_client.html.splices import Splice
from fermata_client.html.template_preamble import is_filled_into_template
from fermata_client.tools.arguments import ToolArguments, optional_integer, optional_text, required_text
from fermata_client.tools.tool_function import ToolEffect, ToolEffectWithData

UNSUPPORTED_TOOLS = {
    "addPage": "This is a single HTML file, so no page can be added. Add a section to this page with insertHtml.",
    "deletePage": "This is a single HTML file and cannot be deleted. Delete its content with deleteNode.",
    "duplicatePage": "This is a single HTML file, so it has no second page. Repeat a part of it with duplicateNode.",
    "setPageTemplate": "A single HTML file cannot be a template: no content system fills it.",
    "clearPageTemplate": "A single HTML file is not a template, so there is nothing to convert.",
    "renameNode": (
        "A file has no list of layers, so a node has no label. To name a part for screen readers, set "
        "aria-label with updateNodeProps; to name it for links, set id."
    ),
}
"""Tools whose result a file cannot hold, with the error that names another way (decision 0120)."""


def require_current_document(document: HtmlDocument, arguments: ToolArguments) -> dict[str, str]:
    """Return the reference of the only document; `EditError` if the call names another one."""
    current = {"type": "page", "id": document.id}
    requested = arguments.get("document")
    if requested is not None and requested != current:
        raise EditError(f"There is only one document here: {json.dumps(current)}.")
    return current


def read_document(document: HtmlDocument, arguments: ToolArguments) -> ToolEffectWithData:
    current = require_current_document(document, arguments)
    part_number = optional_integer(arguments, "part", 1) or 1
    return document, {"document": current, "title": document.title, **document.read_part(part_number)}


def open_document(document: HtmlDocument, arguments: ToolArguments) -> ToolEffectWithData:
    return document, {"document": require_current_document(document, arguments)}


def get_node_html(document: HtmlDocument, arguments: ToolArguments) -> ToolEffectWithData:
    return document, {"html": document.element_html(required_text(arguments, "nodeId"))}


def insert_html(document: HtmlDocument, arguments: ToolArguments) -> ToolEffectWithData:
    parent_id = required_text(arguments, "parentId")
    html = required_text(arguments, "html")
    return document.insert_html(parent_id, html, optional_integer(arguments, "index"))


def replace_node_html(document: HtmlDocument, arguments: ToolArguments) -> ToolEffectWithData:
    uid = required_text(arguments, "nodeId")
    edited, data = document.replace_content(uid, required_text(arguments, "html"))
    note = " ".join(text for text in (data.get("note", ""), _describe_loss(document, edited, uid)) if text)
    return edited, data | {"note": note} if note else data


def delete_node(document: HtmlDocument, arguments: ToolArguments) -> ToolEffect:
    uid = required_text(arguments, "nodeId")
    edited = document.delete_element(uid)
    note = _describe_loss(document, edited, uid)
    return edited, {"note": note} if note else None


def _describe_loss(document: HtmlDocument, edited: HtmlDocument, uid: str) -> str:
    """Return what works no more without the content of a node."""
    removed_code = describe_code_within(document.tree, document.find_element(uid))
    return " ".join(text for text in (describe_broken_links(document.tree, edited.tree), removed_code) if text)


def rename_page(document: HtmlDocument, arguments: ToolArguments) -> ToolEffect:
    """Set the title element. The page's address is the name of its file, which is not changed (decision 0120)."""
    if required_text(arguments, "pageId") != document.id:
        raise EditError(f"There is only one page here: {document.id}.")
    if optional_text(arguments, "slug") not in ("", document.id):
        raise EditError(
            f"The address of this page is the name of its file ({document.path}), which only its owner changes. "
            "Send the title alone."
        )
    title_text = " ".join(required_text(arguments, "title").split())
    if not title_text:
        raise EditError("`title` is empty.")
    title = escape(title_text, quote=False).encode("utf-8", "replace")
    element = document.title_element
    if element is None and is_filled_into_template(document.source):
        raise EditError(
            "This file fills blocks of another template, which has the title. Change its title block by hand."
        )
    if element is None:
        return document.with_head_element("title", [b"<title>" + title + b"</title>"]), None
    return document.with_splices([Splice(element.inner_start, element.inner_end, title)], element), None
