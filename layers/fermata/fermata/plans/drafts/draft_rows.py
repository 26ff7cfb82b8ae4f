"""Define a draft as its rows store it, in the partition of its conversation (decision 0337).

d#head                      version, order of the pages, settings, effects of the newest changes
d#p#<slug>                  a page: its content, and the versions that undo and redo lead to
d#s#<slug>#<version>        the content of a page that a version had given it
d#h#<version>               what a version has changed, and what its request was answered
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

from fermata.aws.dynamodb_items_and_writes import Item
from fermata.conversations.message_store import conversation_partition
from fermata.domain.value_dataclass import value_dataclass
from fermata.plans.page_model import HOME_SLUG, Page, SiteConfig, SiteDraft

MAX_UNDO_STEPS = 50
LOG_LENGTH = 100
"""Versions whose changes are listed, and to which a draft can be restored."""
HEAD_KEY = "d#head"
ABSENT = 0
"""The version of a page that was not there."""


def count_nothing(_size: int) -> None:
    """Count nothing: a turn's own changes are limited by its rounds."""


@value_dataclass(frozen=True)
class DraftLocation:
    """Whose draft it is: that of one conversation.

    Attributes:
        count_bytes: Called with the bytes that a change is going to store. It raises to refuse them.
    """

    tenant: str
    conversation: str
    count_bytes: Callable[[int], None] = field(default=count_nothing, compare=False, repr=False)

    @property
    def pk(self) -> str:
        """The partition of its rows."""
        return conversation_partition(self.tenant, self.conversation)


@value_dataclass(frozen=True)
class StoredPage:
    """A page of a draft, or what is left of one that was removed.

    Attributes:
        page: Its content; None where it is removed.
        since: The version that gave it this content.
        undo_versions: The contents that undo leads to, the next one last.
        redo_versions: The contents that redo leads to, the next one last.
        timeline: Pairs of a version of the draft and the version of the content from then on.
        kept_versions: The contents that have a row of their own.
        stored_bytes: The length of its content as it was read.
    """

    slug: str
    page: Page | None = None
    since: int = ABSENT
    undo_versions: tuple[int, ...] = ()
    redo_versions: tuple[int, ...] = ()
    timeline: tuple[tuple[int, int], ...] = ()
    kept_versions: tuple[int, ...] = ()
    stored_bytes: int = 0

    def find_content_version(self, draft_version: int) -> int:
        """Return which content the page had at a version of the draft; `ABSENT` if it was not there."""
        before = [content for version, content in self.timeline if version <= draft_version]
        return before[-1] if before else ABSENT

    @property
    def needed_versions(self) -> frozenset[int]:
        """The contents that a row has to keep."""
        versions = {*self.undo_versions, *self.redo_versions, *(content for _, content in self.timeline)}
        return frozenset(versions - {ABSENT, self.since})

    def to_item(self, pk: str) -> Item:
        """Return the row."""
        item = {"pk": pk, "sk": page_sort_key(self.slug), "v": 1, "slug": self.slug, "since": self.since}
        versions = [self.undo_versions, self.redo_versions, self.timeline, self.kept_versions]
        item["versions"] = json.dumps(versions, separators=(",", ":"))
        return item | ({"page": dump_page(self.page)} if self.page else {})

    @classmethod
    def from_item(cls, item: Item) -> "StoredPage":
        """Parse the row."""
        undo, redo, timeline, kept = json.loads(item["versions"])
        page = load_page(item.get("page"))
        pairs = tuple((version, content) for version, content in timeline)
        size = len(str(item.get("page", "")).encode())
        return cls(item["slug"], page, item["since"], tuple(undo), tuple(redo), pairs, tuple(kept), size)


@value_dataclass(frozen=True)
class StoredDraft:
    """A draft as it was read. Version 0 is a draft that was never changed."""

    location: DraftLocation
    version: int = 0
    order: tuple[str, ...] = ()
    config: SiteConfig = field(default_factory=SiteConfig)
    effects: Mapping[str, int] = field(default_factory=dict)
    """The version that each of the newest changes has made, by the key of its effect."""
    stored_pages: Mapping[str, StoredPage] = field(default_factory=dict)
    is_incomplete: bool = False
    """Whether more pages are to come, of a site that is being imported."""

    @cached_property
    def draft(self) -> SiteDraft:
        """The pages and settings."""
        pages = {slug: stored.page for slug, stored in self.stored_pages.items() if stored.page}
        ordered = [*(slug for slug in self.order if slug in pages), *(slug for slug in pages if slug not in self.order)]
        return SiteDraft(pages=tuple(page for slug in ordered if (page := pages[slug])), config=self.config)

    @property
    def stored_bytes(self) -> int:
        """The length of all pages."""
        return sum(page.stored_bytes for page in self.stored_pages.values())

    def get_stored_page(self, slug: str) -> StoredPage:
        """Return what is stored of a page; an absent page where nothing is."""
        return self.stored_pages.get(slug, StoredPage(slug))

    def head_to_item(self) -> Item:
        """Return the row of the draft itself."""
        head = {
            "order": self.order,
            "config": self.config.to_wire(),
            "effects": self.effects,
            "incomplete": self.is_incomplete,
        }
        row = {"pk": self.location.pk, "sk": HEAD_KEY, "v": 1, "version": self.version}
        return row | {"head": json.dumps(head, separators=(",", ":"), ensure_ascii=False)}


def draft_from_items(location: DraftLocation, items: Sequence[Item]) -> StoredDraft:
    """Return the draft that rows hold: its head, if there is one, and its pages."""
    pages = [StoredPage.from_item(item) for item in items if item["sk"] != HEAD_KEY]
    stored_pages = {page.slug: page for page in pages}
    row = next((item for item in items if item["sk"] == HEAD_KEY), None)
    if row is None:
        return StoredDraft(location, stored_pages=stored_pages)
    head = json.loads(row["head"])
    return StoredDraft(
        location,
        version=row["version"],
        order=tuple(head["order"]),
        config=SiteConfig.from_wire(head["config"]),
        effects=head["effects"],
        stored_pages=stored_pages,
        is_incomplete=head["incomplete"],
    )


def page_sort_key(slug: str) -> str:
    """Return the sort key of a page."""
    return f"d#p#{slug}"


def snapshot_sort_key(slug: str, version: int) -> str:
    """Return the sort key of a former content of a page."""
    return f"d#s#{slug}#{version:010d}"


def history_sort_key(version: int) -> str:
    """Return the sort key of what a version has changed."""
    return f"d#h#{version:010d}"


def dump_page(page: Page) -> str:
    """Return a page as text of JSON."""
    return json.dumps(page.to_wire(), separators=(",", ":"), ensure_ascii=False)


def measure_pages(pages: Sequence[Page]) -> int:
    """Return how many bytes pages take, as they are stored."""
    return sum(len(dump_page(page).encode()) for page in pages)


def load_page(text: Any) -> Page | None:
    """Return the page that a text of JSON holds; None without one."""
    return Page.from_wire(json.loads(text)) if isinstance(text, str) else None


def order_home_first(slugs: Sequence[str]) -> tuple[str, ...]:
    """Return slugs with the home page first."""
    return tuple(sorted(slugs, key=lambda slug: slug != HOME_SLUG))
