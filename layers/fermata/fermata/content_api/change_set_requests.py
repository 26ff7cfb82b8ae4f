"""Handle requests on change sets."""

from functools import partial

from fermata.content.change_sets.change_set_documents import change_in_change_set
from fermata.content.change_sets.change_set_store import (
    begin_change_set,
    discard_change_set,
    list_change_sets,
    read_change_set,
)
from fermata.content.change_sets.merge_change_set import MergeOptions, merge_change_set
from fermata.content.content_space import SpaceKey, read_space
from fermata.content.documents.document import ContentStatus, DocumentContent, DocumentVersion
from fermata.content.documents.read_document import (
    WriteBasis,
    read_versions_at_once,
    read_write_basis,
    waits_for_review,
)
from fermata.content.page_sections import list_section_models
from fermata.content.space_access import may_read_content
from fermata.content_api.document_requests import apply_change
from fermata.content_api.publishing_right import check_may_publish, check_may_publish_all
from fermata.content_api.request_parts import (
    count_body,
    count_content_bytes,
    locate_document,
    locate_space,
    make_author,
    may_review,
    require_right_to_model,
)
from fermata.domain.caller import Capability
from fermata.domain.errors import Forbidden
from fermata.domain.surrogates_and_infinities import to_storable_json
from fermata.wire.bodies.content_requests import ChangeSetMerge, DocumentInChangeSet, NewChangeSet
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext


def list_space_change_sets(context: RequestContext) -> Response:
    """Respond with the change sets of a space."""
    space = locate_space(context)
    read_space(context.resources, space)
    return Response(200, {"changeSets": [one.to_view() for one in list_change_sets(context.resources, space)]})


def begin_space_change_set(context: RequestContext) -> Response:
    """Begin a change set."""
    body = context.parse_body(NewChangeSet)
    count_body(context)
    change_set = begin_change_set(
        context.resources, locate_space(context), to_storable_json(body.title), make_author(context)
    )
    return Response(201, {"changeSet": change_set.to_view()})


def show_change_set(context: RequestContext) -> Response:
    """Respond with a change set and its documents."""
    contents = read_change_set(context.resources, locate_space(context), context.path_parameters["changeSet"])
    documents = [document.to_view() for document in contents.documents]
    return Response(200, {"changeSet": contents.change_set.to_view(), "documents": documents})


def discard_space_change_set(context: RequestContext) -> Response:
    """Discard a change set: one's own, or one about which the caller may decide."""
    space, name = locate_space(context, "editor", "reviewer"), context.path_parameters["changeSet"]
    if read_change_set(context.resources, space, name).change_set.user != context.caller.user:
        _check_may_decide(context, space, "changes of others that wait for a review are discarded by who")
    discard_change_set(context.resources, space, name)
    return Response(200, {"ok": True})


def change_document_in_change_set(context: RequestContext) -> Response:
    """Change a document in a change set only."""
    body, space, key = context.parse_body(DocumentInChangeSet), locate_space(context), locate_document(context)
    count_bytes = partial(count_content_bytes, context)

    def decide(before: DocumentVersion | None, _basis: WriteBasis) -> DocumentContent | None:
        content = before.content if before and before.content else DocumentContent()
        return None if body.deleted else apply_change(content, body)

    added = list_section_models(apply_change(DocumentContent(), body))
    require_right_to_model(context, key.model)
    check_may_publish(context, space, body.status, key)
    changed = change_in_change_set(
        context.resources,
        space,
        context.path_parameters["changeSet"],
        key,
        decide,
        section_models=added,
        count_bytes=count_bytes,
    )
    return Response(200, {"document": changed.to_view()})


def merge_space_change_set(context: RequestContext) -> Response:
    """Merge a change set."""
    body = context.parse_body(ChangeSetMerge) if context.request.body.strip() else ChangeSetMerge()
    space, name = locate_space(context, "reviewer"), context.path_parameters["changeSet"]
    if not _check_may_decide(context, space, "changes of this space are merged by who"):
        _check_own_rights(context, space, name, restores_deleted=body.prefer == "ours")
    options = MergeOptions(body.prefer, body.allow_breaking, partial(count_content_bytes, context))
    merged = merge_change_set(context.resources, space, name, make_author(context), options)
    return Response(200, {"changeSet": merged.to_view()})


def _check_may_decide(context: RequestContext, space: SpaceKey, who: str) -> bool:
    """Return whether the caller reviews. Check that, where changes wait for a review, as in the studio (decision 0628).

    Args:
        context: The request.
        space: The space.
        who: Begins the words about who may.

    Raises:
        Forbidden: Somebody else has to.
    """
    if not may_read_content(context.caller):
        raise Forbidden(f"Forbidden: {who} has {Capability.READ_CONTENT} too.")
    if may_review(context, space):
        return True
    if waits_for_review(context.resources, space, read_write_basis(context.resources, space, [])):
        raise Forbidden(f"Forbidden: {who} has {Capability.REVIEW_CONTENT}.")
    return False


def _check_own_rights(context: RequestContext, space: SpaceKey, name: str, *, restores_deleted: bool) -> None:
    """Check that who merges without being a reviewer could make the changes outside of a change set, too.

    Args:
        context: The request.
        space: The space.
        name: The change set.
        restores_deleted: Whether documents that somebody has deleted meanwhile come back as they are in it.

    Raises:
        Forbidden: It changes models or the settings of a project, or publishes, which somebody else has to do.
    """
    documents = read_change_set(context.resources, space, name).documents
    for document in documents:
        require_right_to_model(context, document.model)
    published = [one for one in documents if one.content and one.content.status is ContentStatus.PUBLISHED]
    begun = read_versions_at_once(context.resources, space, [(one.key, one.base_version) for one in published])
    stay = {one.key for one in begun.values() if one.content and one.content.status is ContentStatus.PUBLISHED}
    keys = [one.key for one in published if restores_deleted or one.key not in stay]
    check_may_publish_all(context, space, keys)
