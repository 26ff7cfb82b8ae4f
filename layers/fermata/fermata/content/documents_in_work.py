"""Read documents as their author works on them: in the space, or in a change set (decision 0524)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fermata.aws.resources import Resources
from fermata.content.change_sets.change_set import ChangedDocument, show_changed_document
from fermata.content.change_sets.change_set_store import read_change_set
from fermata.content.change_sets.conversation_change_set import find_conversation_change_set
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import (
    ContentAuthor,
    DocumentContent,
    DocumentHead,
    DocumentKey,
    DocumentVersion,
)
from fermata.content.documents.document_rows import head_from_version
from fermata.content.documents.list_documents import DocumentPage, ListFilter, list_documents
from fermata.content.documents.read_document import (
    describe_missing_document,
    describe_missing_slug,
    read_claims,
    read_newest_version,
    read_versions_at_once,
    read_write_basis,
    waits_for_review,
)
from fermata.content.documents.unique_claims import UniqueClaim, claim_slug, key_of_owner
from fermata.domain.errors import NotFound


@dataclass
class DocumentsInWork:
    """The documents of a space as one author reads them; `WorkingDocuments` changes them too.

    Attributes:
        effect_key: The same for every repetition of what is done with it, which writes one document.
        is_reviewed: Whether changes of the author wait for a review where the workflow of the space says so.
        conversation: Whose change set takes these changes; empty for none, and then they are refused.
        change_set: The change set that takes all changes, whatever the workflow is; empty for none.
        changed_in: The change set that has taken a change of this object.
    """

    resources: Resources
    space: SpaceKey
    author: ContentAuthor
    effect_key: str = ""
    is_reviewed: bool = False
    conversation: str = ""
    change_set: str = ""
    changed_in: str = field(default="", init=False)

    def read(self, key: DocumentKey) -> DocumentVersion:
        """Return a document.

        Raises:
            NotFound: It does not exist, or was deleted.
        """
        version = self.find(key)
        if version is None or version.is_deleted:
            raise NotFound(describe_missing_document(key))
        return version

    def find(self, key: DocumentKey) -> DocumentVersion | None:
        """Return a document, which may be the mark of its deletion; None if it never existed."""
        changed = self._changed.get(key)
        if changed is None:
            return read_newest_version(self.resources, self.space, key)
        return show_changed_document(changed)

    def find_by_slug(self, model: str, slug: str) -> DocumentVersion:
        """Return the document of a model that has a slug.

        Raises:
            NotFound: None has it.
        """
        DocumentKey(model, "any").check()
        found = self.find_by_claim(claim_slug(model, slug))
        if found is None:
            raise NotFound(describe_missing_slug(model, slug))
        return found

    def find_by_claim(self, claim: UniqueClaim) -> DocumentVersion | None:
        """Return the document that has a unique value; None if none has it."""
        owners = self.find_owners_of_claims([claim]).values()
        found = next(map(self.find, owners), None)
        return None if found is None or found.is_deleted else found

    def find_owners(self, models: Sequence[str], slug: str) -> list[DocumentKey]:
        """Return the documents of several models that have a slug."""
        return list(self.find_owners_of_claims([claim_slug(model, slug) for model in models]).values())

    def find_owners_of_claims(self, claims: Collection[UniqueClaim]) -> dict[UniqueClaim, DocumentKey]:
        """Return whose unique values are: of a document of the change set, what it says there counts."""
        rows = read_claims(self.resources, self.space, claims) if claims else {}
        stored = {claim: key_of_owner(row["owner"]) for claim, row in rows.items()}
        owners = {claim: key for claim, key in stored.items() if key not in self._changed}
        for key, changed in self._changed.items():
            own = [claim for claim in claims if claim.is_of(key.model, changed.content)]
            owners |= dict.fromkeys(own, key)
        return owners

    def list(self, model: str, *, limit: int = 50, after: str = "", only: ListFilter | None = None) -> DocumentPage:
        """Return a page of the documents of a model. Those of the change set come behind the last page.

        Args:
            model: The id of the model.
            limit: The greatest number of stored documents.
            after: The cursor of the page before.
            only: Which documents are listed; all without it.
        """
        page = list_documents(self.resources, self.space, model, limit=limit, after=after, only=only)
        changed = {key.id: one for key, one in self._changed.items() if key.model == model}
        if not changed:
            return page
        heads = [head for head in page.documents if head.id not in changed]
        if not page.after:
            own = [head_from_version(show_changed_document(one)) for one in changed.values() if one.content is not None]
            heads += [head for head in own if only is None or only.matches(head)]
        return DocumentPage(tuple(heads), page.after)

    def is_changed(self, key: DocumentKey) -> bool:
        """Return whether the change set makes something of a document, so that what is read of it is not live."""
        return key in self._changed

    def list_changed(self, model: str) -> dict[str, DocumentContent | None]:
        """Return what the change set makes of documents of a model, by their ids; None of one that it deletes."""
        return {key.id: one.content for key, one in self._changed.items() if key.model == model}

    def count_added(self, model: str) -> int:
        """Return by how many documents of a model the change set has more than the space."""
        own = [one for key, one in self._changed.items() if key.model == model]
        return sum((one.content is not None) - (one.base_version > 0) for one in own)

    def read_listed(self, heads: Sequence[DocumentHead]) -> dict[DocumentKey, DocumentVersion]:
        """Return the documents of a list, with one request for each hundred of them."""
        keys = {DocumentKey(head.model, head.id): head.version for head in heads}
        stored = [(key, version) for key, version in keys.items() if key not in self._changed]
        found = {key: one for (key, _), one in read_versions_at_once(self.resources, self.space, stored).items()}
        return found | {key: show_changed_document(self._changed[key]) for key in keys if key in self._changed}

    def read_those_there(self, keys: Sequence[DocumentKey]) -> dict[DocumentKey, DocumentVersion]:
        """Return those of documents that are there. A search may find what is deleted by now, or there only."""
        found = {key: self.find(key) for key in keys}
        return {key: version for key, version in found.items() if version is not None and not version.is_deleted}

    def read_before_deletion(self, key: DocumentKey) -> DocumentContent | None:
        """Return what a document said that was just deleted; None if that is not known."""
        version = read_newest_version(self.resources, self.space, key)
        if version is None or not version.is_deleted:
            return version.content if version else None
        wanted = (key, version.version - 1)
        found = read_versions_at_once(self.resources, self.space, [wanted]).get(wanted)
        return found.content if found else None

    @cached_property
    def _changed(self) -> dict[DocumentKey, ChangedDocument]:
        """What the change set makes of documents. Without one, this costs at most one request."""
        change_set = self.change_set
        if not change_set and self._waits:
            change_set = find_conversation_change_set(self.resources, self.space, self.conversation)
        if not change_set:
            return {}
        return {one.key: one for one in read_change_set(self.resources, self.space, change_set).documents}

    @property
    def _waits(self) -> bool:
        if not (self.is_reviewed and self.conversation):
            return False
        return waits_for_review(self.resources, self.space, read_write_basis(self.resources, self.space, []))

    def name_change_set_of_earlier_copy(self) -> None:
        """Let the answer to a repeated call say where the change waits that its first copy has made."""
        self.changed_in = self.change_set or find_conversation_change_set(self.resources, self.space, self.conversation)

    def _forget_changed(self) -> None:
        """Read the change set anew, because it was changed or closed."""
        self.__dict__.pop("_changed", None)
