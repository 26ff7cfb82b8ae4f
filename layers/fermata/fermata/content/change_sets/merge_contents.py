"""Merge what a change set makes of a document with what others have made of it since, field by field."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from fermata.content.documents.document import ContentStatus, DocumentContent, DocumentKey
from fermata.content.page_sections import list_page_sections
from fermata.domain.json_shortening import shorten_value

Preference = Literal["ours", "theirs"]
"""Whose value counts where both have changed one field: that of the change set, or the one that is stored."""
MAX_LISTED_CONFLICTS = 2_000
"""Fields of a response. Documents are named all the same."""
MAX_CONFLICTS_CHARS = 2_000_000
"""Of the values of a response together: Lambda answers with 6 MB, and JSON escapes make texts longer."""
MAX_NAMED_DOCUMENTS = 10
_MIN_VALUE_CHARS = 200
OWN_FIELDS = ("slug", "title", "status")
_META = "meta"
_WRITERS_MARKS = frozenset({"source", "updated_by", "updated_at", "version"})
"""Members of what is known of a locale that say who has written last. They are no conflict."""


class FieldConflict(NamedTuple):
    """A field that a change set and somebody else have changed, each in another way.

    Attributes:
        path: The field: `title`, `data.category`, `de.body`, and of a section `de.<section>.<field>`.
        base: What both have begun with.
        theirs: What is stored by now.
        ours: What the change set makes of it.
    """

    path: str
    base: Any
    theirs: Any
    ours: Any

    def to_view(self, max_chars: int) -> dict[str, Any]:
        """Return the JSON form for people, with values of about so many characters."""
        values = {"base": self.base, "theirs": self.theirs, "ours": self.ours}
        return {"field": self.path, **{name: shorten_value(value, max_chars) for name, value in values.items()}}


Conflicts = dict[DocumentKey, tuple[FieldConflict, ...]]


def list_conflict_views(conflicts: Conflicts) -> list[dict[str, Any]]:
    """Return the JSON form of conflicts by document, as large as a response may be: long values are shortened."""
    listed = [(key, one) for key, found in conflicts.items() for one in found][:MAX_LISTED_CONFLICTS]
    room = max(_MIN_VALUE_CHARS, MAX_CONFLICTS_CHARS // (3 * max(1, len(listed))))
    fields: dict[DocumentKey, list[dict[str, Any]]] = {key: [] for key in conflicts}
    for key, one in listed:
        fields[key].append(one.to_view(room))
    return [{"model": key.model, "id": key.id, "fields": found} for key, found in fields.items()]


def name_documents(conflicts: Conflicts) -> str:
    """Return the documents that have conflicts, for a message."""
    names = ", ".join(f"{key.model}/{key.id}" for key in list(conflicts)[:MAX_NAMED_DOCUMENTS])
    more = len(conflicts) - MAX_NAMED_DOCUMENTS
    return f"{names} and {more} more" if more > 0 else names


class MergedContent(NamedTuple):
    """What a document says after a merge, and which fields nobody has decided."""

    content: DocumentContent
    conflicts: tuple[FieldConflict, ...]


def merge_contents(
    base: DocumentContent,
    theirs: DocumentContent,
    ours: DocumentContent,
    prefer: Preference | None = None,
    nested: Collection[str] = (),
) -> MergedContent:
    """Merge two contents that have begun with the same one.

    Args:
        base: What both have begun with.
        theirs: What is stored by now.
        ours: What the change set makes of it.
        prefer: Whose value counts in a conflict; without it, conflicts are listed.
        nested: Fields whose members are each a field of its own.
    """
    before, stored, changed = (flatten_content(one, nested) for one in (base, theirs, ours))
    merged, conflicts = dict(stored), []
    for path in _list_changed_paths(before, changed):
        value, other, own = before.get(path), stored.get(path), changed.get(path)
        if other not in (value, own):
            decides = "ours" if path[0] == _META and _differ_in_marks(other, own) else prefer
            if decides is None:
                conflicts.append(FieldConflict(".".join(path), value, other, own))
            if decides != "ours":
                continue
        if own is None:
            merged.pop(path, None)
        else:
            merged[path] = own
    content = _unflatten_content(merged, base, theirs, ours)
    return MergedContent(_keep_drafts(content, base, theirs, ours), tuple(conflicts))


def _keep_drafts(
    merged: DocumentContent, base: DocumentContent, theirs: DocumentContent, ours: DocumentContent
) -> DocumentContent:
    """Return a merged document in which a further language of one side is no more published than it was there.

    A status of the whole document, which the other side has given it, is of the languages that it had there.
    """
    for side, other in ((theirs, ours), (ours, theirs)):
        for locale in side.list_further_locales(base):
            own = side.get_status(locale)
            is_its_own = not other.get_locale(locale)
            if is_its_own and own is not ContentStatus.PUBLISHED and merged.is_published_in(locale):
                merged = merged.with_locale_status(locale, own)
    return merged


def _differ_in_marks(theirs: Any, ours: Any) -> bool:
    """Return whether two records of a locale differ only in who has written last."""
    rest = [
        {name: one for name, one in (record or {}).items() if name not in _WRITERS_MARKS} for record in (theirs, ours)
    ]
    return rest[0] == rest[1]


def _list_changed_paths(
    before: Mapping[tuple[str, ...], Any], after: Mapping[tuple[str, ...], Any]
) -> Iterator[tuple[str, ...]]:
    for path in dict.fromkeys([*before, *after]):
        if before.get(path) != after.get(path):
            yield path


def flatten_content(content: DocumentContent, nested: Collection[str] = ()) -> dict[tuple[str, ...], Any]:
    """Return the fields of a document by their paths. The content of a page's section has a path for each field.

    Args:
        content: What the document says.
        nested: Fields whose members have a path each, too.
    """
    flat: dict[tuple[str, ...], Any] = {(name,): getattr(content, name) for name in OWN_FIELDS}
    flat |= {(_META, locale): record for locale, record in content.meta.items()}
    sections = {section.id for section in list_page_sections(content)} if content.parts else set()
    sections |= set(nested)
    for locale, fields in content.locales.items():
        for name, value in fields.items():
            if name in sections and isinstance(value, dict):
                flat |= {(locale, name, member): item for member, item in value.items()}
            else:
                flat[(locale, name)] = value
    return flat


def _list_locales(base: DocumentContent, theirs: DocumentContent, ours: DocumentContent) -> list[str]:
    """Return the locales that both sides have, or that one has added. There may be nothing in them."""
    return [
        name
        for name in dict.fromkeys([*theirs.locales, *ours.locales])
        if name not in base.locales or (name in theirs.locales and name in ours.locales)
    ]


def _unflatten_content(
    flat: Mapping[tuple[str, ...], Any], base: DocumentContent, theirs: DocumentContent, ours: DocumentContent
) -> DocumentContent:
    own = {path[0]: value for path, value in flat.items() if len(path) == 1}
    locales: dict[str, dict[str, Any]] = {name: {} for name in _list_locales(base, theirs, ours)}
    meta = {path[1]: value for path, value in flat.items() if path[0] == _META}
    for path, value in flat.items():
        if path[0] == _META:
            continue
        if len(path) == 2:
            locales.setdefault(path[0], {})[path[1]] = value
        elif len(path) == 3:
            locales.setdefault(path[0], {}).setdefault(path[1], {})[path[2]] = value
    return theirs.model_copy(
        update={**own, "locales": locales, _META: meta, "published_at": theirs.published_at or ours.published_at}
    )
