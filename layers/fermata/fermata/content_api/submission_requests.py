"""Handle requests of moderators on submissions of forms. What visitors have sent is shown to moderators only."""

from typing import Any

from fermata.aws import observability
from fermata.content.content_space import SpaceKey, read_space
from fermata.content.forms.approve_submission import approve_submission
from fermata.content.forms.submission import SUBMISSION_STATUSES, Submission, SubmissionStatus
from fermata.content.forms.submission_store import (
    MAX_LISTED_SUBMISSIONS,
    decide_submission,
    delete_submission,
    export_submissions,
    list_submissions,
    read_submission,
)
from fermata.content_api.request_parts import count_content_bytes, locate_space, make_author, may_review
from fermata.domain.errors import ApiError, InvalidRequest
from fermata.wire.bodies.content_requests import SubmissionDecision, SubmissionDecisions
from fermata.wire.http.messages import Response, read_integer_parameter
from fermata.wire.http.routing import RequestContext

_PAGE = 20
_EXPORTED_AT_ONCE = 40
"""A submission has about as many bytes as its form, 64 KB at most, and a response has room for 6 MB."""
_BYTES_OF_ENTRY = 2_000
"""What an entry counts as among the bytes that a caller stores in a day, roughly."""
_UNCACHED = {"Cache-Control": "private, no-store"}


def list_space_submissions(context: RequestContext) -> Response:
    """Respond with a page of the submissions of a model."""
    space, query = locate_space(context), context.request.query
    read_space(context.resources, space)
    status = next((one for one in SUBMISSION_STATUSES if one == query.get("status", "pending")), None)
    if status is None:
        raise InvalidRequest(f"'status' must be one of {', '.join(SUBMISSION_STATUSES)}.")
    limit = max(1, read_integer_parameter(context.request, "limit", _PAGE, maximum=MAX_LISTED_SUBMISSIONS))
    page = list_submissions(
        context.resources, space, query.get("model", ""), status, limit=limit, cursor=query.get("cursor", "")
    )
    may_see = may_review(context, space)
    views = [one.to_view(with_personal_data=may_see) for one in page.submissions]
    following = {"nextCursor": page.cursor} if page.cursor else {}
    return Response(200, {"submissions": views, "total": page.total, **following}, _UNCACHED)


def show_submission(context: RequestContext) -> Response:
    """Respond with a submission."""
    space = locate_space(context)
    return _respond(context, space, read_submission(context.resources, space, context.path_parameters["submission"]))


def decide_about_submission(context: RequestContext) -> Response:
    """Approve a submission, reject it, or call it spam."""
    body, space = context.parse_body(SubmissionDecision), locate_space(context, "reviewer")
    return _respond(context, space, _decide(context, space, context.path_parameters["submission"], body.status))


def decide_about_submissions(context: RequestContext) -> Response:
    """Do the same with up to 50 submissions. One that is refused keeps no other one from it."""
    body, space = context.parse_body(SubmissionDecisions), locate_space(context, "reviewer")
    read_space(context.resources, space)
    results = []
    for submission_id in dict.fromkeys(body.ids):
        try:
            if body.action == "delete":
                delete_submission(context.resources, space, submission_id)
            else:
                _decide(context, space, submission_id, body.action)
            results.append({"id": submission_id, "status": 200})
        except ApiError as refused:
            results.append({"id": submission_id, "status": refused.status, "error": refused.message})
    _log(context, space, body.action, len(results))
    return Response(200, {"results": results}, _UNCACHED)


def remove_submission(context: RequestContext) -> Response:
    """Delete a submission with all that is known of who has sent it."""
    space = locate_space(context, "reviewer")
    delete_submission(context.resources, space, context.path_parameters["submission"])
    _log(context, space, "delete", 1)
    return Response(200, {"ok": True})


def _decide(context: RequestContext, space: SpaceKey, submission_id: str, status: SubmissionStatus) -> Submission:
    submission = read_submission(context.resources, space, submission_id)
    if status != "approved":
        return decide_submission(context.resources, space, submission, status, context.caller.user)
    count_content_bytes(context, _BYTES_OF_ENTRY)
    return approve_submission(context.resources, space, submission, make_author(context))


def _respond(context: RequestContext, space: SpaceKey, submission: Submission) -> Response:
    view = submission.to_view(with_personal_data=may_review(context, space))
    return Response(200, {"submission": view}, _UNCACHED)


def export_space_submissions(context: RequestContext, space: SpaceKey, cursor: str) -> tuple[list[Any], str]:
    """Return the next submissions of a space as an export has them, and where the part after them begins.

    Args:
        context: The request. To moderators, it tells what was sent and by whom.
        space: The space.
        cursor: That of the part before.

    Raises:
        InvalidRequest: The cursor is none.
    """
    may_see = may_review(context, space)
    submissions, following = export_submissions(context.resources, space, cursor, _EXPORTED_AT_ONCE)
    if may_see and submissions:
        _log(context, space, "export", len(submissions))
    return [one.to_view(with_personal_data=may_see) for one in submissions], following


def _log(context: RequestContext, space: SpaceKey, action: str, count: int) -> None:
    caller = context.caller
    facts = {"space": space.name, "action": action, "count": count}
    observability.log_audit_event("ai.submission.decided", tenant=caller.tenant, user=caller.user, **facts)
