"""Merge a change set: all of its documents at one moment, or none of them and a list of the conflicts."""

from collections.abc import Mapping

from fermata.aws.resources import Resources
from fermata.content.change_sets.change_set import ChangeSet
from fermata.content.change_sets.change_set_store import (
    MAX_CHANGE_SET_ATTEMPTS,
    ChangeSetContents,
    build_closing_writes,
    close_change_set,
    delete_changed_documents,
    read_change_set,
    require_open,
)
from fermata.content.change_sets.merge_contents import FieldConflict, Preference
from fermata.content.change_sets.merge_documents import merge_documents
from fermata.content.content_space import SpaceKey
from fermata.content.documents.change_document import ChangeOptions, build_next_version, check_content
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
from fermata.domain.errors import Conflict, ServiceUnavailable


class MergeRefused(Conflict):
    """Others have changed the same fields. `details` lists them; nothing was merged."""

    code = "mergeConflict"

    def __init__(self, conflicts: dict[DocumentKey, tuple[FieldConflict, ...]]) -> None:
        names = ", ".join(f"{key.model}/{key.id}" for key in conflicts)
        super().__init__(f"Others have changed the same fields of {names}. Say whose values count.")
        self.details = {
            "conflicts": [
                {"model": key.model, "id": key.id, "fields": [one.to_view() for one in found]}
                for key, found in conflicts.items()
            ]
        }


def merge_change_set(
    resources: Resources,
    space: SpaceKey,
    change_set_id: str,
    author: ContentAuthor,
    prefer: Preference | None = None,
    *,
    count_bytes: BytesCounter = leave_uncounted,
) -> ChangeSet:
    """Merge a change set. One that was merged already stays so.

    Args:
        resources: Of the process.
        space: The space.
        change_set_id: The change set.
        author: Who merges it.
        prefer: Whose values count where others have changed the same fields; without it, these are conflicts.
        count_bytes: As in `pack_content`, for each document.

    Raises:
        NotFound: There is no such change set.
        MergeRefused: There are conflicts.
        Conflict: It was discarded, or a unique value is another document's by now.
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
            return _try_merge(resources, space, contents, author, prefer, count_bytes, is_first=attempt == 0)
        except ContentMoved as moved:
            make_way(resources, space, moved)
    raise ServiceUnavailable("Other requests are changing these documents. Try again.", retry_after=1)


def _try_merge(
    resources: Resources,
    space: SpaceKey,
    contents: ChangeSetContents,
    author: ContentAuthor,
    prefer: Preference | None,
    count_bytes: BytesCounter,
    *,
    is_first: bool,
) -> ChangeSet:
    keys = [document.key for document in contents.documents]
    parts = {part for document in contents.documents if document.content for part in document.content.parts}
    basis = read_write_basis(resources, space, {key.model for key in keys} | parts, heads=keys)
    bases, currents = _read_versions(resources, space, contents, basis, is_first=is_first)
    outcomes = {
        one.key: merge_documents(_read_content(bases, one.key), _read_content(currents, one.key), one.content, prefer)
        for one in contents.documents
    }
    conflicts = {key: outcome.conflicts for key, outcome in outcomes.items() if outcome.conflicts}
    if conflicts:
        raise MergeRefused(conflicts)
    options = ChangeOptions(action="merge", change_set=contents.change_set.id)
    steps = []
    for key, outcome in outcomes.items():
        if not outcome.is_unchanged:
            content, _warnings = check_content(outcome.content, key, basis)
            before = currents.get(key)
            steps.append(DocumentStep(before, build_next_version(resources, key, author, before, content, options)))
    closed = close_change_set(resources, contents.change_set, "merged")
    closing = build_closing_writes(resources, space, contents, closed)
    commit_documents(resources, space, steps, basis, extra=closing, count_bytes=count_bytes)
    if len(closing) <= len(contents.documents):
        delete_changed_documents(resources, space, closed.id)
    return closed


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


def _read_content(versions: Mapping[DocumentKey, DocumentVersion], key: DocumentKey) -> DocumentContent | None:
    version = versions.get(key)
    return version.content if version else None
