"""Change documents as their author works on them: in the space, or in a change set (decision 0524).

Where the workflow of a space is `review`, what an assistant changes for somebody whose changes are reviewed goes to
the change set of its conversation, and the conversation sees what is in it. Nobody else does before it is merged.
"""

from collections.abc import Callable, Sequence

from fermata.content.change_sets.change_set import ChangedDocument, show_changed_document
from fermata.content.change_sets.change_set_documents import change_in_change_set
from fermata.content.change_sets.change_set_store import ChangeSetClosed
from fermata.content.change_sets.conversation_change_set import open_conversation_change_set
from fermata.content.content_model import META_MODEL
from fermata.content.documents.change_document import (
    ChangeOptions,
    DecideContent,
    WrittenDocument,
    change_document,
    check_expected_version,
    store_under_new_id,
)
from fermata.content.documents.check_publication import draft_unpublished_locales
from fermata.content.documents.document import DocumentContent, DocumentKey, DocumentVersion
from fermata.content.documents.document_writes import ValueTaken
from fermata.content.documents.read_document import WriteBasis, describe_missing_document, waits_for_review
from fermata.content.documents.review_workflow import PROJECT_MODEL_ID, ReviewRequired
from fermata.content.documents.unique_claims import list_claims, name_owner
from fermata.content.documents_in_work import DocumentsInWork
from fermata.domain.errors import NotFound


class WorkingDocuments(DocumentsInWork):
    """The documents of a space as one author reads and changes them."""

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
        """Change a document that exists. What a further language says is a draft, for who may not publish it.

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
            after = change(before.content).with_settled_status()
            if not self.is_reviewed:
                return after
            return draft_unpublished_locales(self.resources, self.space, before.content, after)

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
            NotFound: It is a model, or the settings of a project, which are no content.
            ReviewRequired: As for `create`.
        """
        if key.model in (META_MODEL, PROJECT_MODEL_ID):
            raise NotFound(describe_missing_document(key))
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
            self._forget_changed()
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
        self._forget_changed()
        return changed

    def _check_unique(
        self, key: DocumentKey, content: DocumentContent | None, basis: WriteBasis
    ) -> DocumentContent | None:
        """Check at once what would else be refused when the change set is merged: values that others have."""
        state = basis.models.get(key.model)
        claims = list_claims(key, content, state.model if state else None)
        for claim, owner in self.find_owners_of_claims(claims).items():
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
