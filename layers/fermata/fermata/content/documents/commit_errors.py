"""Say why documents were not stored: somebody was faster, a value is taken, a model is in use."""

from collections.abc import Sequence

from fermata.aws.dynamodb_items_and_writes import Delete, TransactionCanceled, Update
from fermata.content.documents.document_writes import PlannedWrite, ValueTaken
from fermata.content.documents.staged_rows import STAGED_BY, RowStage
from fermata.domain.errors import Conflict

IN_USE_MESSAGE = "The model {} is in use: it has {} documents or sections. Delete them first."


class ContentMoved(Exception):
    """Another write has changed a document or a model since it was read.

    Attributes:
        commit_id: The staged commit that has marked the row, and has to come to its end first; empty for none.
    """

    def __init__(self, commit_id: str = "") -> None:
        super().__init__(f"staged by {commit_id}" if commit_id else "read again")
        self.commit_id = commit_id


class EffectRepeated(Exception):
    """The write has been made before, under the same effect key."""


def explain_refusal(planned: Sequence[PlannedWrite], refused: TransactionCanceled) -> Exception:
    """Return the error that says why a transaction was refused. A repetition and a race come before all else.

    Args:
        planned: What was to be written, in the order of the transaction.
        refused: Its refusal.
    """
    failed = [
        (one, reason.item) for one, reason in zip(planned, refused.reasons, strict=True) if reason.condition_failed
    ]
    subjects = {one.subject for one, _ in failed}
    if "effect" in subjects:
        return EffectRepeated()
    for _, item in failed:
        if item and STAGED_BY in item:
            return ContentMoved(item[STAGED_BY])
    for one, item in failed:
        if one.subject == "head" and _deletes(one) and item and item.get("documents", 0) > max(0, -one.added):
            return Conflict(IN_USE_MESSAGE.format(item["sk"].rpartition("#")[2], item["documents"]))
    for one, item in failed:
        if subjects == {"claim"} and one.claim and item:
            return ValueTaken(one.claim, item["owner"])
    return ContentMoved()


def _deletes(planned: PlannedWrite) -> bool:
    write = planned.write
    return isinstance(write, Delete) or (isinstance(write, Update) and write.values.get(":stage") == RowStage.GONE)
