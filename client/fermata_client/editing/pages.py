"""The page as a whole: reading it, opening it, its title, and what a single file cannot be asked for."""

from html import escape
from typing import Any

from fermata_client.editing import given as read
from fermata_client.editing.code import one_document
from fermata_client.editing.dangling import lost_links
from fermata_client.editing.given import Given
from fermata_client.html.cannot import CannotDo
from fermata_client.html.layout import Splice
from fermata_client.html_document import HtmlDocument

REFUSED = {
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


def read_document(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    here = one_document(document, given)
    part = read.whole(given, "part", 1) or 1
    return document, {"document": here, "title": document.title, **document.read_part(part)}


def open_document(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    return document, {"document": one_document(document, given)}


def node_html(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    return document, {"html": document.node_html(read.text(given, "nodeId"))}


def insert_html(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    return document.insert(read.text(given, "parentId"), read.text(given, "html"), read.whole(given, "index"))


def replace_node_html(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    edited, data = document.replace(read.text(given, "nodeId"), read.text(given, "html"))
    notes = [note for note in (data.get("note", ""), lost_links(document.page, edited.page)) if note]
    return edited, {**data, **({"note": " ".join(notes)} if notes else {})}


def delete_node(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    edited = document.delete(read.text(given, "nodeId"))
    note = lost_links(document.page, edited.page)
    return edited, {"note": note} if note else None


def rename_page(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    """The title in the head. The address of the page is the name of its file, which is not ours to change."""
    if read.text(given, "pageId") != document.id:
        raise CannotDo(f"There is only one page here: {document.id}.")
    if read.optional_text(given, "slug") not in ("", document.id):
        raise CannotDo(
            f"The address of this page is the name of its file ({document.path}), which only its owner changes. "
            "Send the title alone."
        )
    words = " ".join(read.text(given, "title").split())
    if not words:
        raise CannotDo("`title` has no words in it.")
    title = escape(words, quote=False).encode("utf-8", "replace")
    there = document.title_element
    if there is None:
        return document.with_in_head("title", [b"<title>" + title + b"</title>"]), None
    return document.edited([Splice(there.inner_start, there.inner_end, title)], there), None
