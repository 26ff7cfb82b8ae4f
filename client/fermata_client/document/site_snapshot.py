"""Build the snapshot that a site's editor posts, for a site of one HTML file."""

from fermata_client.document.breakpoints import BASE_BREAKPOINT, find_breakpoints
from fermata_client.document.html_document import HtmlDocument
from fermata_client.document.snapshot_design_tokens import font_tokens, framework_settings
from fermata_client.service.json_types import JsonObject


def build_site_snapshot(document: HtmlDocument) -> JsonObject:
    """Build the snapshot without the page's nodes, which the model reads with `read_document`."""
    page = {
        "id": document.id,
        "slug": document.id,
        "title": document.title or document.id,
        "rootNodeId": document.content_root.uid,
        "nodes": {},
    }
    return {
        "page": page,
        "currentDocument": {"type": "page", "id": document.id},
        "site": _site_member(document, page),
        "selectedNodeId": None,
        "activeBreakpointId": BASE_BREAKPOINT["id"],
    }


def _site_member(document: HtmlDocument, page: JsonObject) -> JsonObject:
    return {
        "id": page["id"],
        "name": page["title"],
        "breakpoints": find_breakpoints(document),
        "settings": _settings_member(document, page),
        "styleRules": {},
        "files": [],
        "explorer": _empty_explorer(),
        "packageJson": {"dependencies": {}, "devDependencies": {}},
        "runtime": {"dependencyLock": {"version": 1, "packages": {}, "updatedAt": 0}, "scripts": {}, "styles": {}},
        "createdAt": 0,
        "updatedAt": 0,
        "pages": [page],
        "visualComponents": [],
        "layouts": [],
    }


def _empty_explorer() -> JsonObject:
    listed: JsonObject = {"expandedFolders": [], "emptyFolders": [], "rowOrder": []}
    foldered: JsonObject = {"folders": [], "items": []}
    return {
        **dict.fromkeys(("pages", "styles", "scripts"), listed),
        **dict.fromkeys(("templates", "components"), foldered),
    }


def _settings_member(document: HtmlDocument, page: JsonObject) -> JsonObject:
    settings: JsonObject = {"shortcuts": {}, "metaTitle": page["title"]}
    html = document.tree.find_first("html")
    if language := html.attribute_value("lang") if html else None:
        settings["language"] = language
    if framework := framework_settings(document):
        settings["framework"] = framework
    if fonts := font_tokens(document):
        settings["fonts"] = {"items": [], "tokens": fonts}
    return settings
