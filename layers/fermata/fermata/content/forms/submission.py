"""Define a submission of a form, and the rows that keep it in its space.

f#<id>                     the submission; its id begins with the time, so that ids are in order
q#<model>#<status>#<id>    the same id in the list of a model and a status
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, get_args

from fermata.aws.clock import iso_from_epoch, new_id
from fermata.aws.dynamodb_items_and_writes import (
    Delete,
    Item,
    ItemKey,
    Put,
    Write,
    build_versioned_delete,
    build_versioned_put,
)
from fermata.content.content_space import SpaceKey
from fermata.domain.base import RecordModel

SubmissionStatus = Literal["pending", "approved", "rejected", "spam"]
SUBMISSION_STATUSES: tuple[SubmissionStatus, ...] = get_args(SubmissionStatus)
SUBMISSION_PREFIX = "f#"
SUBMISSION_ID_PATTERN = "[0-9a-f]{11}[A-Za-z0-9_-]{8}"


class SubmissionSender(RecordModel):
    """What is known of who has sent a submission. It is personal data."""

    address: str = ""
    agent: str = ""
    referrer: str = ""


class Submission(RecordModel):
    """What a visitor has sent.

    Attributes:
        data: The fields of the form.
        decided_at: When it got its status; empty of one that nobody has looked at. That it waits again is a decision.
        decided_by: Who has approved or rejected it.
        entry_id: The entry that was made of it.
        expires: When it is deleted (epoch seconds); 0 for never.
    """

    id: str
    model: str
    status: SubmissionStatus = "pending"
    data: dict[str, Any]
    locale: str = ""
    sender: SubmissionSender = SubmissionSender()
    created_at: str
    decided_at: str = ""
    decided_by: str = ""
    entry_id: str = ""
    version: int = 1
    expires: int = 0

    def to_view(self, *, with_personal_data: bool) -> dict[str, Any]:
        """Return the JSON form for people.

        Args:
            with_personal_data: Whether they may see what was sent, and by whom. Others see which fields are filled in.
        """
        view = self.to_known(exclude=frozenset({"data", "sender", "expires", "decided_by"}))
        view = {name: member for name, member in view.items() if member != ""} | {"fields": sorted(self.data)}
        if self.expires:
            view["expiresAt"] = iso_from_epoch(self.expires)
        if not with_personal_data:
            return view
        sender = {name: member for name, member in self.sender.to_known().items() if member}
        decided = {"decidedBy": self.decided_by} if self.decided_by else {}
        return {**view, "data": self.data, "sender": sender, **decided}


def make_submission_id(now: float) -> str:
    """Return an id. Those of later milliseconds are greater."""
    return f"{int(now * 1000):011x}{new_id(8)}"


def submission_sort_key(submission_id: str) -> str:
    """Return the sort key of a submission."""
    return f"{SUBMISSION_PREFIX}{submission_id}"


def submission_list_prefix(model: str, status: SubmissionStatus) -> str:
    """Return the beginning of the sort keys that list the submissions of a model with a status."""
    return f"q#{model}#{status}#"


def build_submission_puts(table: str, space: SpaceKey, submission: Submission) -> list[Write]:
    """Build the writes of a new submission. They stand beside its reservation, which refuses their late copies.

    Args:
        table: The table of content.
        space: The space.
        submission: The submission.
    """
    return [
        Put(table, _submission_to_item(space, submission), if_absent=True),
        Put(table, _build_list_item(space, submission), if_absent=True),
    ]


def build_submission_change(table: str, space: SpaceKey, before: Submission, after: Submission) -> list[Write]:
    """Build the writes that change a submission, on condition that it is what was read."""
    item = _submission_to_item(space, after)
    return [
        build_versioned_put(table, item, before.version),
        _build_list_delete(table, space, before),
        Put(table, _build_list_item(space, after), if_absent=True),
    ]


def build_submission_deletes(table: str, space: SpaceKey, submission: Submission) -> list[Write]:
    """Build the writes that delete a submission."""
    key = ItemKey(table, space.pk, submission_sort_key(submission.id))
    return [build_versioned_delete(key, submission.version), _build_list_delete(table, space, submission)]


def submission_from_item(item: Mapping[str, Any]) -> Submission:
    """Parse the row of a submission."""
    return Submission.model_validate({**json.loads(item["data"]), "decided_by": item.get("user", "")})


def without_visitor(item: Item) -> Item:
    """Return the row of a submission without what its visitor has sent, and what is known of the visitor."""
    told = {name: value for name, value in json.loads(item["data"]).items() if name not in ("data", "sender")}
    return {**item, "data": json.dumps(told, ensure_ascii=False)}


def _build_list_delete(table: str, space: SpaceKey, submission: Submission) -> Delete:
    sort_key = submission_list_prefix(submission.model, submission.status) + submission.id
    return Delete(table, space.pk, sort_key, condition="attribute_exists(pk)")


def _build_list_item(space: SpaceKey, submission: Submission) -> Item:
    sort_key = submission_list_prefix(submission.model, submission.status) + submission.id
    return {"pk": space.pk, "sk": sort_key, "v": 1, **_expiry(submission)}


def _submission_to_item(space: SpaceKey, submission: Submission) -> Item:
    """Return the row. Who has decided is an attribute of its own, which the erasure of a user renames."""
    data = json.dumps(submission.model_dump(mode="json", exclude={"decided_by"}), ensure_ascii=False)
    item: Item = {"pk": space.pk, "sk": submission_sort_key(submission.id), "v": 1, "version": submission.version}
    decided = {"user": submission.decided_by} if submission.decided_by else {}
    return {**item, "data": data, **decided, **_expiry(submission)}


def _expiry(submission: Submission) -> dict[str, int]:
    return {"ttl": submission.expires} if submission.expires else {}
