"""Edit an HTML page, with the style sheets and scripts it loads, as a model asks.

Every edit returns a new document, and changes no byte outside of what it edits.
"""

from dataclasses import dataclass
from typing import Self

from fermata_client.css.insertion import SheetFormat
from fermata_client.css.merge import RuleCounts, StyleSheetEditor
from fermata_client.document.base_document import BaseDocument
from fermata_client.document.edit_result_data import created_elements_to_wire, note_to_wire, rule_counts_to_wire
from fermata_client.document.model_view import annotate_uids, join_stylesheets, read_document_part
from fermata_client.document.vendor_sheets import is_vendor_sheet
from fermata_client.html.browser_parser import FragmentContext, count_elements
from fermata_client.html.browser_placement import check_browser_place
from fermata_client.html.content_model import check_content_only, check_nesting, check_place, choose_place
from fermata_client.html.edit_error import EditError
from fermata_client.html.fragment import HtmlFragment
from fermata_client.html.indentation import detect_indent_unit, detect_newline, indent_at, indent_lines
from fermata_client.html.insertion import content_splice, insertion_splice, removal_splice
from fermata_client.html.json_markup import decode_json_markup
from fermata_client.html.linked_files import is_for_screens
from fermata_client.html.markdown_fences import strip_element_tags, strip_markdown_fence
from fermata_client.html.parser import parse_html
from fermata_client.html.removed_code import check_no_script_within
from fermata_client.html.sanitize import sanitize_html
from fermata_client.html.splices import Splice, apply_splices
from fermata_client.html.tags import RAW_TEXT_TAGS, ROOT_TAG
from fermata_client.html.template_preamble import UTF8_BOM
from fermata_client.html.tree import Element
from fermata_client.service.json_types import JsonObject

FIXED_TAGS = frozenset({"html", "head", "body"})
"""Elements that are not moved, copied or deleted."""


def _read_sent_html(html: str) -> str:
    """Return HTML without what models put around it."""
    return decode_json_markup(strip_markdown_fence(html))


@dataclass(frozen=True)
class HtmlDocument(BaseDocument):
    """A page. Its edits raise `EditError` with a sentence for the model, and some return data for the model."""

    @property
    def css(self) -> str:
        """The readable style sheets as one text."""
        return join_stylesheets(self.sheet_source(element) for element in self.sheet_elements)

    def read_part(self, part: int) -> JsonObject:
        """Return one part of the page for the model, numbered from 1: `{html, css, pageInfo}`."""
        html = annotate_uids(self.source, self.tree, self._text_start, len(self.source), whole=False)
        return read_document_part(html, self.css, part)

    def element_html(self, uid: str) -> str:
        """Return the markup of an element with the ids of all elements in it."""
        element = self.find_element(uid)
        start = self._text_start if element.tag == ROOT_TAG else element.start
        return annotate_uids(self.source, self.tree, start, element.end, whole=True)

    def insert_html(self, parent_id: str, html: str, index: int | None = None) -> tuple[Self, JsonObject]:
        """Insert HTML into an element, before its `index`-th child element or after all content (None)."""
        parent = self.find_container(parent_id)
        fragment = sanitize_html(_read_sent_html(html), FragmentContext.from_element(parent))
        if not fragment.markup:
            return self._put_styles_only(fragment)
        check_place(parent, fragment.tags, fragment.loose_text)
        parent, index = choose_place(parent, fragment.tags, index)
        edited = self.with_splices([insertion_splice(self.source, parent, index, fragment)], parent)
        _check_all_kept(self.source, edited, parent, fragment)
        document, data = self._finish_insertion(edited, parent, fragment)
        if index is not None and index > len(parent.children):
            note = f"<{parent.tag}> has {len(parent.children)} elements, so index {index} is behind the last of them."
            data["note"] = " ".join([note, *([data["note"]] if "note" in data else [])])
        return document, data

    def replace_content(self, uid: str, html: str) -> tuple[Self, JsonObject]:
        """Replace the whole content of an element with HTML."""
        element = self.find_container(uid, raw_text=True)
        if element.tag in RAW_TEXT_TAGS:
            return self._replace_raw_text(element, html), {"nodeIds": []}
        html = _read_sent_html(html)
        check_no_script_within(self.tree, element)
        check_content_only(element, parse_html(html.encode("utf-8", "replace")))
        fragment = sanitize_html(html, FragmentContext.from_element(element))
        if not fragment.markup:
            return self._put_styles_only(fragment)
        check_place(element, fragment.tags, fragment.loose_text)
        edited = self.with_splices([content_splice(self.source, element, fragment)], element)
        emptied = apply_splices(self.source, [Splice(element.inner_start, element.inner_end, b"")])
        _check_all_kept(emptied, edited, element, fragment)
        return self._finish_insertion(edited, element, fragment)

    def delete_element(self, uid: str) -> Self:
        """Delete an element with the lines it leaves empty."""
        element = self.find_element(uid)
        if element.tag in FIXED_TAGS or element.tag == ROOT_TAG:
            raise EditError(f"The {element.tag} of a page cannot be deleted. Delete what is in it.")
        return self.with_splices([removal_splice(self.source, element, element.start, element.end)], element)

    def put_css(
        self, css: str, *, keep_existing: bool = False, replace_existing: bool = False
    ) -> tuple[Self, RuleCounts]:
        """Put CSS rules into the page's style sheets; a style element is created if the site has no sheet of its own.

        Args:
            keep_existing: leave existing rules as they are.
            replace_existing: replace existing rules as a whole, instead of setting their declarations.
        """
        css = strip_element_tags(strip_markdown_fence(css), "style")
        sheets = self.writable_sheets
        page_format = SheetFormat(b"", detect_indent_unit(self.source), detect_newline(self.source))
        editor = StyleSheetEditor(
            [*(self.sheet_source(sheet) for sheet in sheets), b""],
            [*(self._sheet_format(sheet) for sheet in sheets), page_format],
            self._target_index(sheets),
            keep_existing,
            replace_existing,
            self._vendor_indexes(sheets),
        )
        counts = editor.put_rules(css)
        *contents, new_sheet = editor.sheets
        document = self.with_sheet_contents(contents)
        if not new_sheet.strip():
            return document, counts
        rules = indent_lines(new_sheet.strip(b"\r\n"), page_format.unit)
        return document.with_head_element("style", [b"<style>", *rules, b"</style>"]), counts

    @property
    def writable_sheets(self) -> list[Element]:
        """The sheets that rules can be put into: those for screens that are not shared, each file once."""
        sheets = [
            sheet
            for sheet in self.sheet_elements
            if is_for_screens(sheet) and self.linked_file(sheet) not in self.shared_files
        ]
        return list({self.linked_file(sheet) or sheet.uid: sheet for sheet in sheets}.values())

    def with_sheet_contents(self, contents: list[bytes]) -> Self:
        """Return the document with other contents of the writable sheets, in their order."""
        sheets = list(zip(self.writable_sheets, contents, strict=True))
        styles = [(sheet, content) for sheet, content in sheets if sheet.tag == "style"]
        changed = [(style, content) for style, content in styles if content != self.sheet_source(style)]
        splices = [Splice(sheet.inner_start, sheet.inner_end, content) for sheet, content in changed]
        document = self.with_splices(splices, *(sheet for sheet, _ in changed))
        for sheet, content in sheets:
            if sheet.tag == "link":
                document = document.with_file(self.linked_file(sheet), content)
        return document

    def _target_index(self, sheets: list[Element]) -> int:
        """Return the index of the sheet that gets new rules: the named one, or the last one of the site itself.

        If all are of libraries, it is the index after them, of a new sheet.
        """
        matches = [index for index, sheet in enumerate(sheets) if self.linked_file(sheet) == self.target_sheet]
        if self.target_sheet and matches:
            return matches[0]
        vendor_indexes = self._vendor_indexes(sheets)
        return max((index for index in range(len(sheets)) if index not in vendor_indexes), default=len(sheets))

    def _vendor_indexes(self, sheets: list[Element]) -> frozenset[int]:
        paths = [self.linked_file(sheet) for sheet in sheets]
        return frozenset(index for index, path in enumerate(paths) if path and is_vendor_sheet(path, self.files[path]))

    def _sheet_format(self, sheet: Element) -> SheetFormat:
        if sheet.tag == "style":
            unit = detect_indent_unit(self.source)
            return SheetFormat(indent_at(self.source, sheet.start) + unit, unit, detect_newline(self.source))
        content = self.sheet_source(sheet)
        return SheetFormat(b"", detect_indent_unit(content), detect_newline(content or self.source))

    @property
    def _text_start(self) -> int:
        return len(UTF8_BOM) if self.source.startswith(UTF8_BOM) else 0

    def _replace_raw_text(self, element: Element, text: str) -> Self:
        if f"</{element.tag}" in text.lower():
            raise EditError(f"A <{element.tag}> holds text only. Send the text without tags.")
        content = text.strip().encode("utf-8", "replace")
        return self.with_splices([Splice(element.inner_start, element.inner_end, content)], element)

    def _put_styles_only(self, fragment: HtmlFragment) -> tuple[Self, JsonObject]:
        """Put the styles of a fragment that has no markup."""
        if not fragment.css:
            raise EditError(f"Nothing is left of this HTML. {fragment.note or 'Send elements or text.'}")
        document, counts = self.put_css(fragment.css)
        return document, {**rule_counts_to_wire(counts), **note_to_wire(fragment)}

    def _finish_insertion(self, edited: Self, parent: Element, fragment: HtmlFragment) -> tuple[Self, JsonObject]:
        """Check where the fragment's elements are, put its styles, and report both.

        Its styles are added to the page, but change no existing rule, because other elements use those.
        """
        created = edited.elements_created_since(self)
        created_ids = {element.uid for element in created}
        top_level = [element for element in created if element.parent is None or element.parent.uid not in created_ids]
        misplaced = [element for element in top_level if element.parent is None or element.parent.uid != parent.uid]
        if misplaced or len(created) != fragment.element_count:
            raise EditError(
                f"This HTML is not allowed at this place in <{parent.tag}>. Choose another parent or index."
            )
        check_browser_place(edited.source, edited.find_element(parent.uid), top_level)
        data: JsonObject = {
            "nodeIds": [element.uid for element in top_level],
            "created": created_elements_to_wire(created),
        }
        if not fragment.css:
            return edited, {**data, **note_to_wire(fragment)}
        styled, counts = edited.put_css(fragment.css, keep_existing=True)
        return styled, {**data, **rule_counts_to_wire(counts), **note_to_wire(fragment)}


def _check_all_kept(kept_source: bytes, edited: HtmlDocument, parent: Element, fragment: HtmlFragment) -> None:
    """Raise `EditError` if a browser finds an element of `kept_source` changed in the edited page (decision 0124)."""
    if count_elements(kept_source) - count_elements(edited.source):
        check_nesting(parent, sorted(fragment.all_tags))
        raise EditError(
            f"A browser would treat the page after this HTML in <{parent.tag}> as a part of it. Close every tag "
            "and comment in it, and leave out elements that hold text only, such as <plaintext>."
        )
