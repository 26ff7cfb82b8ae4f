"""Hold an immutable page with the files it loads, and make the basic edits of it.

An edit returns a new document. Ids are assigned in document order. An element keeps its id for as long as it exists: an
edit transfers ids by position, new elements get new numbers, and no number is used twice.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from html import unescape
from pathlib import PurePath
from types import MappingProxyType
from typing import Self

from fermata_client.document.reversals import Reversal, reversal_of_file, reversal_of_splices, shortest_splice
from fermata_client.document.transfer_ids import CarriedIds, transfer_ids
from fermata_client.html.active_content import ActiveContent, check_nesting_depth, find_active_content
from fermata_client.html.edit_error import EditError
from fermata_client.html.insertion import head_splice
from fermata_client.html.linked_files import is_page_stylesheet, linked_file_path, linked_file_paths
from fermata_client.html.parser import parse_html
from fermata_client.html.splices import Splice, apply_splices
from fermata_client.html.tags import HIDDEN_TEXT_TAGS, RAW_TEXT_TAGS
from fermata_client.html.tree import Element, HtmlTree

_ENDLESS_TEXT_TAGS = RAW_TEXT_TAGS - {"script", "style", "plaintext"}
DOCUMENT_ID = "document"
"""Id of the file itself, which takes new content where there is no body."""
NO_FILES: Mapping[str, bytes] = MappingProxyType({})


def page_id_from_path(path: PurePath) -> str:
    """Return the file's stem in the characters of an address."""
    return re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-") or "page"


@dataclass(frozen=True)
class BaseDocument:
    source: bytes
    tree: HtmlTree = field(repr=False)
    next_id: int
    """Number of the next new element's id."""
    path: str = "index.html"
    """Name of the page's file. Paths of other files are relative to its folder."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Style sheets and scripts of the folder that the page loads, by path (decision 0121)."""
    shared_files: frozenset[str] = frozenset()
    """Paths of files that another page uses too. They are read only."""
    target_sheet: str = ""
    """Path of the linked style sheet that gets new rules; empty for the last sheet of the page."""
    reversals: tuple[Reversal, ...] = field(default=(), compare=False)
    """Reversals of the edits since the document was read, newest first."""

    @classmethod
    def parse(
        cls,
        source: bytes,
        next_id: int = 1,
        *,
        path: str = "index.html",
        files: Mapping[str, bytes] = NO_FILES,
        shared_files: frozenset[str] = frozenset(),
        target_sheet: str = "",
    ) -> Self:
        """Parse a page, and give its elements ids numbered from `next_id`."""
        tree = parse_html(source)
        tree.root.uid = DOCUMENT_ID
        for number, element in enumerate(tree.elements, next_id):
            element.uid = f"n{number}"
        return cls(source, tree, next_id + len(tree.elements), path, files, shared_files, target_sheet)

    @property
    def id(self) -> str:
        return page_id_from_path(PurePath(self.path))

    @property
    def title(self) -> str:
        """Text of the title element; empty if there is none."""
        element = self.title_element
        if element is None:
            return ""
        text = self.source[element.inner_start : element.inner_end].decode("utf-8", "replace")
        return " ".join(unescape(text).split())

    @property
    def title_element(self) -> Element | None:
        titles = (element for element in self.tree.elements if element.tag == "title")
        return next((title for title in titles if not title.is_within("svg")), None)

    @property
    def content_root(self) -> Element:
        """The element that holds the page's content: body, html, or the file itself."""
        return self.tree.find_first("body") or self.tree.find_first("html") or self.tree.root

    @property
    def sheet_elements(self) -> list[Element]:
        """The style elements and links whose rules can be read, in the order in which they apply."""
        sheets = [element for element in self.tree.elements if is_page_stylesheet(element)]
        return [sheet for sheet in sheets if sheet.tag == "style" or self.linked_file(sheet)]

    @cached_property
    def revision(self) -> str:
        """Hash of the page and of the files that it loads."""
        digest = sha256(self.source)
        for path in sorted(self.files.keys() & set(linked_file_paths(self.tree))):
            digest.update(b"\0%s\0%s" % (path.encode(), sha256(self.files[path]).digest()))
        return digest.hexdigest()[:16]

    @cached_property
    def active_content(self) -> frozenset[ActiveContent]:
        """Active content of the page itself, without that of its files."""
        check_nesting_depth(self.tree)
        return find_active_content(self.source)

    def linked_file(self, element: Element) -> str:
        """Return the path of the file that a link or script element loads, if it is one of `files`; else empty."""
        path = linked_file_path(self.tree, element)
        return path if path and path in self.files else ""

    def sheet_source(self, element: Element) -> bytes:
        path = self.linked_file(element)
        return self.files[path] if path else self.source[element.inner_start : element.inner_end]

    def find_element(self, uid: str) -> Element:
        """Find an element by its id, or raise `EditError`."""
        if uid == DOCUMENT_ID:
            return self.content_root
        for element in self.tree.elements:
            if element.uid == uid:
                return element
        raise EditError(f"There is no node {uid} in this document (any more). Please read the document again.")

    def find_container(self, uid: str, *, raw_text: bool = False) -> Element:
        """Find an element that can take content, or raise `EditError` with what to do instead.

        Args:
            raw_text: accept an element that holds text only.
        """
        element = self.find_element(uid)
        if element.tag == "html" and self.tree.find_first("body") is not None:
            raise EditError(f"Work on the body instead: its uid is {self.content_root.uid}.")
        if element.is_void:
            raise EditError(f"A <{element.tag}> has no content. Choose the node around it.")
        if element.tag in ("style", "script"):
            raise EditError("Styles are changed with applyCss, scripts with write_code_asset or patch_code_asset.")
        if element.tag in HIDDEN_TEXT_TAGS:
            raise EditError(f"Browsers never show what is inside of a <{element.tag}>. Choose the node around it.")
        if element.tag in RAW_TEXT_TAGS and not raw_text:
            raise EditError(f"A <{element.tag}> holds text only. Replace its text with replaceNodeHtml instead.")
        return element

    def with_splices(self, splices: list[Splice], *edited: Element, carried: CarriedIds | None = None) -> Self:
        """Return the document after the splices.

        Args:
            edited: the elements that the splices are in.
            carried: ids of elements that a splice moves.

        Raises:
            EditError: another element would change its place or its end, or the rest of the page would go.
        """
        if not splices:
            return self
        self._check_endless_text(splices)
        return self._with_source(apply_splices(self.source, splices), splices, edited, carried)

    def _check_endless_text(self, splices: Iterable[Splice]) -> None:
        """Refuse to take away text that is the rest of the page, because a tag is not closed: elements were meant."""
        last = self.tree.elements[-1] if self.tree.elements else None
        if last is None or last.has_end_tag or last.tag not in _ENDLESS_TEXT_TAGS:
            return
        if any(splice.start < splice.end and splice.end > last.inner_start for splice in splices):
            raise EditError(
                f"The <{last.tag}> is never closed, so that a browser takes the rest of the page for its text. "
                f"Nothing was changed. Tell the user to write </{last.tag}> where it ends."
            )

    def with_source(self, source: bytes) -> Self:
        """Return the document with another source of the page. Elements at the same place keep their ids."""
        if source == self.source:
            return self
        return self._with_source(source, [shortest_splice(self.source, source)], None, None)

    def _with_source(
        self,
        source: bytes,
        splices: list[Splice],
        edited: Sequence[Element] | None,
        carried: CarriedIds | None,
    ) -> Self:
        tree, next_id = transfer_ids(self.tree, self.source, source, splices, self.next_id, edited, carried)
        reversal = reversal_of_splices("", self.source, splices)
        return replace(self, source=source, tree=tree, next_id=next_id, reversals=(reversal, *self.reversals))

    def with_file(self, path: str, content: bytes | None) -> Self:
        """Return the document with other content of a file; None removes the file."""
        old_content = self.files.get(path)
        if content == old_content:
            return self
        if path in self.shared_files:
            raise EditError(f"{path} also belongs to the page that this one is a copy of, so it cannot be changed.")
        other_files = {name: other for name, other in self.files.items() if name != path}
        files = other_files if content is None else other_files | {path: content}
        reversal = reversal_of_file(path, old_content, content)
        return replace(self, files=files, reversals=(reversal, *self.reversals))

    def with_head_element(self, tag: str, lines: list[bytes]) -> Self:
        """Return the document with a `tag` element, given as lines, at the end of its head (created if missing)."""
        parent = self.tree.find_first("head") or self.tree.find_first("html") or self.tree.root
        document = self.with_splices([head_splice(self.source, self.tree, lines)], parent)
        if all(element.tag != tag for element in document.elements_created_since(self)):
            raise EditError("This page ends within a tag, so nothing can be added. Close the tag by hand.")
        return document

    def elements_created_since(self, before: Self) -> list[Element]:
        return [element for element in self.tree.elements if int(element.uid[1:]) >= before.next_id]
