"""A page and the files beside it as one value: the elements with their ids, and what an edit leaves of it.

A page never changes; an edit returns the next one. Ids are given in document order and belong to their element for as
long as it exists: an edit hands them on by position, new elements get new numbers, and no number comes twice.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from html import unescape
from pathlib import PurePath
from types import MappingProxyType
from typing import Self

from fermata_client.document.node_ids import CarriedIds, transfer_ids
from fermata_client.document.reversals import Reversal, reversal_of_file, reversal_of_splices, shortest_splice
from fermata_client.html.active_content import ActiveContent, check_nesting_depth, find_active_content
from fermata_client.html.errors import EditError
from fermata_client.html.insertion import head_splice
from fermata_client.html.linked_files import is_stylesheet, linked_file_path, linked_file_paths
from fermata_client.html.parser import parse_html
from fermata_client.html.splices import Splice, apply_splices
from fermata_client.html.tags import RAW_TEXT_TAGS
from fermata_client.html.tree import Element, HtmlTree

DOCUMENT_ID = "document"
"""The id of the file itself; new content goes there when there is no body."""
NO_FILES: Mapping[str, bytes] = MappingProxyType({})


def page_id_from_path(path: PurePath) -> str:
    """A short name that stays the same for the file: its stem, in address letters."""
    return re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-") or "page"


@dataclass(frozen=True)
class BaseDocument:
    source: bytes
    tree: HtmlTree = field(repr=False)
    next_id: int
    path: str = "index.html"
    """The name of the page's file; other files are named from its folder."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The style sheets and scripts beside the page that it loads."""
    shared_files: frozenset[str] = frozenset()
    """Those of the files that belong to another page as well, so they are read only."""
    target_sheet: str = ""
    """The linked style sheet that gets new rules; empty: the last sheet of the page."""
    reversals: tuple[Reversal, ...] = field(default=(), compare=False)
    """How the edits since the document was read are taken back, the newest first."""

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
        """A page with fresh ids, counted from `next_id`."""
        page = parse_html(source)
        page.root.uid = DOCUMENT_ID
        for number, element in enumerate(page.elements, next_id):
            element.uid = f"n{number}"
        return cls(source, page, next_id + len(page.elements), path, files, shared_files, target_sheet)

    @property
    def id(self) -> str:
        return page_id_from_path(PurePath(self.path))

    @property
    def title(self) -> str:
        """What the head says, else nothing."""
        head = self.title_element
        if head is None:
            return ""
        text = self.source[head.inner_start : head.inner_end].decode("utf-8", "replace")
        return " ".join(unescape(text).split())

    @property
    def title_element(self) -> Element | None:
        return next((e for e in self.tree.elements if e.tag == "title" and not e.is_within("svg")), None)

    @property
    def content_root(self) -> Element:
        """Where the content of the page lives."""
        return self.tree.find_first("body") or self.tree.find_first("html") or self.tree.root

    @property
    def sheet_elements(self) -> list[Element]:
        """The style elements and links whose rules we can read, in the order in which they count."""
        return [e for e in self.tree.elements if is_stylesheet(e) and (e.tag == "style" or self.linked_file(e))]

    @cached_property
    def revision(self) -> str:
        """The same for the same bytes of the page and of the files beside it that it loads."""
        content = sha256(self.source)
        for path in sorted(self.files.keys() & set(linked_file_paths(self.tree))):
            content.update(b"\0%s\0%s" % (path.encode(), sha256(self.files[path]).digest()))
        return content.hexdigest()[:16]

    @cached_property
    def active_content(self) -> frozenset[ActiveContent]:
        """What a browser would run of the page itself."""
        check_nesting_depth(self.tree)
        return find_active_content(self.source)

    def linked_file(self, element: Element) -> str:
        """The file that a link or script element loads, when we have it; else nothing."""
        path = linked_file_path(self.tree, element)
        return path if path and path in self.files else ""

    def sheet_source(self, element: Element) -> bytes:
        path = self.linked_file(element)
        return self.files[path] if path else self.source[element.inner_start : element.inner_end]

    def find_element(self, uid: str) -> Element:
        if uid == DOCUMENT_ID:
            return self.content_root
        for element in self.tree.elements:
            if element.uid == uid:
                return element
        raise EditError(f"There is no node {uid} in this document (any more). Please read the document again.")

    def find_container(self, uid: str, *, raw_text: bool = False) -> Element:
        """An element that can take content, or CannotDo with what to do instead."""
        element = self.find_element(uid)
        if element.tag == "html" and self.tree.find_first("body") is not None:
            raise EditError(f"Work on the body instead: its uid is {self.content_root.uid}.")
        if element.is_void:
            raise EditError(f"A <{element.tag}> has no content. Choose the node around it.")
        if element.tag in ("style", "script"):
            raise EditError("Styles are changed with applyCss, scripts with write_code_asset or patch_code_asset.")
        if element.tag in RAW_TEXT_TAGS and not raw_text:
            raise EditError(f"A <{element.tag}> holds text only. Replace its content instead.")
        return element

    def with_splices(self, splices: list[Splice], *edited: Element, carried: CarriedIds | None = None) -> Self:
        """The document after the splices, which lie in `edited`. Refused when any other element would change its place
        or its end: then the new markup reaches out of where it stands. `carried` elements keep their ids.
        """
        if not splices:
            return self
        source = apply_splices(self.source, splices)
        page, next_id = transfer_ids(self.tree, self.source, source, splices, self.next_id, edited, carried)
        back = reversal_of_splices("", self.source, splices)
        return replace(self, source=source, tree=page, next_id=next_id, reversals=(back, *self.reversals))

    def with_file(self, path: str, content: bytes | None) -> Self:
        """With another content of a file beside the page; with None without the file."""
        old = self.files.get(path)
        if content == old:
            return self
        if path in self.shared_files:
            raise EditError(f"{path} also belongs to the page that this one is a copy of, so it is left as it is.")
        files = {name: old for name, old in self.files.items() if name != path}
        files |= {} if content is None else {path: content}
        back = reversal_of_file(path, old, content)
        return replace(self, files=files, reversals=(back, *self.reversals))

    def with_source(self, source: bytes) -> Self:
        """The page with bytes that it had before. Elements at the same place keep their ids."""
        if source == self.source:
            return self
        splice = shortest_splice(self.source, source)
        page, next_id = transfer_ids(self.tree, self.source, source, [splice], self.next_id, None, None)
        back = reversal_of_splices("", self.source, [splice])
        return replace(self, source=source, tree=page, next_id=next_id, reversals=(back, *self.reversals))

    def with_head_element(self, tag: str, lines: list[bytes]) -> Self:
        """With a `tag` element, given line by line, at the end of the head; a head is made when there is none."""
        home = self.tree.find_first("head") or self.tree.find_first("html") or self.tree.root
        document = self.with_splices([head_splice(self.source, self.tree, lines)], home)
        if all(element.tag != tag for element in document.elements_created_since(self)):
            raise EditError("This page ends within a tag, so nothing can be added. Please mend it by hand.")
        return document

    def elements_created_since(self, before: Self) -> list[Element]:
        return [element for element in self.tree.elements if int(element.uid[1:]) >= before.next_id]
