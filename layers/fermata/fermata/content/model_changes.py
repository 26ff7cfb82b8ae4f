"""Judge changes of models: what their documents do not allow, what may break readers, what a merge makes of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from fermata.content.content_model import DEFINITION_LOCALE, META_MODEL, ContentModel, parse_content_model
from fermata.content.documents.commit_errors import IN_USE_MESSAGE
from fermata.content.documents.document import ContentStatus, DocumentContent, DocumentKey
from fermata.content.documents.document_writes import DocumentStep, count_model_uses
from fermata.content.documents.read_document import ModelState, WriteBasis
from fermata.content.forms.form_definition import parse_form_definition
from fermata.domain.errors import Conflict


class BreakingModels(Conflict):
    """Models would change so that their documents may not fit any more. `details` lists what; nothing has changed."""

    code = "breakingChanges"

    def __init__(self, breaking: Mapping[str, list[str]]) -> None:
        names = ", ".join(f"{model} ({', '.join(changes)})" for model, changes in breaking.items())
        super().__init__(f"These models have documents that may not fit any more: {names}. Allow it to go on.")
        self.details = {"breakingChanges": {model: list(changes) for model, changes in breaking.items()}}


class MergedModels(NamedTuple):
    """What becomes of the models of a space: how documents are checked, and what is known when they are stored."""

    checked: WriteBasis
    stored: WriteBasis


def model_to_content(model: ContentModel) -> DocumentContent:
    """Return a model as the content of a document."""
    return DocumentContent(
        title=model.title or model.id,
        status=ContentStatus.PUBLISHED,
        locales={DEFINITION_LOCALE: model.to_wire()},
    )


def normalize_model_content(content: DocumentContent, key: DocumentKey, basis: WriteBasis) -> DocumentContent:
    """Return the content of a model's document as it is stored.

    Args:
        content: Its definition, as somebody has written or merged it.
        key: The document.
        basis: The models as they are.

    Raises:
        InvalidRequest: The definition is none, or another model's.
        Conflict: The documents of the model do not allow it.
    """
    model = parse_content_model({**content.get_locale(DEFINITION_LOCALE), "id": key.id})
    parse_form_definition(model)
    state = basis.models.get(key.id)
    if state is not None:
        check_model_change(state, model)
    is_built_in = state is not None and state.model.built_in
    made = model_to_content(model.model_copy(update={"built_in": is_built_in}))
    return made.model_copy(update={"published_at": content.published_at})


def check_model_change(state: ModelState, model: ContentModel) -> None:
    """Check that a model may become another one.

    Raises:
        Conflict: It has documents, and changes what is stored beside each of them; or every space has it so.
    """
    before = state.model
    if before.built_in and (model.kind, model.i18n) != (before.kind, before.i18n):
        raise Conflict(f"Every space has {model.id} as a {before.kind.value}. Its fields can be changed.")
    changes = {
        "its kind": model.kind != before.kind,
        "whether it is translated": model.i18n != before.i18n,
        "its unique fields": set(model.unique_fields) != set(before.unique_fields),
    }
    changed = [name for name, is_changed in changes.items() if is_changed]
    if state.documents and changed:
        raise Conflict(
            f"{model.id} has {state.documents} documents, so that {' and '.join(changed)} cannot change. "
            "Create another model, and move the documents."
        )


def check_model_deletion(state: ModelState | None, model_id: str, removed: int = 0) -> None:
    """Check that a model may be deleted.

    Args:
        state: The model as it is; None for none.
        model_id: The model.
        removed: How many of its documents are deleted together with it.

    Raises:
        Conflict: It is in use, or every space has it.
    """
    if state is not None and state.model.built_in:
        raise Conflict(f"Every space has the model {model_id}.")
    if state is not None and state.documents > removed:
        raise Conflict(IN_USE_MESSAGE.format(model_id, state.documents - removed))


def check_deleted_models(basis: WriteBasis, steps: Sequence[DocumentStep]) -> None:
    """Check that the models that are deleted have no documents but those that are deleted at the same moment.

    Args:
        basis: The models as they are.
        steps: All that is written.

    Raises:
        Conflict: A model is in use, or every space has it.
    """
    uses = count_model_uses(steps)
    for step in steps:
        if step.after.model == META_MODEL and step.after.is_deleted:
            check_model_deletion(basis.models.get(step.after.id), step.after.id, -uses.get(step.after.id, 0))


def list_breaking_changes(before: ContentModel, after: ContentModel) -> list[str]:
    """Return what of a change may break readers of the content."""
    found = []
    if before.kind is not after.kind:
        found.append("kind")
    if before.i18n != after.i18n:
        found.append("i18n")
    for name, field in before.fields.items():
        now = after.fields.get(name)
        if now is None:
            found.append(f"{name}: removed")
        elif now.type is not field.type:
            found.append(f"{name}: type")
    for name, field in after.fields.items():
        was = before.fields.get(name)
        if field.required and (was is None or not was.required):
            found.append(f"{name}: required")
    return found


def overlay_models(basis: WriteBasis, changed: Mapping[str, DocumentContent | None]) -> MergedModels:
    """Return the models of a space as they are after some of them change.

    Args:
        basis: As they are.
        changed: What becomes of the definitions of models, by id; None deletes one.
    """
    after = dict(basis.models)
    for model_id, content in changed.items():
        if content is not None:
            model = parse_content_model(content.get_locale(DEFINITION_LOCALE))
            known = basis.models.get(model_id)
            after[model_id] = replace(known, model=model) if known else ModelState(model, 0, 0)
    kept = {name: state for name, state in after.items() if changed.get(name, state) is not None}
    return MergedModels(replace(basis, models=kept), replace(basis, models=after))


def require_no_breaking(basis: WriteBasis, changed: Mapping[str, DocumentContent | None]) -> None:
    """Check that the models that have documents change so that these still fit.

    Args:
        basis: As the models are.
        changed: As in `overlay_models`.

    Raises:
        BreakingModels: Some do not.
    """
    found = {}
    for model_id, content in changed.items():
        state = basis.models.get(model_id)
        if state is None or content is None or not state.documents:
            continue
        breaking = list_breaking_changes(state.model, parse_content_model(content.get_locale(DEFINITION_LOCALE)))
        if breaking:
            found[model_id] = breaking
    if found:
        raise BreakingModels(found)
