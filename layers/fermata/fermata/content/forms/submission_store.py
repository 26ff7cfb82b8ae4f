"""List submissions, read them, decide about them, and delete them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Delete, TransactionCanceled, Write
from fermata.aws.resources import Resources
from fermata.content.content_model import MODEL_ID
from fermata.content.content_space import SpaceKey
from fermata.content.forms.submission import (
    SUBMISSION_ID_PATTERN,
    SUBMISSION_PREFIX,
    SUBMISSION_STATUSES,
    Submission,
    SubmissionStatus,
    build_submission_change,
    build_submission_deletes,
    submission_from_item,
    submission_list_prefix,
    submission_sort_key,
)
from fermata.domain.errors import Conflict, InvalidRequest, NotFound

MAX_LISTED_SUBMISSIONS = 100
MAX_COUNTED = 1000
"""Submissions of a list that are counted. Of a longer one, this is its total."""
_ID = re.compile(SUBMISSION_ID_PATTERN)
_DELETED_AT_ONCE = 50
"""With their places in lists, they fit into one transaction."""
_CHANGED_MEANWHILE = "Somebody else has just decided about this submission. Look at it again."


class SubmissionPage(NamedTuple):
    """A page of a list, the newest first, and where the next one begins; empty behind the last."""

    submissions: list[Submission]
    cursor: str
    total: int


def list_submissions(
    resources: Resources,
    space: SpaceKey,
    model: str,
    status: SubmissionStatus,
    *,
    limit: int,
    cursor: str = "",
) -> SubmissionPage:
    """Return submissions of a model with a status, the newest first.

    Args:
        resources: Of the process.
        space: The space.
        model: The model.
        status: The status.
        limit: The greatest number of submissions.
        cursor: That of the page before.

    Raises:
        InvalidRequest: The model or the cursor is none.
    """
    if not MODEL_ID.fullmatch(model) or (cursor and not _ID.fullmatch(cursor)):
        raise InvalidRequest("'model' or 'cursor' is not as described.")
    prefix, table = submission_list_prefix(model, status), resources.settings.content_table
    rows = resources.tables.query_items(
        table, space.pk, min_sk=prefix, max_sk=f"{prefix}~", descending=True, limit=MAX_COUNTED, attributes=("sk",)
    )
    ids = [row["sk"].removeprefix(prefix) for row in rows]
    if cursor:
        older = resources.tables.query_items(
            table, space.pk, min_sk=prefix, max_sk=prefix + cursor, descending=True, limit=limit + 2, attributes=("sk",)
        )
        wanted = [found for row in older if (found := row["sk"].removeprefix(prefix)) != cursor]
    else:
        wanted = ids
    shown = wanted[:limit]
    return SubmissionPage(read_submissions(resources, space, shown), shown[-1] if len(wanted) > limit else "", len(ids))


def export_submissions(resources: Resources, space: SpaceKey, after: str, limit: int) -> tuple[list[Submission], str]:
    """Return submissions of all models and statuses, the oldest first, and behind which the next part begins.

    Args:
        resources: Of the process.
        space: The space.
        after: The last one of the part before; empty for the first part.
        limit: The greatest number of submissions.

    Raises:
        InvalidRequest: There is no such place to begin.
    """
    if after and not _ID.fullmatch(after):
        raise InvalidRequest("'cursor' must be that of the response before. Begin again without one.")
    table, begin = resources.settings.content_table, submission_sort_key(after)
    rows = resources.tables.query_items(
        table, space.pk, min_sk=begin, max_sk=f"{SUBMISSION_PREFIX}~", limit=limit + 2, attributes=("sk",)
    )
    ids = [one for row in rows if (one := row["sk"].removeprefix(SUBMISSION_PREFIX)) != after]
    return read_submissions(resources, space, ids[:limit]), ids[limit - 1] if len(ids) > limit else ""


def read_submissions(resources: Resources, space: SpaceKey, ids: Sequence[str]) -> list[Submission]:
    """Return those of some submissions that exist, in their order.

    Args:
        resources: Of the process.
        space: The space.
        ids: The submissions.
    """
    keys = [(space.pk, submission_sort_key(one)) for one in ids]
    rows = resources.tables.batch_get_items(resources.settings.content_table, keys) if keys else {}
    now = resources.clock.time()
    found = [submission_from_item(rows[key]) for key in keys if key in rows]
    return [one for one in found if not 0 < one.expires <= now]


def read_submission(resources: Resources, space: SpaceKey, submission_id: str) -> Submission:
    """Return a submission.

    Args:
        resources: Of the process.
        space: The space.
        submission_id: The submission.

    Raises:
        NotFound: There is none in this space.
    """
    found = read_submissions(resources, space, [submission_id]) if _ID.fullmatch(submission_id) else []
    if not found:
        raise NotFound("There is no such submission.")
    return found[0]


def build_decision(
    resources: Resources,
    space: SpaceKey,
    submission: Submission,
    status: SubmissionStatus,
    user: str,
    entry_id: str = "",
) -> tuple[Submission, list[Write]]:
    """Return a submission as it is decided, and the writes that store it on condition that it is what was read."""
    changes = {
        "status": status,
        "decided_by": user if status != "pending" else "",
        "decided_at": resources.clock.now_iso(),
        "entry_id": entry_id or submission.entry_id,
        "version": submission.version + 1,
    }
    after = submission.model_copy(update=changes)
    return after, build_submission_change(resources.settings.content_table, space, submission, after)


def decide_submission(
    resources: Resources,
    space: SpaceKey,
    submission: Submission,
    status: SubmissionStatus,
    user: str,
    entry_id: str = "",
) -> Submission:
    """Give a submission another status.

    Args:
        resources: Of the process.
        space: The space.
        submission: As it was read.
        status: The same status again changes nothing.
        user: Who decides.
        entry_id: The entry that was made of it.

    Raises:
        Conflict: An entry was made of it, or somebody else has decided meanwhile.
    """
    if submission.status == status:
        return submission
    if submission.entry_id:
        raise Conflict(f"The submission became the entry {submission.entry_id}. Change or delete that.")
    after, writes = build_decision(resources, space, submission, status, user, entry_id)
    try:
        resources.tables.write_items(*writes)
    except TransactionCanceled:
        raise Conflict(_CHANGED_MEANWHILE) from None
    return after


def delete_submission(resources: Resources, space: SpaceKey, submission_id: str) -> None:
    """Delete a submission with all that is known of who has sent it. An entry that was made of it stays.

    Args:
        resources: Of the process.
        space: The space.
        submission_id: The submission.

    Raises:
        NotFound: There is none in this space.
        Conflict: Somebody else has decided meanwhile.
    """
    submission = read_submission(resources, space, submission_id)
    try:
        resources.tables.write_items(*build_submission_deletes(resources.settings.content_table, space, submission))
    except (TransactionCanceled, ConditionFailed):
        raise Conflict(_CHANGED_MEANWHILE) from None


def delete_submissions_of_model(resources: Resources, space: SpaceKey, model: str) -> int:
    """Delete all submissions of a model, and return how many there were. Safe to repeat."""
    table, count = resources.settings.content_table, 0
    for status in SUBMISSION_STATUSES:
        prefix = submission_list_prefix(model, status)
        while rows := resources.tables.query_items(
            table, space.pk, min_sk=prefix, max_sk=f"{prefix}~", limit=_DELETED_AT_ONCE, attributes=("sk",)
        ):
            ids = [row["sk"].removeprefix(prefix) for row in rows]
            keys = [key for one in ids for key in (submission_sort_key(one), prefix + one)]
            resources.tables.write_items(*(Delete(table, space.pk, key) for key in keys))
            count += len(ids)
    return count
