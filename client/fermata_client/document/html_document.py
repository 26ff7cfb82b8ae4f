"""One HTML page that a model edits: every edit is a new page, and nothing else moves.

The style sheets and scripts that lie beside the page are part of it.
"""

from dataclasses import dataclass
from typing import Any, Self

from fermata_client.css.insertion import SheetFormat
from fermata_client.css.merge import RuleCounts, StyleSheetEditor
from fermata_client.document.base_document import BaseDocument
from fermata_client.document.model_view import annotate_uids, document_part, join_stylesheets
from fermata_client.html.browser_parser import FragmentContext, count_elements
from fermata_client.html.errors import EditError
from fermata_client.html.fragment import HtmlFragment
from fermata_client.html.indentation import detect_indent_unit, detect_newline, indent_at, indent_lines
from fermata_client.html.insertion import content_splice, insertion_splice, removal_splice
from fermata_client.html.linked_files import is_for_screens
from fermata_client.html.sanitize import sanitize_html
from fermata_client.html.splices import Splice, apply_splices
from fermata_client.html.tags import RAW_TEXT_TAGS, ROOT_TAG
from fermata_client.html.tree import Element

FIXED_TAGS = frozenset({"html", "head", "body"})

MODULE_BY_TAG = {
    "a": "base.link",
    "button": "base.button",
    "form": "base.form",
    "img": "base.image",
    "input": "base.input",
    "label": "base.label",
    "ol": "base.list",
    "option": "base.option",
    "select": "base.select",
    "svg": "base.svg",
    "textarea": "base.textarea",
    "ul": "base.list",
    "video": "base.video",
    **dict.fromkeys(
        ("h1", "h2", "h3", "h4", "h5", "h6", "p", "span", "strong", "em", "small", "blockquote"), "base.text"
    ),
}


@dataclass(frozen=True)
class HtmlDocument(BaseDocument):
    @property
    def css(self) -> str:
        return join_stylesheets(self.sheet_source(element) for element in self.sheet_elements)

    def read_part(self, part: int) -> dict[str, Any]:
        html = annotate_uids(self.source, self.tree, self._begin, len(self.source), whole=False)
        return document_part(html, self.css, part)

    def element_html(self, uid: str) -> str:
        element = self.find_element(uid)
        begin = self._begin if element.tag == ROOT_TAG else element.start
        return annotate_uids(self.source, self.tree, begin, element.end, whole=True)

    def insert_html(self, parent_id: str, html: str, index: int | None = None) -> tuple[Self, dict[str, Any]]:
        """Put HTML into an element as its `index`-th child element, or as its last."""
        parent = self.find_container(parent_id)
        payload = sanitize_html(html, FragmentContext.from_element(parent))
        if not payload.markup:
            return self._styles_only(payload)
        placed = self.with_splices([insertion_splice(self.source, parent, index, payload)], parent)
        _refuse_swallowing(self.source, placed, parent)
        document, data = self._report(placed, parent, payload)
        if index is not None and index > len(parent.children):
            there = f"<{parent.tag}> has {len(parent.children)} elements, so index {index} is behind the last of them."
            data["note"] = " ".join([there, *([data["note"]] if "note" in data else [])])
        return document, data

    def replace_content(self, uid: str, html: str) -> tuple[Self, dict[str, Any]]:
        """Make HTML the whole content of an element."""
        element = self.find_container(uid, raw_text=True)
        if element.tag in RAW_TEXT_TAGS:
            return self._replaced_text(element, html), {"nodeIds": []}
        payload = sanitize_html(html, FragmentContext.from_element(element))
        if not payload.markup:
            return self._styles_only(payload)
        placed = self.with_splices([content_splice(self.source, element, payload)], element)
        emptied = apply_splices(self.source, [Splice(element.inner_start, element.inner_end, b"")])
        _refuse_swallowing(emptied, placed, element)
        return self._report(placed, element, payload)

    def delete_element(self, uid: str) -> Self:
        """Take an element away, together with the line it leaves empty."""
        element = self.find_element(uid)
        if element.tag in FIXED_TAGS or element.tag == ROOT_TAG:
            raise EditError(f"The {element.tag} of a page cannot be deleted. Delete what is in it.")
        return self.with_splices([removal_splice(self.source, element, element.start, element.end)], element)

    def put_css(
        self, css: str, *, keep_existing: bool = False, replace_existing: bool = False
    ) -> tuple[Self, RuleCounts]:
        """Put CSS rules into the page's style sheets; `keep_existing` adds only rules that are not there."""
        homes = self.writable_sheets
        home = next(
            (
                number
                for number, sheet in enumerate(homes)
                if self.target_sheet and self.linked_file(sheet) == self.target_sheet
            ),
            -1,
        )
        sheets = StyleSheetEditor(
            [self.sheet_source(sheet) for sheet in homes] or [b""],
            [self._manner(sheet) for sheet in homes]
            or [SheetFormat(b"", detect_indent_unit(self.source), detect_newline(self.source))],
            home,
            keep_existing,
            replace_existing,
        )
        counts = sheets.put_rules(css)
        if homes:
            return self.with_sheet_contents(sheets.sheets), counts
        lines = [
            b"<style>",
            *indent_lines(sheets.sheets[0].strip(b"\r\n"), detect_indent_unit(self.source)),
            b"</style>",
        ]
        return self.with_head_element("style", lines), counts

    @property
    def writable_sheets(self) -> list[Element]:
        """The sheets that rules can be put into: those for screens, each file once."""
        found = [
            sheet
            for sheet in self.sheet_elements
            if is_for_screens(sheet) and self.linked_file(sheet) not in self.shared_files
        ]
        return list({self.linked_file(sheet) or sheet.uid: sheet for sheet in found}.values())

    def with_sheet_contents(self, contents: list[bytes]) -> Self:
        """With other contents of the writable sheets."""
        homes = self.writable_sheets
        own = [(home, new) for home, new in zip(homes, contents, strict=True) if home.tag == "style"]
        changed = [(home, new) for home, new in own if new != self.sheet_source(home)]
        splices = [Splice(home.inner_start, home.inner_end, new) for home, new in changed]
        document = self.with_splices(splices, *(home for home, _ in changed))
        for home, new in zip(homes, contents, strict=True):
            if home.tag == "link":
                document = document.with_file(self.linked_file(home), new)
        return document

    def _manner(self, sheet: Element) -> SheetFormat:
        if sheet.tag == "style":
            unit = detect_indent_unit(self.source)
            return SheetFormat(indent_at(self.source, sheet.start) + unit, unit, detect_newline(self.source))
        content = self.sheet_source(sheet)
        return SheetFormat(b"", detect_indent_unit(content), detect_newline(content or self.source))

    @property
    def _begin(self) -> int:
        return 3 if self.source.startswith(b"\xef\xbb\xbf") else 0

    def _replaced_text(self, element: Element, text: str) -> Self:
        if f"</{element.tag}" in text.lower():
            raise EditError(f"A <{element.tag}> holds text only. Send the text without tags.")
        new = Splice(element.inner_start, element.inner_end, text.strip().encode("utf-8", "replace"))
        return self.with_splices([new], element)

    def _styles_only(self, payload: HtmlFragment) -> tuple[Self, dict[str, Any]]:
        if not payload.css:
            raise EditError(f"Nothing is left of this HTML. {payload.note or 'Send elements or text.'}")
        document, counts = self.put_css(payload.css)
        return document, {**rule_counts_to_wire(counts), **_noted(payload)}

    def _report(self, placed: Self, parent: Element, payload: HtmlFragment) -> tuple[Self, dict[str, Any]]:
        """What came into being; rules that came along are added, but never change a rule that others use."""
        created = placed.elements_created_since(self)
        ids = {element.uid for element in created}
        tops = [element for element in created if element.parent is None or element.parent.uid not in ids]
        strangers = [top for top in tops if top.parent is None or top.parent.uid != parent.uid]
        if strangers or len(created) != payload.element_count:
            raise EditError(f"This HTML cannot stand at this place in <{parent.tag}>. Choose another parent or index.")
        data: dict[str, Any] = {
            "nodeIds": [element.uid for element in tops],
            "created": [
                {"id": e.uid, "moduleId": MODULE_BY_TAG.get(e.tag, "base.container"), "classes": e.classes}
                for e in created
            ],
        }
        if not payload.css:
            return placed, {**data, **_noted(payload)}
        styled, counts = placed.put_css(payload.css, keep_existing=True)
        return styled, {**data, **rule_counts_to_wire(counts), **_noted(payload)}


def _refuse_swallowing(kept: bytes, placed: HtmlDocument, parent: Element) -> None:
    """Whatever was in `kept` must be there still, as a browser sees it."""
    if count_elements(kept) - count_elements(placed.source):
        raise EditError(
            f"A browser would take what stands behind this HTML in <{parent.tag}> for a part of it. Close every tag "
            "and comment in it, and leave out elements that hold text only, such as <plaintext>."
        )


def rule_counts_to_wire(counts: RuleCounts) -> dict[str, int]:
    data = {"cssRulesCreated": counts.created, "cssRulesUpdated": counts.updated}
    return {**data, "cssRulesKept": counts.kept} if counts.kept else data


def _noted(payload: HtmlFragment) -> dict[str, str]:
    return {"note": payload.note} if payload.note else {}
