"""List submissions of forms, approve and reject them, for the tools of the studio."""

from typing import Any

from fermata.content.content_model import DEFINITION_LOCALE, ContentModel
from fermata.content.documents.document import DocumentContent
from fermata.content.forms.approve_submission import build_entry, make_entry_key
from fermata.content.forms.submission import SUBMISSION_STATUSES, Submission
from fermata.content.forms.submission_store import decide_submission, list_submissions, read_submission
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.tools.studio.branch_writes import write_documents
from fermata.tools.studio.project_permissions import CallerRefused
from fermata.tools.studio.studio_access import StudioAccess

_MODERATING_TOOL = "approve_submission"
_LISTED = 20
_HIDDEN_NOTE = " What visitors have sent is shown to reviewers and admins only."


def list_studio_submissions(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Return submissions of a model, the newest first: to moderators with what was sent, to others without."""
    model = access.require_model(arguments["modelId"])
    status = next((one for one in SUBMISSION_STATUSES if one == arguments.get("status", "pending")), None)
    if status is None:
        raise InvalidRequest(f"'status' is one of {', '.join(SUBMISSION_STATUSES)}.")
    opened, may_see = access.opened, _may_moderate(access)
    page = list_submissions(opened.resources, opened.space, model.id, status, limit=arguments.get("limit", _LISTED))
    shown = [one for one in page.submissions if _is_in_allowed_locale(one, model, access)]
    views = [one.to_view(with_personal_data=may_see) for one in shown]
    note = "" if may_see else _HIDDEN_NOTE
    return {"submissions": views, "total": page.total, "message": f"{page.total} {status} submissions.{note}"}


def approve_studio_submission(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Make a submission an entry in a branch, in the language of its visitor, and mark it approved.

    One that breaks the rules of its model stays as it is.
    """
    submission = _find_submission(arguments, access)
    if submission.entry_id:
        return _describe(submission, f"It was approved before, as the entry {submission.entry_id}.", access)
    model, key = access.require_model(submission.model), make_entry_key(access.opened.space, submission)
    content = build_entry(submission, model, access.whole.record.locales)
    [place] = content.locales

    def add_entry(before: DocumentContent | None) -> DocumentContent:
        return before or content

    locale = "" if place == DEFINITION_LOCALE else place
    written = write_documents(access, "approve_submission", {key: add_entry}, target=model.id, locale=locale)
    if not written["valid"]:
        message = "The submission breaks the rules of its model and stays pending. Change the model, or reject it."
        return _describe(submission, message, access) | written
    opened = access.opened
    decided = decide_submission(
        opened.resources, opened.space, submission, "approved", opened.author.user, entry_id=key.id
    )
    return _describe(decided, f"It is the entry {key.id} of {model.id}.", access) | written


def reject_studio_submission(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Reject a submission."""
    submission, opened = _find_submission(arguments, access), access.opened
    decided = decide_submission(opened.resources, opened.space, submission, "rejected", opened.author.user)
    return _describe(decided, "It was rejected.", access)


def _find_submission(arguments: dict[str, Any], access: StudioAccess) -> Submission:
    """Return a submission of a model that the caller may work on.

    Raises:
        NotFound: There is none.
        CallerRefused: It is in a language that the caller may not use.
    """
    submission = read_submission(access.opened.resources, access.opened.space, str(arguments["submissionId"]))
    models = access.permissions.allowed_models
    if models is not None and submission.model not in models:
        raise NotFound("There is no such submission.")
    model = access.models.get(submission.model)
    if model is not None and not _is_in_allowed_locale(submission, model, access):
        raise CallerRefused("locale_not_allowed")
    return submission


def _is_in_allowed_locale(submission: Submission, model: ContentModel, access: StudioAccess) -> bool:
    """Return whether the caller may use the language of a submission. One of an untranslated model has none."""
    allowed = access.permissions.allowed_locales
    return allowed is None or not model.i18n or submission.locale in allowed


def _describe(submission: Submission, message: str, access: StudioAccess) -> dict[str, Any]:
    view = submission.to_view(with_personal_data=_may_moderate(access))
    entry = {"entryId": submission.entry_id} if submission.entry_id else {}
    return {**entry, "submission": view, "message": message}


def _may_moderate(access: StudioAccess) -> bool:
    return _MODERATING_TOOL in access.permissions.tools
