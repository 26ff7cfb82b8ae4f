"""Change a document in a change set: read it as it is there, decide, validate, and store it beside the space."""

import json
from collections.abc import Collection
from typing import Any

from fermata.aws.dynamodb_items_and_writes import (
    ConditionFailed,
    Item,
    ItemKey,
    TransactionCanceled,
    Write,
    build_versioned_put,
)
from fermata.aws.resources import Resources
from fermata.content.change_sets.change_set import (
    ChangedDocument,
    ChangeSet,
    change_set_from_item,
    change_set_sort_key,
    changed_document_from_item,
    changed_document_sort_key,
    changed_document_to_item,
    show_changed_document,
)
from fermata.content.change_sets.change_set_store import (
    MAX_CHANGE_SET_ATTEMPTS,
    build_change_set_put,
    require_open,
)
from fermata.content.content_model import META_MODEL
from fermata.content.content_space import SpaceKey, plan_first_look
from fermata.content.documents.change_document import DecideContent, check_content
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.documents.document_rows import BytesCounter, effect_sort_key, leave_uncounted
from fermata.content.documents.document_writes import build_effect_put
from fermata.content.documents.read_document import (
    WriteBasis,
    describe_missing_document,
    read_newest_version,
    read_write_basis,
)
from fermata.content.media.asset_files import measure_asset
from fermata.content.model_changes import check_model_deletion, normalize_model_content, overlay_models
from fermata.domain.errors import NotFound, PayloadTooLarge, ServiceUnavailable

MAX_CHANGED_DOCUMENTS = 500
"""They are merged in a staged commit, which takes about 20 ms of a processor for each."""


def change_in_change_set(
    resources: Resources,
    space: SpaceKey,
    change_set_id: str,
    key: DocumentKey,
    decide: DecideContent,
    *,
    section_models: tuple[str, ...] = (),
    count_bytes: BytesCounter = leave_uncounted,
    effect_key: str = "",
) -> ChangedDocument:
    """Change a document in a change set only. The first change remembers the version that it has begun with.

    Args:
        resources: Of the process.
        space: The space.
        change_set_id: The change set.
        key: The document.
        decide: As in `change_document`. What it is given is the document as it is in the change set.
        section_models: Section models that the change adds to a page.
        count_bytes: As in `pack_content`.
        effect_key: The same for every repetition of the change, which is then made once.

    Raises:
        NotFound: There is no such change set, model or document.
        Conflict: The change set is closed.
        ContentRefused: The content breaks the rules of its model.
        PayloadTooLarge: The change set has as many documents as are merged together.
        ServiceUnavailable: Others were faster in each of `MAX_CHANGE_SET_ATTEMPTS` attempts.
    """
    key.check()
    for _ in range(MAX_CHANGE_SET_ATTEMPTS):
        change_set, before, effect = _read_for_change(resources, space, change_set_id, key, effect_key)
        if effect is not None:
            return _read_made_change(resources, space, change_set_id, effect)
        shown = show_changed_document(before) if before else read_newest_version(resources, space, key)
        parts = shown.content.parts if shown and shown.content else {}
        models = {key.id if key.model == META_MODEL else key.model, *section_models, *parts}
        basis = read_write_basis(resources, space, models)
        if not basis.has_next_look:
            plan_first_look(resources, space)
        live = None if shown is None or shown.is_deleted else shown
        content = measure_asset(resources, space, key, live.content if live else None, decide(live, basis))
        if key.model == META_MODEL:
            content = _check_model_content(content, key, basis)
        else:
            own = overlay_models(basis, _read_changed_models(resources, space, change_set, models))
            content, _warnings = check_content(content, key, own.checked)
        begun = before or ChangedDocument(
            model=key.model, id=key.id, base_version=live.version if live else 0, version=0
        )
        after = begun.model_copy(update={"content": content, "version": begun.version + 1})
        try:
            _store_changed_document(resources, space, change_set, before, after, count_bytes, effect_key)
        except (TransactionCanceled, ConditionFailed):
            continue
        return after
    raise ServiceUnavailable("Other requests are changing this change set. Try again.", retry_after=1)


def _check_model_content(
    content: DocumentContent | None, key: DocumentKey, basis: WriteBasis
) -> DocumentContent | None:
    if content is None:
        # Its documents may be deleted in the change set, too. Whether they are is checked when it is merged.
        state = basis.models.get(key.id)
        check_model_deletion(state, key.id, state.documents if state else 0)
        return None
    return normalize_model_content(content, key, basis)


def _read_changed_models(
    resources: Resources, space: SpaceKey, change_set: ChangeSet, models: Collection[str]
) -> dict[str, DocumentContent | None]:
    """Return what a change set makes of some models, by which its documents are checked."""
    if not change_set.models:
        return {}
    keys = [changed_document_sort_key(change_set.id, DocumentKey(META_MODEL, model)) for model in models]
    rows = resources.tables.batch_get_items(resources.settings.content_table, [(space.pk, key) for key in keys])
    found = [changed_document_from_item(resources, row) for row in rows.values()]
    return {one.id: one.content for one in found}


def _read_for_change(
    resources: Resources, space: SpaceKey, change_set_id: str, key: DocumentKey, effect_key: str
) -> tuple[ChangeSet, ChangedDocument | None, Item | None]:
    """Return the change set, the document as it is in it, and what the effect key has made."""
    table = resources.settings.content_table
    own_key = ItemKey(table, space.pk, change_set_sort_key(change_set_id))
    document_key = ItemKey(table, space.pk, changed_document_sort_key(change_set_id, key))
    effect_item_key = ItemKey(table, space.pk, effect_sort_key(effect_key))
    items = resources.tables.batch_get_by_keys([own_key, document_key, *([effect_item_key] if effect_key else [])])
    if own_key not in items:
        raise NotFound("There is no such change set.")
    change_set = change_set_from_item(items[own_key])
    require_open(change_set)
    row = items.get(document_key)
    changed = changed_document_from_item(resources, row) if row else None
    return change_set, changed, items.get(effect_item_key) if effect_key else None


def _read_made_change(resources: Resources, space: SpaceKey, change_set_id: str, effect: Item) -> ChangedDocument:
    """Return what an earlier copy of a change has made, as it is in the change set now."""
    key = DocumentKey(*json.loads(effect["made"])[0][:2])
    table = resources.settings.content_table
    row = resources.tables.get_item(table, space.pk, changed_document_sort_key(change_set_id, key))
    if row is not None:
        return changed_document_from_item(resources, row)
    version = read_newest_version(resources, space, key)  # it was merged meanwhile, or stored before there were reviews
    if version is None:
        raise NotFound(f"{describe_missing_document(key)} The change set in which it was made is discarded.")
    return ChangedDocument(model=key.model, id=key.id, base_version=version.version, content=version.content)


def _store_changed_document(
    resources: Resources,
    space: SpaceKey,
    change_set: ChangeSet,
    before: ChangedDocument | None,
    after: ChangedDocument,
    count_bytes: BytesCounter,
    effect_key: str,
) -> None:
    if before is None and change_set.documents >= MAX_CHANGED_DOCUMENTS:
        raise PayloadTooLarge(f"A change set has at most {MAX_CHANGED_DOCUMENTS} documents. Merge this one first.")
    counts: dict[str, Any] = {
        "changed_at": resources.clock.now_iso(),
        "documents": change_set.documents + (before is None),
        "models": change_set.models + (before is None and after.model == META_MODEL),
    }
    counted = change_set.model_copy(update={**counts, "version": change_set.version + 1})
    item = changed_document_to_item(resources, space, change_set.id, after, count_bytes)
    put = build_versioned_put(resources.settings.content_table, item, before.version if before else None)
    writes: list[Write] = [build_change_set_put(resources, space, change_set, counted), put]
    if effect_key:
        made = show_changed_document(after).model_copy(update={"version": 0})
        writes.append(build_effect_put(resources, space, effect_key, [made]))
    resources.tables.write_items(*writes)
