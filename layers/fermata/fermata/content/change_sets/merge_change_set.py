"""Merge a change set: all of its documents at one moment, or none of them and a list of the conflicts."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from fermata.aws.resources import Resources
from fermata.content.change_sets.change_set import ChangedDocument, ChangeSet
from fermata.content.change_sets.change_set_store import (
    MAX_CHANGE_SET_ATTEMPTS,
    ChangeSetContents,
    build_closing_writes,
    close_change_set,
    delete_changed_documents,
    read_change_set,
    require_open,
)
from fermata.content.change_sets.merge_contents import Conflicts, Preference, list_conflict_views, name_documents
from fermata.content.change_sets.merge_documents import MergedDocument, merge_documents
from fermata.content.content_model import META_MODEL
from fermata.content.content_space import SpaceKey
from fermata.content.documents.change_document import ChangeOptions, DocumentExists, build_next_version, check_content
from fermata.content.documents.commit_errors import ContentMoved
from fermata.content.documents.document import ContentAuthor, DocumentContent, DocumentKey, DocumentVersion
from fermata.content.documents.document_commit import commit_documents, make_way
from fermata.content.documents.document_rows import BytesCounter, leave_uncounted
from fermata.content.documents.document_writes import DocumentStep
from fermata.content.documents.read_document import (
    WriteBasis,
    read_newest_version,
    read_versions_at_once,
    read_write_basis,
)
from fermata.content.forms.submission_store import delete_submissions_of_model
from fermata.content.model_changes import (
    MergedModels,
    check_deleted_models,
    normalize_model_content,
    overlay_models,
    require_no_breaking,
)
from fermata.content.model_store import check_forms_fit_plan
from fermata.domain.errors import Conflict, ServiceUnavailable

MODEL_MEMBERS = ("fields",)
"""The members of a model's definition that are merged one by one."""


class MergeRefused(Conflict):
    """Others have changed the same fields. `details` lists them; nothing was merged."""

    code = "mergeConflict"

    def __init__(self, conflicts: Conflicts) -> None:
        names = name_documents(conflicts)
        super().__init__(f"Others have changed the same fields of {names}. Say whose values count.")
        self.details = {"conflicts": list_conflict_views(conflicts)}


class MergeOptions(NamedTuple):
    """How a merge decides what has to be decided.

    Attributes:
        prefer: Whose values count where others have changed the same fields; without it, these are conflicts.
        allow_breaking: Whether models may change so that their documents may not fit any more.
        count_bytes: As in `pack_content`, for each document.
        begins_with: A document that must not exist yet, even with the same content; None for none.
    """

    prefer: Preference | None = None
    allow_breaking: bool = False
    count_bytes: BytesCounter = leave_uncounted
    begins_with: DocumentKey | None = None


def merge_change_set(
    resources: Resources,
    space: SpaceKey,
    change_set_id: str,
    author: ContentAuthor,
    options: MergeOptions | None = None,
) -> ChangeSet:
    """Merge a change set. One that was merged already stays so.

    Args:
        resources: Of the process.
        space: The space.
        change_set_id: The change set.
        author: Who merges it.
        options: How it is decided what has to be decided.

    Raises:
        NotFound: There is no such change set.
        MergeRefused: There are conflicts.
        BreakingModels: Models change so that documents may not fit any more.
        Conflict: It was discarded, or a unique value is another document's by now, or what it begins with exists.
        ContentRefused: A document breaks the rules that its model has by now.
        ServiceUnavailable: Others were faster in each of `MAX_CHANGE_SET_ATTEMPTS` attempts.
    """
    for attempt in range(MAX_CHANGE_SET_ATTEMPTS):
        contents = read_change_set(resources, space, change_set_id)
        if contents.change_set.status == "merged":
            delete_changed_documents(resources, space, change_set_id)
            return contents.change_set
        require_open(contents.change_set)
        try:
            return _try_merge(resources, space, contents, author, options or MergeOptions(), is_first=attempt == 0)
        except ContentMoved as moved:
            make_way(resources, space, moved)
    raise ServiceUnavailable("Other requests are changing these documents. Try again.", retry_after=1)


def _try_merge(
    resources: Resources,
    space: SpaceKey,
    contents: ChangeSetContents,
    author: ContentAuthor,
    options: MergeOptions,
    *,
    is_first: bool,
) -> ChangeSet:
    keys = [document.key for document in contents.documents]
    parts = {part for document in contents.documents if document.content for part in document.content.parts}
    models = {key.id if key.model == META_MODEL else key.model for key in keys}
    basis = read_write_basis(resources, space, models | parts, heads=keys)
    bases, currents = _read_versions(resources, space, contents, basis, is_first=is_first)
    if options.begins_with in currents and not currents[options.begins_with].is_deleted:
        raise ContentMoved if is_first else DocumentExists  # another copy of the request may have merged it just now
    outcomes = {
        one.key: _merge_one(bases.get(one.key), currents.get(one.key), one, options.prefer)
        for one in contents.documents
    }
    conflicts = {key: outcome.conflicts for key, outcome in outcomes.items() if outcome.conflicts}
    if conflicts:
        raise MergeRefused(conflicts)
    made = {key: outcome.content for key, outcome in outcomes.items() if not outcome.is_unchanged}
    merged = _merge_models(basis, made, allow_breaking=options.allow_breaking)
    _check_forms(resources, space, basis, merged.checked, made)
    steps = list(_plan_steps(resources, contents.change_set, author, made, currents, merged.checked))
    check_deleted_models(basis, steps)
    closed = close_change_set(resources, contents.change_set, "merged")
    closing = build_closing_writes(resources, space, contents, closed)
    commit_documents(resources, space, steps, merged.stored, extra=closing, count_bytes=options.count_bytes)
    if len(closing) <= len(contents.documents):
        delete_changed_documents(resources, space, closed.id)
    for step in steps:
        if step.after.model == META_MODEL and step.after.is_deleted:
            delete_submissions_of_model(resources, space, step.after.id)
    return closed


def _merge_one(
    base: DocumentVersion | None,
    current: DocumentVersion | None,
    changed: ChangedDocument,
    prefer: Preference | None,
) -> MergedDocument:
    nested = MODEL_MEMBERS if changed.model == META_MODEL else ()
    before, theirs = (version.content if version else None for version in (base, current))
    return merge_documents(before, theirs, changed.content, prefer, nested)


def _merge_models(
    basis: WriteBasis, made: Mapping[DocumentKey, DocumentContent | None], *, allow_breaking: bool
) -> MergedModels:
    """Return the models as they are after a merge, by which its documents are checked."""
    changed = {
        key.id: normalize_model_content(content, key, basis) if content else None
        for key, content in made.items()
        if key.model == META_MODEL
    }
    if not allow_breaking:
        require_no_breaking(basis, changed)
    return overlay_models(basis, changed)


def _check_forms(
    resources: Resources, space: SpaceKey, basis: WriteBasis, checked: WriteBasis, made: Iterable[DocumentKey]
) -> None:
    changed = [name for model, name in made if model == META_MODEL and name in checked.models]
    known = {name: state.model for name, state in basis.models.items()}
    check_forms_fit_plan(resources, space, [(known.get(name), checked.models[name].model) for name in changed])


def _plan_steps(
    resources: Resources,
    change_set: ChangeSet,
    author: ContentAuthor,
    made: Mapping[DocumentKey, DocumentContent | None],
    currents: Mapping[DocumentKey, DocumentVersion],
    checked: WriteBasis,
) -> Iterator[DocumentStep]:
    options = ChangeOptions(action="merge", change_set=change_set.id)
    for key, merged in made.items():
        content, _warnings = check_content(merged, key, checked)
        before = currents.get(key)
        yield DocumentStep(before, build_next_version(resources, key, author, before, content, options))


def _read_versions(
    resources: Resources, space: SpaceKey, contents: ChangeSetContents, basis: WriteBasis, *, is_first: bool
) -> tuple[dict[DocumentKey, DocumentVersion], dict[DocumentKey, DocumentVersion]]:
    """Return the versions with which documents have begun, and the newest ones, which may be marks of deletions.

    The first attempt takes a document that is new for one that never was, which saves a request for each of them.
    """
    wanted = {(one.key, one.base_version) for one in contents.documents}
    wanted |= {(key, int(head["version"])) for key, head in basis.heads.items()}
    found = read_versions_at_once(resources, space, wanted)
    bases = {one.key: found[base] for one in contents.documents if (base := (one.key, one.base_version)) in found}
    currents: dict[DocumentKey, DocumentVersion] = {}
    for one in contents.documents:
        head = basis.heads.get(one.key)
        current = found.get((one.key, int(head["version"]))) if head else None
        if current is None and (one.base_version or not is_first):
            current = read_newest_version(resources, space, one.key)
        if current is not None:
            currents[one.key] = current
    return bases, currents
