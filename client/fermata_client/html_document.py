"""One HTML page that a model edits: every element has an id, every edit is a new page, nothing else moves.

A document never changes; an edit returns the next one. Ids are given in document order and belong to their element
for as long as it exists: an edit hands them on by position, new elements get new numbers, and no number comes twice.
"""

from dataclasses import dataclass
from html import unescape
from typing import Any, Self

from fermata_client.html.cannot import CannotDo
from fermata_client.html.layout import Splice, indent_at, newline_of, spliced, unit_of, whole_lines
from fermata_client.html.payload import Payload, prepare
from fermata_client.html.placing import filling, first_sheet, insertion
from fermata_client.html.reading import annotated, css_of, part_of
from fermata_client.html.stylesheet import Counts, StyleSheets
from fermata_client.html.tree import RAW, ROOT, Element, Page, parse

DOCUMENT = "document"
"""The id of the file itself; new content goes there when there is no body."""
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
class HtmlDocument:
    source: bytes
    page: Page
    next_id: int

    @classmethod
    def read(cls, source: bytes, next_id: int = 1) -> Self:
        """A page with fresh ids, counted from `next_id`."""
        page = parse(source)
        page.root.uid = DOCUMENT
        for number, element in enumerate(page.elements, next_id):
            element.uid = f"n{number}"
        return cls(source, page, next_id + len(page.elements))

    @property
    def title(self) -> str:
        """What the head says, else the first heading, else nothing."""
        head = next((e for e in self.page.elements if e.tag == "title" and not e.within("svg")), None)
        if head is None:
            return ""
        text = self.source[head.inner_start : head.inner_end].decode("utf-8", "replace")
        return " ".join(unescape(text).split())

    @property
    def root(self) -> Element:
        """Where the content of the page lives."""
        return self.page.first("body") or self.page.first("html") or self.page.root

    @property
    def sheets(self) -> list[Element]:
        return [e for e in self.page.elements if e.tag == "style" and not e.within("svg")]

    @property
    def css(self) -> str:
        return css_of(self.source, self.sheets)

    def element(self, uid: str) -> Element:
        if uid == DOCUMENT:
            return self.root
        for element in self.page.elements:
            if element.uid == uid:
                return element
        raise CannotDo(f"There is no node {uid} in this document (any more). Please read the document again.")

    def read_part(self, part: int) -> dict[str, Any]:
        html = annotated(self.source, self.page, self._begin, len(self.source), whole=False)
        return part_of(html, self.css, part)

    def node_html(self, uid: str) -> str:
        element = self.element(uid)
        begin = self._begin if element.tag == ROOT else element.start
        return annotated(self.source, self.page, begin, element.end, whole=True)

    def insert(self, parent_id: str, html: str, index: int | None = None) -> tuple[Self, dict[str, Any]]:
        """Put HTML into an element as its `index`-th child element, or as its last."""
        parent = self._container(parent_id)
        payload = prepare(html)
        if not payload.markup:
            return self._styles_only(payload)
        placed = self._edited([insertion(self.source, parent, index, payload)], parent)
        return self._report(placed, parent, payload)

    def replace(self, uid: str, html: str) -> tuple[Self, dict[str, Any]]:
        """Make HTML the whole content of an element."""
        element = self._container(uid, raw_text=True)
        if element.tag in RAW:
            return self._replaced_text(element, html), {"nodeIds": []}
        payload = prepare(html)
        if not payload.markup:
            return self._styles_only(payload)
        placed = self._edited([filling(self.source, element, payload)], element)
        return self._report(placed, element, payload)

    def delete(self, uid: str) -> Self:
        """Take an element away, together with the line it leaves empty."""
        element = self.element(uid)
        if element.tag in FIXED or element.tag == ROOT:
            raise CannotDo(f"The {element.tag} of a page cannot be deleted. Delete what is in it.")
        start, end = whole_lines(self.source, element.start, element.end)
        return self._edited([Splice(start, end, b"")], element)

    def style(self, css: str, *, keep_existing: bool = False) -> tuple[Self, Counts]:
        """Put CSS rules into the page's style sheets; `keep_existing` adds only rules that are not there."""
        homes = [sheet for sheet in self.sheets if sheet.attribute("media") is None]
        indent = indent_at(self.source, homes[-1].start) + unit_of(self.source) if homes else b""
        contents = [self.source[home.inner_start : home.inner_end] for home in homes] or [b""]
        sheets = StyleSheets(
            list(contents), indent, unit_of(self.source), newline_of(self.source), keep_existing=keep_existing
        )
        counts = sheets.put(css)
        if not homes:
            home = self.page.first("head") or self.page.first("html") or self.page.root
            new = first_sheet(self.source, self.page, sheets.sheets[0].strip(b"\r\n"))
            styled = self._edited([new], home)
            if not styled.sheets:
                raise CannotDo("This page ends within a tag, so nothing can be added. Please mend it by hand.")
            return styled, counts
        changed = [
            Splice(home.inner_start, home.inner_end, new)
            for home, old, new in zip(homes, contents, sheets.sheets, strict=True)
            if new != old
        ]
        return self._edited(changed, *homes), counts

    @property
    def _begin(self) -> int:
        return 3 if self.source.startswith(b"\xef\xbb\xbf") else 0

    def _container(self, uid: str, *, raw_text: bool = False) -> Element:
        element = self.element(uid)
        if element.tag == "html" and self.page.first("body") is not None:
            raise CannotDo(f"Work on the body instead: its uid is {self.root.uid}.")
        if element.is_void:
            raise CannotDo(f"A <{element.tag}> has no content. Choose the node around it.")
        if element.tag in ("style", "script"):
            raise CannotDo("Styles are changed with applyCss; scripts are left alone.")
        if element.tag in RAW and not raw_text:
            raise CannotDo(f"A <{element.tag}> holds text only. Replace its content instead.")
        return element

    def _replaced_text(self, element: Element, text: str) -> Self:
        if f"</{element.tag}" in text.lower():
            raise CannotDo(f"A <{element.tag}> holds text only. Send the text without tags.")
        new = Splice(element.inner_start, element.inner_end, text.strip().encode("utf-8", "replace"))
        return self._edited([new], element)

    def _styles_only(self, payload: Payload) -> tuple[Self, dict[str, Any]]:
        if not payload.css:
            raise CannotDo("Nothing is left of this HTML: scripts are not taken. Send elements or text.")
        document, counts = self.style(payload.css)
        return document, css_counts(counts)

    def _report(self, placed: Self, parent: Element, payload: Payload) -> tuple[Self, dict[str, Any]]:
        """What came into being; rules that came along are added, but never change a rule that others use."""
        created = [element for element in placed.page.elements if int(element.uid[1:]) >= self.next_id]
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
            return placed, data
        styled, counts = placed.style(payload.css, keep_existing=True)
        return styled, {**data, **css_counts(counts)}

    def _edited(self, splices: list[Splice], *edited: Element) -> Self:
        """The document after the splices, which lie in `edited`. Refused when any other element would change its place
        or its end: then the new markup reaches out of where it stands.
        """
        around = {above.uid for element in edited for above in (element, *element.ancestors())}
        source = spliced(self.source, splices)
        page = parse(source)
        page.root.uid = DOCUMENT
        found = {element.start: element for element in page.elements}
        for old in self.page.elements:
            if _within(old.start, splices):
                continue
            new = found.get(_moved(old.start, splices))
            if new is None or not _same_place(old, new, splices, around):
                raise CannotDo(
                    f"This would break the <{old.tag}> with uid {old.uid}. Check that every tag in it is closed."
                )
            new.uid = old.uid
        fresh = [element for element in page.elements if not element.uid]
        for number, element in enumerate(fresh, self.next_id):
            element.uid = f"n{number}"
        return type(self)(source, page, self.next_id + len(fresh))


def css_counts(counts: Counts) -> dict[str, int]:
    data = {"cssRulesCreated": counts.created, "cssRulesUpdated": counts.updated}
    return {**data, "cssRulesKept": counts.kept} if counts.kept else data


def _within(at: int, splices: list[Splice]) -> bool:
    return any(splice.start <= at < splice.end for splice in splices)


def _moved(at: int, splices: list[Splice], *, is_end: bool = False) -> int:
    """Where a position outside of the splices is after them."""
    before = [s for s in splices if s.end < at or (s.end == at and not (is_end and s.start == s.end))]
    return at + sum(len(s.text) - (s.end - s.start) for s in before)


def _same_place(old: Element, new: Element, splices: list[Splice], around: set[str]) -> bool:
    if old.tag != new.tag or (old.parent is None) != (new.parent is None):
        return False
    if old.parent is not None and new.parent is not None and old.parent.uid != new.parent.uid:
        return False
    if old.uid in around and not old.has_end_tag:
        return True  # it ends where its content ends, and that is what was changed
    return old.has_end_tag == new.has_end_tag and new.end == _moved(old.end, splices, is_end=True)
