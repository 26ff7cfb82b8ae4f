"""One HTML page that a model edits: every edit is a new page, and nothing else moves.

The style sheets and scripts that lie beside the page are part of it.
"""

from dataclasses import dataclass
from typing import Any, Self

from fermata_client.html.cannot import CannotDo
from fermata_client.html.editable import EditablePage
from fermata_client.html.layout import Splice, indent_at, indented, newline_of, spliced, unit_of
from fermata_client.html.linking import is_for_screens
from fermata_client.html.live import Place, elements_of
from fermata_client.html.payload import Payload, prepare
from fermata_client.html.placing import filling, insertion, taken_out
from fermata_client.html.reading import annotated, css_text, part_of
from fermata_client.html.stylesheet import Counts, Manner, StyleSheets
from fermata_client.html.tree import RAW, ROOT, Element

FIXED = frozenset({"html", "head", "body"})

MODULES = {
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
class HtmlDocument(EditablePage):
    @property
    def css(self) -> str:
        return css_text(self.sheet(element) for element in self.sheets)

    def read_part(self, part: int) -> dict[str, Any]:
        html = annotated(self.source, self.page, self._begin, len(self.source), whole=False)
        return part_of(html, self.css, part)

    def node_html(self, uid: str) -> str:
        element = self.element(uid)
        begin = self._begin if element.tag == ROOT else element.start
        return annotated(self.source, self.page, begin, element.end, whole=True)

    def insert(self, parent_id: str, html: str, index: int | None = None) -> tuple[Self, dict[str, Any]]:
        """Put HTML into an element as its `index`-th child element, or as its last."""
        parent = self.container(parent_id)
        payload = prepare(html, Place.of(parent))
        if not payload.markup:
            return self._styles_only(payload)
        placed = self.edited([insertion(self.source, parent, index, payload)], parent)
        _refuse_swallowing(self.source, placed, parent)
        document, data = self._report(placed, parent, payload)
        if index is not None and index > len(parent.children):
            there = f"<{parent.tag}> has {len(parent.children)} elements, so index {index} is behind the last of them."
            data["note"] = " ".join([there, *([data["note"]] if "note" in data else [])])
        return document, data

    def replace(self, uid: str, html: str) -> tuple[Self, dict[str, Any]]:
        """Make HTML the whole content of an element."""
        element = self.container(uid, raw_text=True)
        if element.tag in RAW:
            return self._replaced_text(element, html), {"nodeIds": []}
        payload = prepare(html, Place.of(element))
        if not payload.markup:
            return self._styles_only(payload)
        placed = self.edited([filling(self.source, element, payload)], element)
        emptied = spliced(self.source, [Splice(element.inner_start, element.inner_end, b"")])
        _refuse_swallowing(emptied, placed, element)
        return self._report(placed, element, payload)

    def delete(self, uid: str) -> Self:
        """Take an element away, together with the line it leaves empty."""
        element = self.element(uid)
        if element.tag in FIXED or element.tag == ROOT:
            raise CannotDo(f"The {element.tag} of a page cannot be deleted. Delete what is in it.")
        return self.edited([taken_out(self.source, element, element.start, element.end)], element)

    def style(self, css: str, *, keep_existing: bool = False, replace_whole: bool = False) -> tuple[Self, Counts]:
        """Put CSS rules into the page's style sheets; `keep_existing` adds only rules that are not there."""
        homes = self.writable_sheets
        home = next(
            (number for number, sheet in enumerate(homes) if self.home and self.file_of(sheet) == self.home), -1
        )
        sheets = StyleSheets(
            [self.sheet(sheet) for sheet in homes] or [b""],
            [self._manner(sheet) for sheet in homes] or [Manner(b"", unit_of(self.source), newline_of(self.source))],
            home,
            keep_existing,
            replace_whole,
        )
        counts = sheets.put(css)
        if homes:
            return self.with_sheets(sheets.sheets), counts
        lines = [b"<style>", *indented(sheets.sheets[0].strip(b"\r\n"), unit_of(self.source)), b"</style>"]
        return self.with_in_head("style", lines), counts

    @property
    def writable_sheets(self) -> list[Element]:
        """The sheets that rules can be put into: those for screens, each file once."""
        found = [sheet for sheet in self.sheets if is_for_screens(sheet) and self.file_of(sheet) not in self.shared]
        return list({self.file_of(sheet) or sheet.uid: sheet for sheet in found}.values())

    def with_sheets(self, contents: list[bytes]) -> Self:
        """With other contents of the writable sheets."""
        homes = self.writable_sheets
        own = [(home, new) for home, new in zip(homes, contents, strict=True) if home.tag == "style"]
        changed = [(home, new) for home, new in own if new != self.sheet(home)]
        splices = [Splice(home.inner_start, home.inner_end, new) for home, new in changed]
        document = self.edited(splices, *(home for home, _ in changed))
        for home, new in zip(homes, contents, strict=True):
            if home.tag == "link":
                document = document.with_file(self.file_of(home), new)
        return document

    def _manner(self, sheet: Element) -> Manner:
        if sheet.tag == "style":
            unit = unit_of(self.source)
            return Manner(indent_at(self.source, sheet.start) + unit, unit, newline_of(self.source))
        content = self.sheet(sheet)
        return Manner(b"", unit_of(content), newline_of(content or self.source))

    @property
    def _begin(self) -> int:
        return 3 if self.source.startswith(b"\xef\xbb\xbf") else 0

    def _replaced_text(self, element: Element, text: str) -> Self:
        if f"</{element.tag}" in text.lower():
            raise CannotDo(f"A <{element.tag}> holds text only. Send the text without tags.")
        new = Splice(element.inner_start, element.inner_end, text.strip().encode("utf-8", "replace"))
        return self.edited([new], element)

    def _styles_only(self, payload: Payload) -> tuple[Self, dict[str, Any]]:
        if not payload.css:
            raise CannotDo(f"Nothing is left of this HTML. {payload.note or 'Send elements or text.'}")
        document, counts = self.style(payload.css)
        return document, {**css_counts(counts), **_noted(payload)}

    def _report(self, placed: Self, parent: Element, payload: Payload) -> tuple[Self, dict[str, Any]]:
        """What came into being; rules that came along are added, but never change a rule that others use."""
        created = placed.created_since(self)
        ids = {element.uid for element in created}
        tops = [element for element in created if element.parent is None or element.parent.uid not in ids]
        strangers = [top for top in tops if top.parent is None or top.parent.uid != parent.uid]
        if strangers or len(created) != payload.size:
            raise CannotDo(f"This HTML cannot stand at this place in <{parent.tag}>. Choose another parent or index.")
        data: dict[str, Any] = {
            "nodeIds": [element.uid for element in tops],
            "created": [
                {"id": e.uid, "moduleId": MODULES.get(e.tag, "base.container"), "classes": e.classes} for e in created
            ],
        }
        if not payload.css:
            return placed, {**data, **_noted(payload)}
        styled, counts = placed.style(payload.css, keep_existing=True)
        return styled, {**data, **css_counts(counts), **_noted(payload)}


def _refuse_swallowing(kept: bytes, placed: HtmlDocument, parent: Element) -> None:
    """Whatever was in `kept` must be there still, as a browser sees it."""
    if elements_of(kept) - elements_of(placed.source):
        raise CannotDo(
            f"A browser would take what stands behind this HTML in <{parent.tag}> for a part of it. Close every tag "
            "and comment in it, and leave out elements that hold text only, such as <plaintext>."
        )


def css_counts(counts: Counts) -> dict[str, int]:
    data = {"cssRulesCreated": counts.created, "cssRulesUpdated": counts.updated}
    return {**data, "cssRulesKept": counts.kept} if counts.kept else data


def _noted(payload: Payload) -> dict[str, str]:
    return {"note": payload.note} if payload.note else {}
