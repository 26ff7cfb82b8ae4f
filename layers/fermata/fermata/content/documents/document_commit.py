"""Store new versions of documents in one transaction, with their heads, unique values and the counts of their models.

A version's row is put where there is none: whoever comes second has read an older version, and decides again. A model
is checked in the same transaction, so that no document is written under a definition that has changed, and none of a
model that is deleted (decision 0407).
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fermata.aws.dynamodb_items_and_writes import (
    ConditionCheck,
    ConditionFailed,
    Delete,
    Put,
    TransactionCanceled,
    Update,
    Write,
)
from fermata.aws.resources import Resources
from fermata.content.content_model import DEFINITION_LOCALE, META_MODEL
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import DocumentKey, DocumentVersion
from fermata.content.documents.document_rows import (
    BytesCounter,
    effect_sort_key,
    head_sort_key,
    leave_uncounted,
    list_head_attributes,
    version_to_item,
)
from fermata.content.documents.read_document import WriteBasis
from fermata.content.documents.unique_claims import UniqueClaim, list_claims, name_owner
from fermata.domain.errors import Conflict, PayloadTooLarge

MAX_WRITES = 100
"""Of a DynamoDB transaction."""
IN_USE_MESSAGE = "The model {} is in use: it has {} documents or sections. Delete them first."


class ContentMoved(Exception):
    """Another write has changed a document or a model since it was read."""


class ValueTaken(Conflict):
    """A unique value is another document's. `details` names the field and the document."""

    code = "valueTaken"

    def __init__(self, claim: UniqueClaim, owner: str) -> None:
        super().__init__(claim.describe(owner))
        self.details = {"field": claim.field, "owner": owner}


class EffectRepeated(Exception):
    """The write has been made before, under the same effect key."""


@dataclass(frozen=True)
class DocumentStep:
    """A document's newest version before a write, which may be the mark of a deletion, and the one that is new."""

    before: DocumentVersion | None
    after: DocumentVersion

    @property
    def added(self) -> int:
        """By how many documents of the model there are more."""
        return int(not self.after.is_deleted) - int(self.before is not None and not self.before.is_deleted)


@dataclass(frozen=True)
class PlannedWrite:
    """A write of the transaction, and what it means if its condition does not hold."""

    write: Write
    subject: Literal["version", "head", "model", "claim", "effect", "other"]
    claim: UniqueClaim | None = None


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
    """Store new versions of documents: all of them, or none.

    Args:
        resources: Of the process.
        space: The space of the documents.
        steps: One for each document.
        basis: The models of the documents, as they were read.
        effect_key: The same for every repetition of this write; empty for one that is not repeated.
        extra: Further writes of the transaction.
        count_bytes: As in `pack_content`.

    Raises:
        ContentMoved: A document or a model is not what was read.
        EffectRepeated: The write was made before.
        Conflict: A unique value is another document's, or a model that is deleted is in use.
        PayloadTooLarge: One transaction does not hold as many writes.
    """
    planned = [
        *_plan_versions(resources, space, steps, count_bytes),
        *_plan_heads(resources, space, steps, basis),
        *_plan_models(resources, space, steps, basis),
        *_plan_claims(resources, space, steps, basis),
        *_plan_effect(resources, space, steps, effect_key),
        *(PlannedWrite(write, "other") for write in extra),
    ]
    if len(planned) > MAX_WRITES:
        raise PayloadTooLarge("These changes are too many to be stored together. Make them in several steps.")
    try:
        resources.tables.write_items(*(one.write for one in planned))
    except TransactionCanceled as refused:
        raise explain_refusal(planned, refused) from refused
    except ConditionFailed as refused:  # of a single write
        raise ContentMoved from refused


def explain_refusal(planned: Sequence[PlannedWrite], refused: TransactionCanceled) -> Exception:
    """Return the error that says why a transaction was refused. A repetition and a race come before all else."""
    failed = [
        (one, reason.item) for one, reason in zip(planned, refused.reasons, strict=True) if reason.condition_failed
    ]
    subjects = {one.subject for one, _ in failed}
    if "effect" in subjects:
        return EffectRepeated()
    for one, item in failed:
        if one.subject == "head" and isinstance(one.write, Delete) and item and item.get("documents", 0) > 0:
            return Conflict(IN_USE_MESSAGE.format(item["sk"].rpartition("#")[2], item["documents"]))
    for one, item in failed:
        if subjects == {"claim"} and one.claim and item:
            return ValueTaken(one.claim, item["owner"])
    return ContentMoved()


def _plan_versions(
    resources: Resources, space: SpaceKey, steps: Sequence[DocumentStep], count_bytes: BytesCounter
) -> Iterator[PlannedWrite]:
    table = resources.settings.content_table
    for step in steps:
        item = version_to_item(resources, space, step.after, count_bytes)
        yield PlannedWrite(Put(table, item, if_absent=True), "version")


def _plan_heads(
    resources: Resources, space: SpaceKey, steps: Sequence[DocumentStep], basis: WriteBasis
) -> Iterator[PlannedWrite]:
    counts = count_model_uses(steps)
    for step in steps:
        is_model = step.after.model == META_MODEL
        state = basis.models.get(step.after.id) if is_model else None
        # What is decided about a model that nobody uses does not hold for one that is used.
        must_be_unused = is_model and (step.after.is_deleted or (state is not None and not state.documents))
        added = counts.get(step.after.id, 0) if is_model else 0
        yield PlannedWrite(_build_head_write(resources, space, step, added, must_be_unused=must_be_unused), "head")


def _build_head_write(
    resources: Resources, space: SpaceKey, step: DocumentStep, added: int, *, must_be_unused: bool
) -> Update | Delete:
    table, sort_key = resources.settings.content_table, head_sort_key(step.after.key)
    condition, wanted = "attribute_not_exists(pk)", {}
    if step.before is not None and not step.before.is_deleted:
        condition, wanted = "#version = :read", {":read": step.before.version}
        if must_be_unused:
            condition += " AND (attribute_not_exists(documents) OR documents = :none)"
            wanted |= {":none": 0}
    names = {"#version": "version"} if wanted else {}
    if step.after.is_deleted:
        return Delete(table, space.pk, sort_key, condition, wanted, names)
    expression, values, attributes = _build_head_update(step.after, added)
    return Update(table, space.pk, sort_key, expression, values | wanted, attributes | names, condition)


def _build_head_update(after: DocumentVersion, added: int) -> tuple[str, dict[str, Any], dict[str, str]]:
    """Build the update of a head. It leaves alone how many documents a model has, unless this write changes it."""
    attributes = {**list_head_attributes(after), "v": 1}
    if after.model == META_MODEL and after.content:
        attributes["definition"] = json.dumps(after.content.get_locale(DEFINITION_LOCALE))
    names = {f"#a{number}": name for number, name in enumerate(attributes)}
    values = {f":a{number}": value for number, value in enumerate(attributes.values())}
    expression = "SET " + ", ".join(f"#a{number} = :a{number}" for number in range(len(attributes)))
    if added:
        expression += " ADD documents :added"
        values |= {":added": added}
    return expression, values, names


def count_model_uses(steps: Sequence[DocumentStep]) -> dict[str, int]:
    """Return by how many documents and sections each model has more afterwards; 0 for one whose number stays."""
    added: Counter[str] = Counter()
    for step in steps:
        if step.after.model != META_MODEL:
            added[step.after.model] += step.added
        if step.before and step.before.content:
            added.subtract(step.before.content.parts)
        if step.after.content:
            added.update(step.after.content.parts)
    return dict(added)


def _plan_models(
    resources: Resources, space: SpaceKey, steps: Sequence[DocumentStep], basis: WriteBasis
) -> Iterator[PlannedWrite]:
    """Count the documents of each model, and check that it is still what the documents were validated against."""
    table = resources.settings.content_table
    changed_models = {step.after.id for step in steps if step.after.model == META_MODEL}
    for model_id, added in count_model_uses(steps).items():
        if model_id in changed_models:
            continue
        sort_key = head_sort_key(DocumentKey(META_MODEL, model_id))
        state = basis.models.get(model_id)
        condition = "#version = :read" if state else "attribute_exists(pk)"
        values = {":read": state.version} if state else {}
        names = {"#version": "version"} if state else {}
        if added:
            count = Update(
                table, space.pk, sort_key, "ADD documents :added", values | {":added": added}, names, condition
            )
            yield PlannedWrite(count, "model")
        else:
            yield PlannedWrite(ConditionCheck(table, space.pk, sort_key, condition, values, names), "model")


def _plan_claims(
    resources: Resources, space: SpaceKey, steps: Sequence[DocumentStep], basis: WriteBasis
) -> Iterator[PlannedWrite]:
    """Take the unique values that are new, and give back those that are not needed any more."""
    freed: dict[UniqueClaim, str] = {}
    taken: dict[UniqueClaim, str] = {}
    for step in steps:
        state = basis.models.get(step.after.model)
        model, owner = state.model if state else None, name_owner(step.after.key)
        freed |= dict.fromkeys(list_claims(step.before, model), owner)
        for claim in list_claims(step.after, model):
            if taken.setdefault(claim, owner) != owner:
                raise ValueTaken(claim, taken[claim])
    table = resources.settings.content_table
    for claim, owner in freed.items():
        if claim not in taken:
            delete = Delete(table, space.pk, claim.sort_key, "#owner = :owner", {":owner": owner}, {"#owner": "owner"})
            yield PlannedWrite(delete, "claim", claim)
    for claim, owner in taken.items():
        item = {"pk": space.pk, "sk": claim.sort_key, "v": 1, "owner": owner}
        if claim not in freed:
            yield PlannedWrite(Put(table, item, if_absent=True), "claim", claim)
        elif freed[claim] != owner:
            former = {":owner": freed[claim]}
            moved = Put(table, item, condition="#owner = :owner", values=former, names={"#owner": "owner"})
            yield PlannedWrite(moved, "claim", claim)


def _plan_effect(
    resources: Resources, space: SpaceKey, steps: Sequence[DocumentStep], effect_key: str
) -> Iterator[PlannedWrite]:
    if not effect_key:
        return
    made = [[step.after.model, step.after.id, step.after.version] for step in steps]
    expires = int(resources.clock.time()) + resources.settings.turn_lifetime_seconds
    item = {"pk": space.pk, "sk": effect_sort_key(effect_key), "v": 1, "made": json.dumps(made), "ttl": expires}
    yield PlannedWrite(Put(resources.settings.content_table, item, if_absent=True), "effect")
