"""What an editor tells the service about its site, told about a site of one HTML file."""

import re
from pathlib import Path
from typing import Any

from fermata_client.html.css_rules import Rule, read
from fermata_client.html_document import HtmlDocument

BREAKPOINT = {"id": "all", "label": "All widths", "width": 1280, "icon": "monitor"}
_COLOR = re.compile(r"#[0-9a-f]{3,8}|(?:rgb|hsl|hwb|lab|lch|oklab|oklch|color|color-mix)a?\(.*\)", re.IGNORECASE)


def page_id(path: Path) -> str:
    """A short name that stays the same for the file: its stem, in address letters."""
    return re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-") or "page"


def site_snapshot(document: HtmlDocument, name: str) -> dict[str, Any]:
    """The page without its nodes: the model reads those with `read_document`."""
    page = {
        "id": name,
        "slug": name,
        "title": document.title or name,
        "rootNodeId": document.root.uid,
        "nodes": {},
    }
    return {
        "page": page,
        "currentDocument": {"type": "page", "id": name},
        "site": _site(document, page),
        "selectedNodeId": None,
        "activeBreakpointId": BREAKPOINT["id"],
    }


def _site(document: HtmlDocument, page: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": page["id"],
        "name": page["title"],
        "breakpoints": [BREAKPOINT],
        "settings": _settings(document, page),
        "styleRules": {},
        "files": [],
        "explorer": _explorer(),
        "packageJson": {"dependencies": {}, "devDependencies": {}},
        "runtime": {"dependencyLock": {"version": 1, "packages": {}, "updatedAt": 0}, "scripts": {}, "styles": {}},
        "createdAt": 0,
        "updatedAt": 0,
        "pages": [page],
        "visualComponents": [],
        "layouts": [],
    }


def _explorer() -> dict[str, Any]:
    listed: dict[str, Any] = {"expandedFolders": [], "emptyFolders": [], "rowOrder": []}
    foldered: dict[str, Any] = {"folders": [], "items": []}
    return {
        **dict.fromkeys(("pages", "styles", "scripts"), listed),
        **dict.fromkeys(("templates", "components"), foldered),
    }


def _settings(document: HtmlDocument, page: dict[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {"shortcuts": {}, "metaTitle": page["title"]}
    html = document.page.first("html")
    language = html.attribute("lang") if html else None
    if language:
        settings["language"] = language
    properties = custom_properties(document)
    if colors := _colors(properties):
        settings["framework"] = {"colors": {"tokens": colors}}
    if fonts := _fonts(properties):
        settings["fonts"] = {"tokens": fonts}
    return settings


def custom_properties(document: HtmlDocument) -> dict[str, str]:
    """The `--name: value` pairs that the page sets on its root element, outside of any condition."""
    rules: list[Rule] = []
    for sheet in document.sheets:
        rules += read(document.source[sheet.inner_start : sheet.inner_end])
    return {
        declaration.name: declaration.value
        for rule in rules
        if rule.key in (":root", "html", ":root,html")
        for declaration in rule.declarations
        if declaration.name.startswith("--")
    }


def _colors(properties: dict[str, str]) -> list[dict[str, Any]]:
    """Colour tokens as they are: an editor that knows only the file derives no shades from them."""
    found = [(name, value) for name, value in properties.items() if _COLOR.fullmatch(value)]
    return [
        {
            "id": name,
            "slug": name.removeprefix("--"),
            "lightValue": value,
            "darkModeEnabled": False,
            "generateUtilities": {"text": False, "background": False, "border": False, "fill": False},
            "generateTransparent": False,
            "generateShades": {"enabled": False, "count": 0},
            "generateTints": {"enabled": False, "count": 0},
            "order": order,
        }
        for order, (name, value) in enumerate(found)
    ]


def _fonts(properties: dict[str, str]) -> list[dict[str, Any]]:
    found = [(name, value) for name, value in properties.items() if name.startswith("--font-")]
    return [
        {"id": name, "name": name.removeprefix("--"), "variable": name, "family": "", "fallback": value, "order": order}
        for order, (name, value) in enumerate(found)
        if "," in value or value.startswith(("'", '"'))
    ]
