"""Store new versions of documents together: in one transaction, or in a staged commit if one does not hold them all.

A version's row is put where there is none: whoever comes second has read an older version, and decides again. A model
is checked in the same transaction, so that no document is written under a definition that has changed, and none of a
model that is deleted (decision 0407).
"""

from collections.abc import Sequence

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, TransactionCanceled, Write
from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey, plan_first_look
from fermata.content.documents.commit_errors import ContentMoved, explain_refusal
from fermata.content.documents.document_rows import BytesCounter, leave_uncounted
from fermata.content.documents.document_writes import DocumentStep, PlannedWrite, plan_document_writes
from fermata.content.documents.read_document import WriteBasis
from fermata.content.documents.settle_commit import settle_commit
from fermata.content.documents.staged_commit import commit_in_chunks

MAX_WRITES = 100
"""Of a DynamoDB transaction."""


def commit_documents(
    resources: Resources,
    space: SpaceKey,
    steps: Sequence[DocumentStep],
    basis: WriteBasis,
    *,
    effect_key: str = "",
    extra: Sequence[Write] = (),
    count_bytes: BytesCounter = leave_uncounted,
) -> None:
    """Store new versions of documents: readers see all of them, or none.

    Args:
        resources: Of the process.
        space: The space of the documents.
        steps: One for each document.
        basis: The models of the documents, as they were read.
        effect_key: The same for every repetition of this write; empty for one that is not repeated.
        extra: Further writes, which are made in the same moment. A few at most.
        count_bytes: As in `pack_content`.

    Raises:
        ContentMoved: A document or a model is not what was read.
        EffectRepeated: The write was made before.
        Conflict: A unique value is another document's, or a model that is deleted is in use.
        PayloadTooLarge: They are of more models than can be checked at once.
    """
    if not basis.has_next_look:
        plan_first_look(resources, space)
    planned = plan_document_writes(resources, space, steps, basis, effect_key, count_bytes)
    planned += [PlannedWrite(write, "other") for write in extra]
    if len(planned) > MAX_WRITES:
        commit_in_chunks(resources, space, planned)
        return
    try:
        resources.tables.write_items(*(one.write for one in planned))
    except TransactionCanceled as refused:
        raise explain_refusal(planned, refused) from refused
    except ConditionFailed as refused:  # of a single write
        raise ContentMoved from refused


def make_way(resources: Resources, space: SpaceKey, moved: ContentMoved) -> None:
    """Prepare another attempt: let the staged commit that was in the way come to its end, if it was one.

    Args:
        resources: Of the process.
        space: The space.
        moved: Why the attempt before has failed.

    Raises:
        ServiceUnavailable: The other commit is still being made.
    """
    if moved.commit_id:
        settle_commit(resources, space, moved.commit_id)
