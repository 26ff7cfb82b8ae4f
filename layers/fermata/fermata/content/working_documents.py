"""Read and change documents as their author works on them: in the space, or in a change set (decision 0524).

Where the workflow of a space is `review`, what an assistant changes for somebody whose changes are reviewed goes to
the change set of its conversation, and the conversation sees what is in it. Nobody else does before it is merged.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fermata.aws.resources import Resources
from fermata.content.change_sets.change_set import ChangedDocument, show_changed_document
from fermata.content.change_sets.change_set_documents import change_in_change_set
from fermata.content.change_sets.change_set_store import ChangeSetClosed, read_change_set
from fermata.content.change_sets.conversation_change_set import (
    find_conversation_change_set,
    open_conversation_change_set,
)
from fermata.content.content_space import SpaceKey
from fermata.content.documents.change_document import (
    ChangeOptions,
    DecideContent,
    WrittenDocument,
    change_document,
    check_expected_version,
    store_under_new_id,
)
from fermata.content.documents.document import (
    ContentAuthor,
    DocumentContent,
    DocumentHead,
    DocumentKey,
    DocumentVersion,
)
from fermata.content.documents.document_rows import head_from_version
from fermata.content.documents.document_writes import ValueTaken
from fermata.content.documents.list_documents import DocumentPage, ListFilter, list_documents
from fermata.content.documents.read_document import (
    WriteBasis,
    describe_missing_document,
    describe_missing_slug,
    read_claims,
    read_newest_version,
    read_versions_at_once,
    read_write_basis,
    waits_for_review,
)
from fermata.content.documents.review_workflow import ReviewRequired
from fermata.content.documents.unique_claims import UniqueClaim, claim_slug, key_of_owner, list_claims, name_owner
from fermata.domain.errors import NotFound


@dataclass
class WorkingDocuments:
    """The documents of a space for one author.

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
        owners = self._find_owners([claim]).values()
        found = next(map(self.find, owners), None)
        return None if found is None or found.is_deleted else found

    def find_owners(self, models: Sequence[str], slug: str) -> list[DocumentKey]:
        """Return the documents of several models that have a slug."""
        return list(self._find_owners([claim_slug(model, slug) for model in models]).values())

    def _find_owners(self, claims: Collection[UniqueClaim]) -> dict[UniqueClaim, DocumentKey]:
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

    def read_before_deletion(self, key: DocumentKey) -> DocumentContent | None:
        """Return what a document said that was just deleted; None if that is not known."""
        version = read_newest_version(self.resources, self.space, key)
        if version is None or not version.is_deleted:
            return version.content if version else None
        wanted = (key, version.version - 1)
        found = read_versions_at_once(self.resources, self.space, [wanted]).get(wanted)
        return found.content if found else None

    def create(
        self,
        model: str,
        content: DocumentContent,
        *,
        section_models: Sequence[str] = (),
        document_id: str = "",
        effect_suffix: str = "",
    ) -> WrittenDocument:
        """Create a document.

        Args:
            model: The id of its model.
            content: What it says.
            section_models: As in `ChangeOptions`.
            document_id: An id of the caller's choice; a new one without it.
            effect_suffix: As in `change`.

        Raises:
            Conflict: There is a document of this id, or with one of its unique values.
            ContentRefused: The content breaks the rules of its model.
            ReviewRequired: Changes of the author wait for a review, and no conversation has a change set for them.
        """

        def store(new_id: str) -> WrittenDocument:
            key = DocumentKey(model, new_id)
            return self.change(key, decide, section_models=section_models, effect_suffix=effect_suffix, is_new=True)

        def decide(before: DocumentVersion | None, _basis: WriteBasis) -> DocumentContent:
            check_expected_version(before, 0)
            return content

        return store(document_id) if document_id else store_under_new_id(self.resources, store)

    def update(
        self,
        key: DocumentKey,
        change: Callable[[DocumentContent], DocumentContent],
        *section_models: str,
        effect_suffix: str = "",
    ) -> WrittenDocument:
        """Change a document that exists.

        Args:
            key: The document.
            change: Returns what it says from now on.
            section_models: Section models that the change adds to a page.
            effect_suffix: As in `change`.

        Raises:
            NotFound: It does not exist.
            ReviewRequired: As for `create`.
        """

        def decide(before: DocumentVersion | None, _basis: WriteBasis) -> DocumentContent:
            if before is None or before.content is None:
                raise NotFound(describe_missing_document(key))
            return change(before.content)

        return self.change(key, decide, section_models=section_models, effect_suffix=effect_suffix)

    def delete(self, key: DocumentKey) -> WrittenDocument:
        """Delete a document. It can be restored.

        Raises:
            NotFound: It does not exist.
            ReviewRequired: As for `create`.
        """

        def decide(before: DocumentVersion | None, _basis: WriteBasis) -> None:
            if before is None or before.is_deleted:
                raise NotFound(describe_missing_document(key))

        return self.change(key, decide)

    def change(
        self,
        key: DocumentKey,
        decide: DecideContent,
        *,
        section_models: Sequence[str] = (),
        effect_suffix: str = "",
        is_new: bool = False,
    ) -> WrittenDocument:
        """Change a document, or create or delete it, where the author's changes go.

        Args:
            key: The document.
            decide: As in `change_document`.
            section_models: As in `ChangeOptions`.
            effect_suffix: Tells this write from another one under the same effect key.
            is_new: Whether it is created.

        Raises:
            ReviewRequired: As for `create`.
        """
        effect = self.effect_key and self.effect_key + effect_suffix
        models = tuple(section_models)
        if not self.change_set:
            options = ChangeOptions(
                effect_key=effect,
                section_models=models,
                action="create" if is_new else "update",
                is_reviewed=self.is_reviewed,
            )
            try:
                return change_document(self.resources, self.space, key, self.author, decide, options)
            except ReviewRequired:
                if not self.conversation:
                    raise
        try:
            changed = self._change_where_it_waits(key, decide, models, effect)
        except ChangeSetClosed:
            if self.change_set:
                raise
            # The one of the conversation was merged or discarded at this moment: the change begins another one.
            self.__dict__.pop("_changed", None)
            changed = self._change_where_it_waits(key, decide, models, effect)
        return WrittenDocument(show_changed_document(changed, self.resources.clock.now_iso(), self.author))

    def _change_where_it_waits(
        self, key: DocumentKey, decide: DecideContent, section_models: tuple[str, ...], effect: str
    ) -> ChangedDocument:
        self.changed_in = self.change_set or open_conversation_change_set(
            self.resources, self.space, self.conversation, self.author
        )
        changed = change_in_change_set(
            self.resources,
            self.space,
            self.changed_in,
            key,
            lambda before, basis: self._check_unique(key, decide(before, basis), basis),
            section_models=section_models,
            effect_key=effect,
        )
        self.__dict__.pop("_changed", None)
        return changed

    def _check_unique(
        self, key: DocumentKey, content: DocumentContent | None, basis: WriteBasis
    ) -> DocumentContent | None:
        """Check at once what would else be refused when the change set is merged: values that others have."""
        state = basis.models.get(key.model)
        claims = list_claims(key, content, state.model if state else None)
        for claim, owner in self._find_owners(claims).items():
            if owner != key:
                raise ValueTaken(claim, name_owner(owner))
        return content

    def require_writable(self, basis: WriteBasis) -> None:
        """Check that a change of the author has a place, before work is done for it.

        Args:
            basis: Of the space.

        Raises:
            ReviewRequired: As for `create`.
        """
        has_place = self.change_set or self.conversation or not self.is_reviewed
        if not has_place and waits_for_review(self.resources, self.space, basis):
            raise ReviewRequired

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
