"""Define a document: what it says in each language, its current state, and who has made a version of it."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from pydantic import Field

from fermata.content.content_model import DEFINITION_LOCALE
from fermata.domain.base import DomainModel, RecordModel
from fermata.domain.errors import InvalidRequest

DOCUMENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
DOCUMENT_SLUG = re.compile(r"[a-z0-9-]{2,64}")
ID_RULE = "An id has up to 40 letters, digits, hyphens and underscores."
SLUG_RULE = "A slug has 2 to 64 lower-case letters, digits and hyphens."
MAX_DOCUMENT_TITLE_CHARS = 500

LocaleContent = dict[str, Any]
ChangeSource = Literal["agent", "human", "import"]
VersionAction = Literal["create", "update", "delete", "restore", "merge"]


class ContentStatus(StrEnum):
    """How far a document is."""

    DRAFT = "draft"
    IN_REVIEW = "in_review"
    PUBLISHED = "published"
    REJECTED = "rejected"
    ARCHIVED = "archived"


class DocumentKey(NamedTuple):
    """A document within its space."""

    model: str
    id: str

    def check(self) -> None:
        """Check the form of both names, so that nothing else becomes part of a key.

        Raises:
            InvalidRequest: One has another form.
        """
        if not DOCUMENT_ID.fullmatch(self.id) or not DOCUMENT_ID.fullmatch(self.model):
            raise InvalidRequest(ID_RULE)


class DocumentContent(DomainModel):
    """What a document says, apart from its history.

    Attributes:
        slug: Its name in addresses, which no other document of the model has; empty for none.
        locales: The content by locale; under `data` what is the same in all of them.
        parts: How many parts of which other models it is made of: the sections of a page.
        meta: What is known of the content of a locale besides it: who has approved it, when it expires, and its
            `status` where it is not that of the document. A status that is None says that it is a draft of which
            nothing is known.
    """

    slug: str = ""
    title: str = ""
    status: ContentStatus = ContentStatus.DRAFT
    published_at: str = ""
    locales: dict[str, LocaleContent] = Field(default_factory=dict)
    parts: dict[str, int] = Field(default_factory=dict)
    meta: dict[str, LocaleContent] = Field(default_factory=dict)

    def get_status(self, locale: str) -> ContentStatus:
        """Return the status of the content in a locale."""
        own = self.meta.get(locale, {})
        return ContentStatus(own["status"] or ContentStatus.DRAFT) if "status" in own else self.status

    def is_published_in(self, locale: str) -> bool:
        """Return whether sites may read what the document says in a locale."""
        is_said = bool(self.get_locale(locale)) and self.status is ContentStatus.PUBLISHED
        return is_said and self.get_status(locale) is ContentStatus.PUBLISHED

    def get_locale(self, locale: str) -> Mapping[str, Any]:
        """Return the content of a locale; an absent one is empty."""
        return self.locales.get(locale, {})

    def list_spoken_locales(self) -> list[str]:
        """Return the languages in which the document says something."""
        return [locale for locale, fields in self.locales.items() if fields and locale != DEFINITION_LOCALE]

    def with_fields(self, locale: str, fields: Mapping[str, Any]) -> "DocumentContent":
        """Return the document with some fields of a locale replaced. A field that becomes None is removed."""
        merged = {**self.get_locale(locale), **fields}
        kept = {name: value for name, value in merged.items() if value is not None}
        return self.model_copy(update={"locales": {**self.locales, locale: kept}})

    def list_newly_published(self, before: "DocumentContent") -> list[str]:
        """Return the languages that are published, and were not before, when the document said something in others.

        Args:
            before: What it said before.
        """
        if not before.list_spoken_locales():
            return []
        spoken = self.list_spoken_locales()
        return [one for one in spoken if self.is_published_in(one) and not before.is_published_in(one)]

    def list_further_locales(self, before: "DocumentContent") -> list[str]:
        """Return the languages in which the document says something, and said nothing before, when it did in others.

        Args:
            before: What it said before.
        """
        had = before.list_spoken_locales()
        return [locale for locale in self.list_spoken_locales() if had and locale not in had]

    def with_whole_status(self, status: ContentStatus) -> "DocumentContent":
        """Return the document with a status in all of its languages."""
        meta = {
            locale: {name: value for name, value in known.items() if name != "status"}
            for locale, known in self.meta.items()
        }
        return self.model_copy(update={"status": status, "meta": meta})

    def with_statuses(self, status: str | None, statuses: Mapping[str, str]) -> "DocumentContent":
        """Return the document with a status that a person gives it.

        Args:
            status: That of all of its languages; they keep theirs if it is None, or what the document has already.
            statuses: Those of some languages, which count more.

        Raises:
            InvalidRequest: The document says nothing in one of these languages.
        """
        changed = self if status in (None, self.status) else self.with_whole_status(ContentStatus(status))
        for locale, own in statuses.items():
            if locale not in self.locales:
                raise InvalidRequest(f"'statuses' names {locale}, in which the document says nothing.")
            changed = changed.with_locale_status(locale, ContentStatus(own))
        return changed

    def with_locale_status(self, locale: str, status: ContentStatus) -> "DocumentContent":
        """Return the document whose content in one locale has a status. The others keep theirs.

        It is published as long as one of its languages is: what is the same in all of them alone publishes nothing.
        """
        statuses = {other: self.get_status(other) for other in self.locales} | {locale: status}
        counted = {*self.list_spoken_locales(), locale}
        published = any(statuses[one] is ContentStatus.PUBLISHED for one in counted)
        whole = ContentStatus.PUBLISHED if published else status
        meta = dict(self.meta)
        for other, own in statuses.items():
            rest = {name: value for name, value in meta.get(other, {}).items() if name != "status"}
            follows = own is whole or (own is ContentStatus.PUBLISHED and other not in counted)
            meta[other] = rest if follows else {**rest, "status": own.value}
        return self.model_copy(update={"status": whole, "meta": meta})

    def with_settled_status(self) -> "DocumentContent":
        """Return the document, published no more if none of the languages is that it has (decision 0664)."""
        spoken = self.list_spoken_locales()
        if self.status is not ContentStatus.PUBLISHED or not spoken or any(map(self.is_published_in, spoken)):
            return self
        return self.with_locale_status(spoken[0], self.get_status(spoken[0]))

    def with_status(self, status: ContentStatus, now: str) -> "DocumentContent":
        """Return the document with a status. Only the first publication sets its time."""
        published_at = self.published_at or (now if status is ContentStatus.PUBLISHED else "")
        return self.model_copy(update={"status": status, "published_at": published_at})


class ContentAuthor(NamedTuple):
    """Who changes content: a user, by hand or through a call of a turn."""

    user: str
    source: ChangeSource = "human"
    turn: str = ""
    call: str = ""


class DocumentVersion(RecordModel):
    """A version of a document: all that it says, and who has made it when.

    A version without content is the mark that the document was deleted.

    Attributes:
        user: It is an attribute of its own in the row, which the erasure of a user renames.
    """

    model: str
    id: str
    version: int
    action: VersionAction
    at: str
    created_at: str
    user: str = ""
    source: ChangeSource = "human"
    turn: str = ""
    call: str = ""
    change_set: str = ""
    restored_from: int = 0
    content: DocumentContent | None = None

    @property
    def key(self) -> DocumentKey:
        """Which document it is a version of."""
        return DocumentKey(self.model, self.id)

    @property
    def is_deleted(self) -> bool:
        """Whether this version is the mark of a deletion."""
        return self.content is None

    def to_view(self) -> dict[str, Any]:
        """Return the JSON form for people."""
        content = {} if self.content is None else self.content.model_dump(mode="json", by_alias=True)
        own = self.to_known(exclude=frozenset({"content"}))
        return {**own, **content, "deleted": self.is_deleted}


class DocumentHead(DomainModel):
    """The line of a list: which version of a document is current, and what a list shows of it."""

    model: str
    id: str
    version: int
    slug: str = ""
    title: str = ""
    status: ContentStatus = ContentStatus.DRAFT
    category: str = ""
    locales: tuple[str, ...] = ()
    created_at: str = ""
    updated_at: str = ""
    published_at: str = ""
    documents: int = 0
    """Of a model: how many documents there are of it, or how many pages have it as a section."""
