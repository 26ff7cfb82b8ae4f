"""The page as a whole: reading it, opening it, its title, and what a single file cannot be asked for."""

from html import escape
from typing import Any

from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.broken_links import describe_broken_links
from fermata_client.html.errors import EditError
from fermata_client.html.splices import Splice
from fermata_client.tools.arguments import ToolArguments, optional_integer, optional_text, required_text
from fermata_client.tools.code_assets import require_current_document

UNSUPPORTED_TOOLS = {
    "addPage": "This is a single HTML file, so no page can be added. Add a section to this page with insertHtml.",
    "deletePage": "This is a single HTML file, and it stays. Take away what is in it with deleteNode.",
    "duplicatePage": "This is a single HTML file, so it has no second page. Repeat a part of it with duplicateNode.",
    "setPageTemplate": "A single HTML file is no template: there is no content system that would fill it.",
    "clearPageTemplate": "A single HTML file is no template, so there is nothing to turn back.",
    "renameNode": (
        "A file has no list of layers, so a node has no label. To name a part for people who hear the page, set "
        "aria-label with updateNodeProps; to name it for links, set id."
    ),
}


def read_document(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    here = require_current_document(document, given)
    part = optional_integer(given, "part", 1) or 1
    return document, {"document": here, "title": document.title, **document.read_part(part)}


def open_document(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    return document, {"document": require_current_document(document, given)}


def get_node_html(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    return document, {"html": document.element_html(required_text(given, "nodeId"))}


def insert_html(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    return document.insert_html(
        required_text(given, "parentId"), required_text(given, "html"), optional_integer(given, "index")
    )


def replace_node_html(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    edited, data = document.replace_content(required_text(given, "nodeId"), required_text(given, "html"))
    notes = [note for note in (data.get("note", ""), describe_broken_links(document.tree, edited.tree)) if note]
    return edited, {**data, **({"note": " ".join(notes)} if notes else {})}


def delete_node(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    edited = document.delete_element(required_text(given, "nodeId"))
    note = describe_broken_links(document.tree, edited.tree)
    return edited, {"note": note} if note else None


def rename_page(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    """The title in the head. The address of the page is the name of its file, which is not ours to change."""
    if required_text(given, "pageId") != document.id:
        raise EditError(f"There is only one page here: {document.id}.")
    if optional_text(given, "slug") not in ("", document.id):
        raise EditError(
            f"The address of this page is the name of its file ({document.path}), which only its owner changes. "
            "Send the title alone."
        )
    words = " ".join(required_text(given, "title").split())
    if not words:
        raise EditError("`title` has no words in it.")
    title = escape(words, quote=False).encode("utf-8", "replace")
    there = document.title_element
    if there is None:
        return document.with_head_element("title", [b"<title>" + title + b"</title>"]), None
    return document.with_splices([Splice(there.inner_start, there.inner_end, title)], there), None
