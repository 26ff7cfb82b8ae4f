"""Change a document: read it, decide what becomes of it, validate that, and store it as a new version."""

import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from fermata.aws.dynamodb_items_and_writes import Write
from fermata.aws.resources import Resources
from fermata.content.content_model import META_MODEL, ContentModel, ModelKind
from fermata.content.content_space import SpaceKey
from fermata.content.documents.commit_errors import ContentMoved, EffectRepeated
from fermata.content.documents.document import (
    ContentAuthor,
    ContentStatus,
    DocumentContent,
    DocumentKey,
    DocumentVersion,
    VersionAction,
)
from fermata.content.documents.document_commit import commit_documents, make_way
from fermata.content.documents.document_rows import BytesCounter, leave_uncounted
from fermata.content.documents.document_writes import DocumentStep
from fermata.content.documents.read_document import (
    WriteBasis,
    describe_missing_document,
    read_document_version,
    read_newest_version,
    read_write_basis,
    waits_for_review,
)
from fermata.content.documents.review_workflow import ReviewRequired
from fermata.content.media.asset_files import measure_asset
from fermata.content.page_sections import count_section_models
from fermata.content.validation.content_problem import ContentProblem, is_valid
from fermata.content.validation.validate_document import ContentRefused, validate_document
from fermata.domain.errors import Conflict, InvalidRequest, NotFound, ServiceUnavailable, VersionMismatch

MAX_DOCUMENT_ATTEMPTS = 5
MAX_DRAWN_IDS = 8
"""How many ids are drawn for a new document. 65,536 are in a second, so that two documents can draw the same one."""
SINGLETON_ID = "main"
"""The id of the only document of a model that is a singleton or a dictionary."""

DecideContent = Callable[[DocumentVersion | None, WriteBasis], DocumentContent | None]
"""Returns what a document says from now on, given its newest version if it exists; None deletes it."""


class WrittenDocument(NamedTuple):
    """A version that was stored now, or by an earlier copy of the request; and warnings about it."""

    version: DocumentVersion
    warnings: tuple[ContentProblem, ...] = ()


class DocumentExists(Conflict):
    """There is a document of the id that a new one is to have."""

    def __init__(self) -> None:
        super().__init__("There is such a document already.")


class ChangeOptions(NamedTuple):
    """What a change depends on.

    Attributes:
        expected_version: The version that the caller has seen: 0 for none, None for any.
        effect_key: The same for every repetition of the change, which is then made once.
        section_models: Section models that the change adds to a page.
        is_reviewed: Whether the change has to wait for a review where the space's workflow says so.
        count_bytes: As in `pack_content`.
        build_beside: Returns further writes of its transaction. It is called in each attempt.
    """

    expected_version: int | None = None
    effect_key: str = ""
    section_models: tuple[str, ...] = ()
    action: VersionAction = "update"
    restored_from: int = 0
    change_set: str = ""
    count_bytes: BytesCounter = leave_uncounted
    build_beside: Callable[[], Sequence[Write]] = tuple
    is_reviewed: bool = False


def change_document(
    resources: Resources,
    space: SpaceKey,
    key: DocumentKey,
    author: ContentAuthor,
    decide: DecideContent,
    options: ChangeOptions | None = None,
) -> WrittenDocument:
    """Make a change once, on the newest version of a document.

    Args:
        resources: Of the process.
        space: The space of the document.
        key: The document.
        author: Who makes the change.
        decide: Is called again when another write was faster.
        options: What the change depends on.

    Raises:
        NotFound: The space, the model or a section model does not exist.
        Conflict: A unique value is another document's.
        VersionMismatch: The document is not at the expected version.
        ContentRefused: The content breaks the rules of its model.
        ReviewRequired: Changes of its author wait for a review.
        ServiceUnavailable: Others were faster in each of `MAX_DOCUMENT_ATTEMPTS` attempts.
    """
    options = options or ChangeOptions()
    for _ in range(MAX_DOCUMENT_ATTEMPTS):
        try:
            return _try_change(resources, space, key, author, decide, options)
        except ContentMoved as moved:
            make_way(resources, space, moved)
        except EffectRepeated:
            continue
    raise ServiceUnavailable("Other requests are changing this document. Try again.", retry_after=1)


def _try_change(
    resources: Resources,
    space: SpaceKey,
    key: DocumentKey,
    author: ContentAuthor,
    decide: DecideContent,
    options: ChangeOptions,
) -> WrittenDocument:
    before = read_newest_version(resources, space, key)
    parts = before.content.parts if before and before.content else {}
    models = {key.id if key.model == META_MODEL else key.model, *options.section_models, *parts}
    basis = read_write_basis(resources, space, models, effect_key=options.effect_key)
    if basis.effect is not None:
        return read_made_change(resources, space, basis.effect)
    live = None if before is None or before.is_deleted else before
    check_expected_version(live, options.expected_version)  # before it is sent to a change set (decision 0682)
    if options.is_reviewed and waits_for_review(resources, space, basis):
        raise ReviewRequired
    content = measure_asset(resources, space, key, live.content if live else None, decide(live, basis))
    if content is not None and live is not None and content == live.content:
        return WrittenDocument(live)
    if content is None and live is None:
        raise NotFound(describe_missing_document(key))
    content, warnings = check_content(content, key, basis)
    after = build_next_version(resources, key, author, before, content, options)
    steps = [DocumentStep(before, after)]
    commit_documents(
        resources,
        space,
        steps,
        basis,
        effect_key=options.effect_key,
        extra=options.build_beside(),
        count_bytes=options.count_bytes,
    )
    return WrittenDocument(after, warnings)


def check_expected_version(live: DocumentVersion | None, expected: int | None) -> None:
    """Check that a document is at the version that the caller has seen.

    Raises:
        DocumentExists: It exists, and the caller takes it for new.
        VersionMismatch: It is at another one.
    """
    current = live.version if live else 0
    if expected is not None and expected != current:
        if expected == 0:
            raise DocumentExists
        message = f"The document has changed: it is at version {current}, not at {expected}."
        raise VersionMismatch(message, version=current)


def read_made_change(resources: Resources, space: SpaceKey, effect: dict[str, Any]) -> WrittenDocument:
    """Return what an earlier copy of a change has stored.

    Raises:
        ReviewRequired: It has stored it in a change set.
    """
    if is_effect_in_change_set(effect):
        raise ReviewRequired
    model, document_id, version = json.loads(effect["made"])[0]
    key = DocumentKey(model, document_id)
    return WrittenDocument(read_document_version(resources, space, key, version))


def is_effect_in_change_set(effect: Mapping[str, Any]) -> bool:
    """Return whether a change was stored in a change set, where documents have no versions.

    A write that has stored no document, as a language that is added to an empty site, was not.
    """
    made = json.loads(effect["made"])
    return bool(made) and not made[0][2]


def check_content(
    content: DocumentContent | None, key: DocumentKey, basis: WriteBasis
) -> tuple[DocumentContent | None, tuple[ContentProblem, ...]]:
    """Validate what a document says from now on, and count its parts.

    Args:
        content: What it says; None if it is deleted.
        key: The document.
        basis: Its models, and the locales of its space.

    Raises:
        NotFound: A model does not exist.
        ContentRefused: It breaks the rules of its model.
    """
    if content is None or key.model == META_MODEL:
        return content, ()
    model = basis.require_model(key.model)
    _check_kind(model, key)
    if model.kind is ModelKind.PAGE:
        content = content.model_copy(update={"parts": count_section_models(content)})
        for part in content.parts:
            basis.require_model(part)
    models = {name: state.model for name, state in basis.models.items()}
    problems = validate_document(content, model, models, basis.space.locales)
    if not is_valid(problems):
        raise ContentRefused(problems)
    return content, tuple(problems)


def _check_kind(model: ContentModel, key: DocumentKey) -> None:
    if not model.has_documents:
        raise InvalidRequest(f"{model.id} is a section, which has no documents. Add it to a page.")
    if model.kind in (ModelKind.SINGLETON, ModelKind.DICTIONARY) and key.id != SINGLETON_ID:
        raise InvalidRequest(f"{model.id} has one document only, with the id {SINGLETON_ID}.")


def build_next_version(
    resources: Resources,
    key: DocumentKey,
    author: ContentAuthor,
    before: DocumentVersion | None,
    content: DocumentContent | None,
    options: ChangeOptions,
) -> DocumentVersion:
    """Build the version that follows the newest one of a document.

    Args:
        resources: Of the process.
        key: The document.
        author: Who makes it.
        before: The newest version, which may be the mark of a deletion.
        content: What the document says from now on; None deletes it.
        options: What the change is.
    """
    now = resources.clock.now_iso()
    is_new = before is None or before.is_deleted
    action: VersionAction = "create" if is_new and options.action == "update" else options.action
    if content is not None and author.source != "import" and _becomes_published(before, content):
        content = content.with_status(content.status, now)
    return DocumentVersion(
        model=key.model,
        id=key.id,
        version=(before.version if before else 0) + 1,
        action="delete" if content is None else action,
        at=now,
        created_at=before.created_at if before else now,
        user=author.user,
        source=author.source,
        turn=author.turn,
        call=author.call,
        restored_from=options.restored_from,
        change_set=options.change_set,
        content=content,
    )


def _becomes_published(before: DocumentVersion | None, content: DocumentContent) -> bool:
    status = before.content.status if before and before.content else ContentStatus.DRAFT
    return content.status is ContentStatus.PUBLISHED and status is not ContentStatus.PUBLISHED


def create_document(
    resources: Resources,
    space: SpaceKey,
    model: str,
    author: ContentAuthor,
    content: DocumentContent,
    *,
    effect_key: str = "",
    section_models: Iterable[str] = (),
    document_id: str = "",
    is_reviewed: bool = False,
) -> WrittenDocument:
    """Create a document.

    Args:
        resources: Of the process.
        space: Where it is created.
        model: The id of its model.
        author: Who creates it.
        content: What it says.
        effect_key: As in `ChangeOptions`.
        section_models: As in `ChangeOptions`.
        document_id: An id of the caller's choice; a new one without it.
        is_reviewed: As in `ChangeOptions`.

    Raises:
        Conflict: There is a document of this id, or with one of its unique values.
        ContentRefused: The content breaks the rules of its model.
    """
    options = ChangeOptions(0, effect_key, tuple(section_models), "create", is_reviewed=is_reviewed)

    def store(new_id: str) -> WrittenDocument:
        key = DocumentKey(model, new_id)
        return change_document(resources, space, key, author, lambda _before, _basis: content, options)

    return store(document_id) if document_id else store_under_new_id(resources, store)


def store_under_new_id(resources: Resources, store: Callable[[str], WrittenDocument]) -> WrittenDocument:
    """Store a new document under an id that no other one has (decision 0547).

    Args:
        resources: Of the process.
        store: Stores it under an id, and raises DocumentExists if there is a document of this id. Then it is called
            again with another id.
    """
    for _ in range(MAX_DRAWN_IDS - 1):
        with suppress(DocumentExists):
            return store(_draw_document_id(resources))
    return store(_draw_document_id(resources))


def _draw_document_id(resources: Resources) -> str:
    """Return an id of 12 hexadecimal digits. Those of later seconds are greater, so that lists are in this order."""
    return f"{int(resources.clock.time()):08x}{secrets.token_hex(2)}"


def update_document(
    resources: Resources,
    space: SpaceKey,
    key: DocumentKey,
    author: ContentAuthor,
    change: Callable[[DocumentContent], DocumentContent],
    options: ChangeOptions | None = None,
) -> WrittenDocument:
    """Change a document that exists.

    Args:
        resources: Of the process.
        space: The space of the document.
        key: The document.
        author: Who changes it.
        change: Returns what it says from now on.
        options: What the change depends on.

    Raises:
        NotFound: It does not exist.
    """

    def decide(before: DocumentVersion | None, _basis: WriteBasis) -> DocumentContent:
        if before is None or before.content is None:
            raise NotFound(describe_missing_document(key))
        return change(before.content)

    return change_document(resources, space, key, author, decide, options)


def delete_document(
    resources: Resources,
    space: SpaceKey,
    key: DocumentKey,
    author: ContentAuthor,
    options: ChangeOptions | None = None,
) -> WrittenDocument:
    """Delete a document. Its versions stay, and any of them can be restored.

    Args:
        resources: Of the process.
        space: The space of the document.
        key: The document.
        author: Who deletes it.
        options: What the change depends on.

    Raises:
        NotFound: It does not exist.
    """
    return change_document(resources, space, key, author, lambda _before, _basis: None, options)
