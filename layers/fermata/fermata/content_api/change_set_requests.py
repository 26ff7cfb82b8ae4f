"""Handle requests on change sets."""

from functools import partial
from typing import Any, Literal

from fermata.content.change_sets.change_set import ChangeSet
from fermata.content.change_sets.change_set_documents import change_in_change_set
from fermata.content.change_sets.change_set_store import (
    begin_change_set,
    discard_change_set,
    list_change_sets,
    read_change_set,
    read_change_set_alone,
)
from fermata.content.change_sets.changed_document_pages import (
    MAX_CHANGED_LISTED,
    ChangedDocumentPage,
    count_changed_models,
    read_changed_documents,
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
from fermata.content.media.project_presets import check_project_settings
from fermata.content.space_access import may_read_content
from fermata.content.space_members import require_membership
from fermata.content_api.document_requests import apply_change, list_added_sections
from fermata.content_api.publishing_right import (
    check_may_publish,
    check_may_publish_all,
    check_may_publish_locales,
    draft_further_locales,
)
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
from fermata.wire.http.messages import Response, read_integer_parameter
from fermata.wire.http.routing import RequestContext
from fermata.wire.operations.content import CAN_DECIDE


def list_space_change_sets(context: RequestContext) -> Response:
    """Respond with the change sets of a space, and which of them the caller has begun."""
    space = locate_space(context)
    read_space(context.resources, space)
    listed = list_change_sets(context.resources, space)
    views = [one.to_view() | {"own": one.user == context.caller.user} for one in listed]
    return Response(200, {"changeSets": views})


def begin_space_change_set(context: RequestContext) -> Response:
    """Begin a change set."""
    body = context.parse_body(NewChangeSet)
    count_body(context)
    change_set = begin_change_set(
        context.resources, locate_space(context), to_storable_json(body.title), make_author(context)
    )
    return Response(201, {"changeSet": change_set.to_view()})


def show_change_set(context: RequestContext) -> Response:
    """Respond with a change set, what the caller may do with it, and a page of its documents."""
    space, name = locate_space(context), context.path_parameters["changeSet"]
    change_set = read_change_set_alone(context.resources, space, name)
    body = {"changeSet": change_set.to_view(), "may": _list_decisions(context, space, change_set)}
    return Response(200, body | _show_page(context, space, change_set))


def _show_page(context: RequestContext, space: SpaceKey, change_set: ChangeSet) -> dict[str, Any]:
    """Return a page of the documents; with a limit, beside what they have begun with.

    The first of several pages has the number of documents of each model.
    """
    query, resources, is_limited = context.request.query, context.resources, "limit" in context.request.query
    limit = read_integer_parameter(context.request, "limit", 0, maximum=MAX_CHANGED_LISTED) if is_limited else None
    cursor, model = query.get("cursor", ""), query.get("model", "")
    page = ChangedDocumentPage(())
    if change_set.status == "open" and limit != 0:
        page = read_changed_documents(
            resources, space, change_set.id, limit=limit, after=cursor, model=model, has_bases=is_limited
        )
    counts = {}
    if page.after and not cursor:
        counts = {"documentsByModel": count_changed_models(resources, space, change_set.id)}
    views = [
        document.to_view() | ({"base": page.bases[document.key].to_view()} if document.key in page.bases else {})
        for document in page.documents
    ]
    return {"documents": views, **counts, **({"nextCursor": page.after} if page.after else {})}


def _list_decisions(context: RequestContext, space: SpaceKey, change_set: ChangeSet) -> list[str]:
    """Return what the caller may do with a change set that is open: merge it, discard it."""
    if change_set.status != "open" or not any(map(context.caller.has_capability, CAN_DECIDE)):
        return []
    member = require_membership(context.resources, space, context.caller)
    role = "reviewer" if member is None else member.role
    decides = _find_decider(context, space) is not None
    may = {
        "merge": decides and role == "reviewer",
        "discard": role in ("editor", "reviewer") and (decides or change_set.user == context.caller.user),
    }
    return [action for action, is_allowed in may.items() if is_allowed]


def discard_space_change_set(context: RequestContext) -> Response:
    """Discard a change set: one's own, or one about which the caller may decide."""
    space, name = locate_space(context, "editor", "reviewer"), context.path_parameters["changeSet"]
    if read_change_set_alone(context.resources, space, name).user != context.caller.user:
        _check_may_decide(context, space, "changes of others that wait for a review are discarded by who")
    discard_change_set(context.resources, space, name)
    return Response(200, {"ok": True})


def change_document_in_change_set(context: RequestContext) -> Response:
    """Change a document in a change set only."""
    body, space, key = context.parse_body(DocumentInChangeSet), locate_space(context), locate_document(context)
    count_bytes = partial(count_content_bytes, context)

    def decide(before: DocumentVersion | None, _basis: WriteBasis) -> DocumentContent | None:
        content = before.content if before and before.content else DocumentContent()
        changed = apply_change(content, body)
        return None if body.deleted else draft_further_locales(context, space, content, changed, body.statuses or ())

    added = list_added_sections(body)
    require_right_to_model(context, key.model)
    check_project_settings(key, body.locales)
    check_may_publish(context, space, body.status, key)
    check_may_publish_locales(context, space, body.statuses, key)
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
    decider = _find_decider(context, space)
    if decider is None:
        raise Forbidden(f"Forbidden: {who} has {Capability.REVIEW_CONTENT}.")
    return decider == "reviewer"


def _find_decider(context: RequestContext, space: SpaceKey) -> Literal["reviewer", "writer"] | None:
    """Return as what the caller decides about changes of others; None if they wait for somebody else."""
    if may_review(context, space):
        return "reviewer"
    waits = waits_for_review(context.resources, space, read_write_basis(context.resources, space, []))
    return None if waits else "writer"


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
    for one in published:
        base = begun.get((one.key, one.base_version))
        if one.content and base and base.content and (added := one.content.list_newly_published(base.content)):
            check_may_publish_locales(context, space, dict.fromkeys(added, "published"), one.key)
