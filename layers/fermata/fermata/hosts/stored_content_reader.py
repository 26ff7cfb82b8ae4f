"""Read what one caller may see of a space of the content store, in the forms of docs/host.md."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fermata.content.built_in_models import ASSET_MODEL
from fermata.content.documents.document import DocumentContent, DocumentHead, DocumentKey, DocumentVersion
from fermata.content.documents.document_rows import head_from_item, head_from_version, head_sort_key
from fermata.content.documents.list_documents import list_documents
from fermata.content.documents.read_document import (
    MAX_BATCH_KEYS,
    ModelState,
    read_document,
    read_versions_at_once,
)
from fermata.content.model_store import list_content_models
from fermata.content.opened_space import OpenedSpace
from fermata.content.search.search_space import search_space
from fermata.content.space_members import SpaceMember, list_members
from fermata.domain.caller import Caller
from fermata.domain.errors import ApiError, NotFound, Unprocessable
from fermata.hosts.describe_stored_content import (
    describe_document,
    describe_head,
    describe_media,
    describe_status,
    describe_table,
    find_author,
    parse_document_id,
)

MAX_LISTED_HEADS = 20_000
"""Documents of a collection among which a list is made: its offsets count from the first one."""
MAX_READ_DOCUMENTS = 2000
"""Documents that are read whole for one answer, to find those of an author or files with a text."""
_SCANNED_AT_ONCE = 1000


class StoredContentReader:
    """Reads what one caller may see of a space."""

    def __init__(
        self,
        access: OpenedSpace,
        caller: Caller,
        member: SpaceMember | None,
        locales: Sequence[str],
        check_waited_for: Callable[[], None],
    ) -> None:
        self._access = access
        self._resources, self._space = access.resources, access.space
        self._caller = caller
        self._member = member
        self._check_waited_for = check_waited_for
        readable = [one for one in locales if member is None or member.locales is None or one in member.locales]
        self._locale = readable[0] if readable else ""

    def list_tables(self) -> list[dict[str, Any]]:
        """Return the models that have documents, as tables."""
        return [describe_table(state) for state in self.list_models()]

    def list_models(self) -> list[ModelState]:
        states = list_content_models(self._resources, self._space)
        return [state for state in states if state.model.has_documents and self._may_see(state.model.id)]

    def find_heads(
        self, table: str, status: str | None, author: str | None, limit: int, offset: int
    ) -> tuple[int, Sequence[DocumentHead]]:
        """Return how many documents match, and a page of them."""
        state = next((one for one in self.list_models() if one.model.id == table), None)
        if state is None:
            raise NotFound(f"There is no collection {table!r}.")
        if status is None and author is None:
            wanted = min(offset + limit, MAX_LISTED_HEADS + 1)
            return state.documents, list(self._scan_heads(table, wanted))[offset:]
        found: list[DocumentHead] = list(self._scan_heads(table, MAX_LISTED_HEADS + 1))
        if status is not None:
            found = [head for head in found if describe_status(head.status) == status]
        if author is not None:
            found = [head for head, content in self._read_contents(found) if self._names_author(content, author)]
        return len(found), found[offset : offset + limit]

    def describe_heads(self, heads: Sequence[DocumentHead]) -> list[dict[str, Any]]:
        return [describe_head(head, content, self._locale) for head, content in self._read_contents(heads)]

    def read_one(self, document_id: str) -> dict[str, Any]:
        key = parse_document_id(document_id)
        missing = f"There is no document {document_id!r}."
        if not key.id or key.model not in {state.model.id for state in self.list_models()}:
            raise NotFound(missing)
        try:
            version = read_document(self._resources, self._space, key)
        except ApiError as error:  # also a text that is no id
            raise NotFound(missing) from error
        return describe_document(head_from_version(version), version, self._locale)

    def search(self, query: str, limit: int) -> list[dict[str, Any]]:
        models = {state.model.id for state in self.list_models()}
        found = search_space(self._resources, self._space, query, None, limit=min(limit, MAX_BATCH_KEYS))
        keys = [one.entry.key for one in found if one.entry.key.model in models]
        heads = {DocumentKey(head.model, head.id): head for head in self._read_heads(keys)} if keys else {}
        return [describe_head(heads[key], None, self._locale) for key in keys if key in heads]

    def list_people(self) -> list[dict[str, Any]]:
        members = list_members(self._resources, self._space)
        if members is None:
            return [{"id": self._caller.user}]
        return [{"id": member.user, "roleSlug": member.role, "roleName": member.role.title()} for member in members]

    def list_assets(self, query: str, mime_type: str) -> list[dict[str, Any]]:
        if not self._may_see(ASSET_MODEL.id):
            return []
        heads = list(self._scan_heads(ASSET_MODEL.id, MAX_READ_DOCUMENTS + 1))
        found = [describe_media(self._space, version) for _, version in self._read_versions(heads)]
        return [
            item
            for item in found
            if query in f"{item['filename']} {item.get('altText', '')}".casefold()
            and mime_type in str(item.get("mimeType", "")).casefold()
        ]

    def _may_see(self, model: str) -> bool:
        return self._member is None or self._member.models is None or model in self._member.models

    def _scan_heads(self, model: str, wanted: int) -> Iterator[DocumentHead]:
        """Yield the first heads of a model; refuse where more than MAX_LISTED_HEADS would have to be read."""
        after, seen = "", 0
        while seen < wanted:
            self._check_waited_for()
            limit = min(_SCANNED_AT_ONCE, wanted - seen)
            page = list_documents(self._resources, self._space, model, limit=limit, after=after)
            seen, after = seen + len(page.documents), page.after
            if seen > MAX_LISTED_HEADS:
                message = f"A list reaches the first {MAX_LISTED_HEADS} documents of a collection. Search instead"
                raise Unprocessable(message)
            yield from page.documents
            if not after:
                return

    def _names_author(self, content: DocumentContent | None, author: str) -> bool:
        return content is not None and find_author(content, self._locale) == author

    def _read_contents(self, heads: Sequence[DocumentHead]) -> list[tuple[DocumentHead, DocumentContent | None]]:
        return [(head, version.content) for head, version in self._read_versions(heads)]

    def _read_versions(self, heads: Sequence[DocumentHead]) -> list[tuple[DocumentHead, DocumentVersion]]:
        """Return heads with their versions. What was deleted or erased meanwhile is left out."""
        if len(heads) > MAX_READ_DOCUMENTS:
            raise Unprocessable(f"More than {MAX_READ_DOCUMENTS} documents would have to be read. Ask for fewer.")
        found: list[tuple[DocumentHead, DocumentVersion]] = []
        for start in range(0, len(heads), MAX_BATCH_KEYS):
            self._check_waited_for()
            part = heads[start : start + MAX_BATCH_KEYS]
            wanted = {(DocumentKey(head.model, head.id), head.version): head for head in part}
            versions = read_versions_at_once(self._resources, self._space, wanted)
            found += [(head, versions[one]) for one, head in wanted.items() if one in versions]
        return found

    def _read_heads(self, keys: Sequence[DocumentKey]) -> Iterator[DocumentHead]:
        table = self._resources.settings.content_table
        rows = self._resources.tables.batch_get_items(table, [(self._space.pk, head_sort_key(key)) for key in keys])
        return map(head_from_item, rows.values())
