"""Plan the writes of new versions of documents: rows of versions, heads, counts of models, unique values, the effect.

Whoever carries them out knows of each what it means if its condition does not hold.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, Literal

from fermata.aws.dynamodb_items_and_writes import Delete, Item, Put, Update, Write
from fermata.aws.resources import Resources
from fermata.content.content_model import DEFINITION_LOCALE, META_MODEL
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import DocumentKey, DocumentVersion
from fermata.content.documents.document_rows import (
    BytesCounter,
    effect_sort_key,
    head_sort_key,
    list_head_attributes,
    version_to_item,
)
from fermata.content.documents.read_document import WriteBasis
from fermata.content.documents.unique_claims import UniqueClaim, list_claims, name_owner
from fermata.domain.errors import Conflict
from fermata.domain.value_dataclass import value_dataclass


class ValueTaken(Conflict):
    """A unique value is another document's. `details` names the field and the document."""

    code = "valueTaken"

    def __init__(self, claim: UniqueClaim, owner: str) -> None:
        super().__init__(claim.describe(owner))
        self.details = {"field": claim.field, "owner": owner}


@value_dataclass(frozen=True)
class DocumentStep:
    """A document's newest version before a write, which may be the mark of a deletion, and the one that is new."""

    before: DocumentVersion | None
    after: DocumentVersion

    @property
    def added(self) -> int:
        """By how many documents of the model there are more."""
        return int(not self.after.is_deleted) - int(self.before is not None and not self.before.is_deleted)


@value_dataclass(frozen=True)
class PlannedWrite:
    """A write of the transaction, and what it means if its condition does not hold.

    Attributes:
        added: By how many documents a model has more, of whose head this is the write.
        after: The attributes that it gives a row that is there already.
        must_be_unused: Whether it is a write of a model that has no documents afterwards, or had none before.
    """

    write: Write
    subject: Literal["version", "head", "model", "claim", "effect", "other"]
    claim: UniqueClaim | None = None
    added: int = 0
    after: Item = field(default_factory=dict)
    must_be_unused: bool = False


def plan_document_writes(
    resources: Resources,
    space: SpaceKey,
    steps: Sequence[DocumentStep],
    basis: WriteBasis,
    effect_key: str,
    count_bytes: BytesCounter,
) -> list[PlannedWrite]:
    """Return the writes that store new versions of documents.

    Args:
        resources: Of the process.
        space: The space of the documents.
        steps: One for each document.
        basis: The models of the documents, as they were read.
        effect_key: As in `commit_documents`.
        count_bytes: As in `pack_content`.

    Raises:
        ValueTaken: Two of the documents have the same unique value.
    """
    return [
        *_plan_versions(resources, space, steps, count_bytes),
        *_plan_heads(resources, space, steps, basis),
        *_plan_models(resources, space, steps, basis),
        *_plan_claims(resources, space, steps, basis),
        *_plan_effect(resources, space, steps, effect_key),
    ]


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
        after = {} if step.after.is_deleted else build_head_attributes(step.after)
        write = _build_head_write(resources, space, step, after, added, must_be_unused=must_be_unused)
        yield PlannedWrite(write, "head", None, added, after, must_be_unused)


def _build_head_write(
    resources: Resources, space: SpaceKey, step: DocumentStep, after: Item, added: int, *, must_be_unused: bool
) -> Put | Update | Delete:
    table, sort_key = resources.settings.content_table, head_sort_key(step.after.key)
    condition, wanted = "attribute_not_exists(pk)", {}
    if step.before is not None and not step.before.is_deleted:
        condition, wanted = "#version = :read", {":read": step.before.version}
        if must_be_unused:
            # Its own documents may be deleted together with it.
            condition += " AND (attribute_not_exists(documents) OR documents = :removed)"
            wanted |= {":removed": max(0, -added)}
    names = {"#version": "version"} if wanted else {}
    if step.after.is_deleted:
        return Delete(table, space.pk, sort_key, condition, wanted, names)
    if not wanted:
        counted = {"documents": added} if added else {}
        return Put(table, {"pk": space.pk, "sk": sort_key, **after, **counted}, condition=condition)
    expression, values, attributes = build_head_update(after, added)
    return Update(table, space.pk, sort_key, expression, values | wanted, attributes | names, condition)


def build_head_attributes(version: DocumentVersion) -> Item:
    """Return what the head of a document has, apart from its keys and from how many documents a model has."""
    attributes: Item = {**list_head_attributes(version), "v": 1}
    if version.model == META_MODEL and version.content:
        attributes["definition"] = json.dumps(version.content.get_locale(DEFINITION_LOCALE))
    return attributes


def build_head_update(attributes: Item, added: int) -> tuple[str, dict[str, Any], dict[str, str]]:
    """Build the update of a head: its expression, values and names.

    It leaves alone how many documents a model has, unless this write changes it.

    Args:
        attributes: What it has from now on.
        added: By how many documents a model has more.
    """
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
    changed_models = {step.after.id for step in steps if step.after.model == META_MODEL}
    for model_id, added in count_model_uses(steps).items():
        if model_id not in changed_models:
            yield PlannedWrite(_build_model_write(resources, space, basis, model_id, added), "model", None, added)


def _build_model_write(resources: Resources, space: SpaceKey, basis: WriteBasis, model_id: str, added: int) -> Update:
    """Count what a model has, and that its documents have changed, by which readers know what to read again."""
    state, sort_key = basis.models.get(model_id), head_sort_key(DocumentKey(META_MODEL, model_id))
    expression = "ADD changes :one" + (", documents :added" if added else "")
    values = {":one": 1} | ({":added": added} if added else {}) | ({":read": state.version} if state else {})
    names = {"#version": "version"} if state else {}
    condition = "#version = :read" if state else "attribute_exists(pk)"
    return Update(resources.settings.content_table, space.pk, sort_key, expression, values, names, condition)


def _plan_claims(
    resources: Resources, space: SpaceKey, steps: Sequence[DocumentStep], basis: WriteBasis
) -> Iterator[PlannedWrite]:
    """Take the unique values that are new, and give back those that are not needed any more."""
    freed: dict[UniqueClaim, str] = {}
    taken: dict[UniqueClaim, str] = {}
    for step in steps:
        state = basis.models.get(step.after.model)
        model, owner = state.model if state else None, name_owner(step.after.key)
        former_content = step.before.content if step.before else None
        freed |= dict.fromkeys(list_claims(step.after.key, former_content, model), owner)
        for claim in list_claims(step.after.key, step.after.content, model):
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
            yield PlannedWrite(moved, "claim", claim, after={"owner": owner})


def _plan_effect(
    resources: Resources, space: SpaceKey, steps: Sequence[DocumentStep], effect_key: str
) -> Iterator[PlannedWrite]:
    if not effect_key:
        return
    yield PlannedWrite(build_effect_put(resources, space, effect_key, [step.after for step in steps]), "effect")


def build_effect_put(resources: Resources, space: SpaceKey, effect_key: str, made: Sequence[DocumentVersion]) -> Put:
    """Build the row that says what an effect key has made.

    Args:
        resources: Of the process.
        space: The space.
        effect_key: The key.
        made: The versions. One with the number 0 is in a change set only.
    """
    named = [[one.model, one.id, one.version] for one in made]
    expires = int(resources.clock.time()) + resources.settings.turn_lifetime_seconds
    item = {"pk": space.pk, "sk": effect_sort_key(effect_key), "v": 1, "made": json.dumps(named), "ttl": expires}
    return Put(resources.settings.content_table, item, if_absent=True)
