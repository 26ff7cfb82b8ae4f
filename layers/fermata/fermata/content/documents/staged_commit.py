"""Store more new versions than one transaction takes, so that readers see all of them or none (decision 0485).

Rows are marked first, in chunks of one transaction each; then one write of the commit's own row lets all of them be
what they become; then the marks are taken off. Whoever meets a mark looks at the commit's row. A process that dies
before the switch has changed nothing that anybody sees, and the next writer takes its marks off. One that dies behind
it has stored everything, and the next writer, or the outbox, takes its marks off.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import ConditionCheck, Delete, Put, TransactionCanceled, Update, Write
from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.documents.commit_errors import explain_refusal
from fermata.content.documents.document_writes import PlannedWrite
from fermata.content.documents.settle_commit import (
    MarkedRow,
    build_chunk_put,
    build_commit_start,
    build_fence,
    build_switch,
    finish_commit,
    give_up_commit,
)
from fermata.content.documents.staged_rows import STAGE, STAGED_AFTER, STAGED_BY, RowStage
from fermata.domain.errors import PayloadTooLarge

CHUNK_WRITES = 90
CHUNK_BYTES = 2_500_000
"""Of the 4 MB of a transaction."""
MAX_SWITCH_WRITES = 99
_MARKED = ("version", "head", "claim")
_PLACEHOLDER = re.compile(r"[:#][a-z]+")


def commit_in_chunks(resources: Resources, space: SpaceKey, planned: Sequence[PlannedWrite]) -> None:
    """Carry out planned writes in chunks, of which readers see all or none.

    Args:
        resources: Of the process.
        space: The space of the rows.
        planned: Any number of writes of documents, and a few others.

    Raises:
        ContentMoved: A document or a model is not what was read. Nothing was stored.
        EffectRepeated: The write was made before.
        Conflict: A unique value is another document's, or a model that is deleted is in use.
        PayloadTooLarge: They are of more models than can be checked at once.
    """
    commit_id, switched = new_id(), list(_plan_switch(planned))
    if len(switched) > MAX_SWITCH_WRITES:
        raise PayloadTooLarge("These changes are of too many models to be stored together. Make them in several steps.")
    try:
        for number, chunk in enumerate(_split_chunks(planned)):
            _mark_chunk(resources, space, commit_id, number, chunk)
        _write_planned(resources, [PlannedWrite(build_switch(resources, space, commit_id), "other"), *switched])
    except Exception:
        if give_up_commit(resources, space, commit_id):
            raise
        # The switch was made, and only its response was lost.
    finish_commit(resources, space, commit_id)


def _plan_switch(planned: Sequence[PlannedWrite]) -> Iterator[PlannedWrite]:
    """Yield what is written or checked together with the switch: it has to hold for all chunks at once."""
    for one in planned:
        write = one.write
        if one.subject in ("effect", "other"):
            yield one
        elif one.subject == "model" and isinstance(write, Update):
            values = {name: value for name, value in write.values.items() if name != ":added"}
            yield replace(one, write=replace(write, expression="ADD changes :one", values=values), added=0)
        elif one.must_be_unused and isinstance(write, Update | Delete):
            condition = "documents = :own" if one.added else "(attribute_not_exists(documents) OR documents = :own)"
            check = ConditionCheck(write.table, write.pk, write.sk, condition, {":own": abs(one.added)})
            yield replace(one, write=check)


def _split_chunks(planned: Sequence[PlannedWrite]) -> Iterator[list[PlannedWrite]]:
    """Yield the writes of rows that are marked, in the order of their keys: so two commits do not wait in a circle."""
    rows = [one for one in planned if one.subject in _MARKED or (one.subject == "model" and one.added)]
    chunk: list[PlannedWrite] = []
    size = 0
    for one in sorted(rows, key=_get_sort_key):
        own = _estimate_bytes(one)
        if chunk and (len(chunk) == CHUNK_WRITES or size + own > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(one)
        size += own
    yield chunk


def _get_sort_key(planned: PlannedWrite) -> str:
    return str(planned.write.item["sk"] if isinstance(planned.write, Put) else planned.write.sk)


def _estimate_bytes(planned: PlannedWrite) -> int:
    values = planned.write.item if isinstance(planned.write, Put) else planned.after
    return 500 + sum(len(value.encode()) for value in values.values() if isinstance(value, str))


def _mark_chunk(
    resources: Resources, space: SpaceKey, commit_id: str, number: int, chunk: Sequence[PlannedWrite]
) -> None:
    begin = build_fence if number else build_commit_start
    rows = [MarkedRow(_get_sort_key(one), one.added, is_count=one.subject == "model") for one in chunk]
    own = [begin(resources, space, commit_id), build_chunk_put(resources, space, commit_id, number, rows)]
    marks = [replace(one, write=mark) for one in chunk if (mark := _mark_write(commit_id, one)) is not None]
    _write_planned(resources, [*(PlannedWrite(write, "other") for write in own), *marks])


def _write_planned(resources: Resources, planned: Sequence[PlannedWrite]) -> None:
    try:
        resources.tables.write_items(*(one.write for one in planned))
    except TransactionCanceled as refused:
        raise explain_refusal(planned, refused) from refused


def _mark_write(commit_id: str, planned: PlannedWrite) -> Write | None:
    """Return the write that marks a row instead of changing it. Models have more documents from now on, not less."""
    write, added = planned.write, max(0, planned.added)
    if planned.subject == "model" and isinstance(write, Update):
        count = {":added": added}
        add = Update(write.table, write.pk, write.sk, "ADD documents :added", count, condition="attribute_exists(pk)")
        return add if added else None
    if isinstance(write, Put) and not write.values:
        return replace(write, item={**write.item, STAGED_BY: commit_id, STAGE: RowStage.NEW.value})
    assert not isinstance(write, ConditionCheck)
    stage = RowStage.GONE if isinstance(write, Delete) else RowStage.CHANGED
    pk, sk = (write.item["pk"], write.item["sk"]) if isinstance(write, Put) else (write.pk, write.sk)
    used = set(_PLACEHOLDER.findall(write.condition))
    values = {name: value for name, value in write.values.items() if name in used}
    values |= {":by": commit_id, ":stage": stage.value, ":after": json.dumps(planned.after)}
    expression = f"SET {STAGED_BY} = :by, {STAGE} = :stage, {STAGED_AFTER} = :after"
    if added:
        expression += " ADD documents :added"
        values |= {":added": added}
    names = {name: value for name, value in write.names.items() if name in used}
    condition = f"{write.condition} AND attribute_not_exists({STAGED_BY})"
    return Update(write.table, pk, sk, expression, values, names, condition)
