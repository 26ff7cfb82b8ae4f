"""Read documents: the newest version, a former one, one by its slug; and what a write has to know of its space."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import field

from fermata.aws.dynamodb_items_and_writes import Item, ItemKey
from fermata.aws.resources import Resources
from fermata.content.content_model import DEFINITION_LOCALE, META_MODEL, ContentModel, parse_content_model
from fermata.content.content_space import (
    ContentSpace,
    SpaceKey,
    describe_missing_space,
    has_next_look,
    is_live_space,
    space_from_item,
    space_item_key,
)
from fermata.content.documents.document import DocumentContent, DocumentHead, DocumentKey, DocumentVersion
from fermata.content.documents.document_rows import (
    effect_sort_key,
    head_from_item,
    head_sort_key,
    version_from_item,
    version_sort_key,
    versions_prefix,
)
from fermata.content.documents.review_workflow import (
    PROJECT_DOCUMENT_ID,
    PROJECT_MODEL_ID,
    REVIEW_WORKFLOW,
    get_workflow,
    has_reviews,
)
from fermata.content.documents.staged_rows import show_items, show_row
from fermata.content.documents.unique_claims import UniqueClaim, claim_slug, key_of_owner
from fermata.domain.errors import NotFound
from fermata.domain.value_dataclass import value_dataclass

MAX_BATCH_KEYS = 100
PROJECT_KEY = DocumentKey(PROJECT_MODEL_ID, PROJECT_DOCUMENT_ID)


def read_newest_version(resources: Resources, space: SpaceKey, key: DocumentKey) -> DocumentVersion | None:
    """Return the newest version of a document, which may be the mark of its deletion; None if it never existed.

    One request.

    Args:
        resources: Of the process.
        space: The space.
        key: The document.

    Raises:
        InvalidRequest: The key has another form than keys have.
    """
    key.check()
    prefix = versions_prefix(key)
    rows = resources.tables.query_items(
        resources.settings.content_table, space.pk, min_sk=prefix, max_sk=f"{prefix}~", descending=True, limit=1
    )
    if not rows:
        return None
    shown, number = show_row(resources, space, rows[0]), int(rows[0]["version"])
    if shown is None and number > 1:  # the newest one is not there yet
        former = version_sort_key(key, number - 1)
        shown = show_row(
            resources, space, resources.tables.get_item(resources.settings.content_table, space.pk, former)
        )
    return version_from_item(resources, shown) if shown else None


def read_document(resources: Resources, space: SpaceKey, key: DocumentKey) -> DocumentVersion:
    """Return the newest version of a document that exists.

    Args:
        resources: Of the process.
        space: The space.
        key: The document.

    Raises:
        NotFound: It does not exist, or was deleted.
    """
    version = read_newest_version(resources, space, key)
    if version is None or version.is_deleted:
        raise NotFound(describe_missing_document(key))
    return version


def describe_missing_document(key: DocumentKey) -> str:
    """Say that a document does not exist."""
    return f"There is no {key.model} {key.id}."


def find_document_by_slug(resources: Resources, space: SpaceKey, model: str, slug: str) -> DocumentVersion:
    """Return the document of a model that has a slug.

    Args:
        resources: Of the process.
        space: Where it is looked for.
        model: The model's id.
        slug: The slug, as it is in addresses.

    Raises:
        NotFound: None has it.
    """
    DocumentKey(model, "any").check()
    row = read_claim(resources, space, claim_slug(model, slug))
    if row is None:
        raise NotFound(describe_missing_slug(model, slug))
    return read_document(resources, space, key_of_owner(row["owner"]))


def describe_missing_slug(model: str, slug: str) -> str:
    """Say that no document has a slug."""
    return f"There is no {model} with the slug {slug[:64]!r}."


def read_claim(resources: Resources, space: SpaceKey, claim: UniqueClaim) -> Item | None:
    """Return the row of a unique value, which names its `owner`; None if no document has it."""
    row = resources.tables.get_item(resources.settings.content_table, space.pk, claim.sort_key)
    return show_row(resources, space, row)


def read_claims(resources: Resources, space: SpaceKey, claims: Collection[UniqueClaim]) -> dict[UniqueClaim, Item]:
    """Return the rows of unique values that documents have, with one request for each hundred."""
    keys = {ItemKey(resources.settings.content_table, space.pk, claim.sort_key): claim for claim in claims}
    return {keys[key]: row for key, row in _read_rows(resources, space, list(keys)).items()}


def find_owners_of_slug(resources: Resources, space: SpaceKey, models: Sequence[str], slug: str) -> list[DocumentKey]:
    """Return the documents of several models that have a slug, with one request for each hundred.

    Args:
        resources: Of the process.
        space: Where they are looked for.
        models: The models' ids.
        slug: The slug, as it is in addresses.
    """
    claims = [claim_slug(model, slug) for model in models]
    rows = read_claims(resources, space, claims)
    return [key_of_owner(rows[claim]["owner"]) for claim in claims if claim in rows]


def read_document_version(resources: Resources, space: SpaceKey, key: DocumentKey, version: int) -> DocumentVersion:
    """Return a former version of a document, also of one that was deleted.

    Args:
        resources: Of the process.
        space: Where the document is.
        key: The document.
        version: The number of the version.

    Raises:
        NotFound: There is no such version.
    """
    key.check()
    row = resources.tables.get_item(resources.settings.content_table, space.pk, version_sort_key(key, version))
    row = show_row(resources, space, row)
    if row is None:
        raise NotFound(f"There is no version {version} of {key.model} {key.id}.")
    return version_from_item(resources, row)


def read_restorable_content(resources: Resources, space: SpaceKey, key: DocumentKey, version: int) -> DocumentContent:
    """Return what a document, or a model, was at a version, from which it is restored.

    Args:
        resources: Of the process.
        space: Where the document is.
        key: The document, which may be deleted.
        version: The number of the version.

    Raises:
        NotFound: There is no such version, or it is the mark of a deletion.
    """
    content = read_document_version(resources, space, key, version).content
    if content is None:
        noun = "model" if key.model == META_MODEL else "document"
        raise NotFound(f"The {noun} was deleted at version {version}. Restore one before it.")
    return content


def read_versions_at_once(
    resources: Resources, space: SpaceKey, wanted: Iterable[tuple[DocumentKey, int]]
) -> dict[tuple[DocumentKey, int], DocumentVersion]:
    """Return versions of several documents by document and number. Those that do not exist are absent.

    Args:
        resources: Of the process.
        space: The space.
        wanted: Documents with numbers of versions.
    """
    keys = {version_sort_key(key, number): (key, number) for key, number in wanted if number}
    if not keys:
        return {}
    table = resources.settings.content_table
    items = _read_rows(resources, space, [ItemKey(table, space.pk, sort_key) for sort_key in keys])
    return {keys[key.sk]: version_from_item(resources, item) for key, item in items.items()}


def _read_rows(resources: Resources, space: SpaceKey, keys: Sequence[ItemKey]) -> dict[ItemKey, Item]:
    """Return rows of a space by their keys, a hundred with each request."""
    items: dict[ItemKey, Item] = {}
    for start in range(0, len(keys), MAX_BATCH_KEYS):
        items |= resources.tables.batch_get_by_keys(keys[start : start + MAX_BATCH_KEYS])
    return show_items(resources, space, items)


def read_document_heads(
    resources: Resources, space: SpaceKey, keys: Iterable[DocumentKey]
) -> dict[DocumentKey, DocumentHead]:
    """Return the heads of documents, with one request for each hundred. Those that do not exist are absent.

    Args:
        resources: Of the process.
        space: Where they are.
        keys: The documents.

    Raises:
        InvalidRequest: A key has another form than keys have.
    """
    table, wanted = resources.settings.content_table, {}
    for key in keys:
        key.check()
        wanted[ItemKey(table, space.pk, head_sort_key(key))] = key
    rows = _read_rows(resources, space, list(wanted))
    return {key: head_from_item(rows[item_key]) for item_key, key in wanted.items() if item_key in rows}


@value_dataclass(frozen=True)
class ModelState:
    """A model as it is stored: its definition, the version of it, and how many documents it has."""

    model: ContentModel
    version: int
    documents: int


@value_dataclass(frozen=True)
class WriteBasis:
    """What a write has to know besides the document itself.

    Attributes:
        models: The models that were asked for and exist, by id.
        effect: What the effect key of the write has already made; None if nothing.
        heads: The heads of further documents, by document.
        project: The head of the document with the settings of the space; None for a space that has none.
        has_next_look: Whether a sweep finds the space.
    """

    space: ContentSpace
    models: dict[str, ModelState]
    effect: Item | None = None
    heads: dict[DocumentKey, Item] = field(default_factory=dict)
    project: Item | None = None
    has_next_look: bool = True

    def require_model(self, model_id: str) -> ContentModel:
        """Return a model.

        Raises:
            NotFound: The space has no such model.
        """
        if model_id not in self.models:
            raise NotFound(f"There is no model {model_id}.")
        return self.models[model_id].model


def read_write_basis(
    resources: Resources,
    space: SpaceKey,
    models: Iterable[str],
    *,
    effect_key: str = "",
    heads: Sequence[DocumentKey] = (),
) -> WriteBasis:
    """Read a space, some of its models, and the effect of a write, with one request for each hundred rows.

    Args:
        resources: Of the process.
        space: The space.
        models: The ids of the models.
        effect_key: The effect key of the write; empty for none.
        heads: Further documents whose heads are read with them.

    Raises:
        NotFound: The tenant has no such space.
    """
    table = resources.settings.content_table
    model_keys = {DocumentKey(META_MODEL, model_id) for model_id in models if model_id != META_MODEL}
    for key in (*model_keys, *heads):
        key.check()
    wanted = {key: ItemKey(table, space.pk, head_sort_key(key)) for key in (*model_keys, *heads)}
    space_key = space_item_key(resources, space)
    effect_item_key = ItemKey(table, space.pk, effect_sort_key(effect_key))
    project_key = ItemKey(table, space.pk, head_sort_key(PROJECT_KEY))
    keys = list(dict.fromkeys([space_key, project_key, *wanted.values(), *([effect_item_key] if effect_key else [])]))
    items = _read_rows(resources, space, keys)
    if not is_live_space(items.get(space_key)):
        raise NotFound(describe_missing_space(space))
    found = {key: items[item_key] for key, item_key in wanted.items() if item_key in items}
    return WriteBasis(
        space_from_item(items[space_key]),
        {key.id: model_state_from_item(found[key]) for key in model_keys if key in found},
        items.get(effect_item_key) if effect_key else None,
        {key: found[key] for key in heads if key in found},
        items.get(project_key),
        has_next_look(items[space_key]),
    )


def waits_for_review(resources: Resources, space: SpaceKey, basis: WriteBasis) -> bool:
    """Return whether changes of a space wait for a review. A head of an earlier release does not say it.

    Args:
        resources: Of the process.
        space: The space.
        basis: What is known of it.
    """
    if basis.project is None:
        return False
    workflow = basis.project.get("workflow")
    if workflow is None:
        version = read_newest_version(resources, space, PROJECT_KEY)
        content = version.content if version else None
        workflow = get_workflow(content.get_locale(DEFINITION_LOCALE) if content else {})
    return bool(workflow == REVIEW_WORKFLOW) and has_reviews(resources, space.tenant)


def model_state_from_item(item: Item) -> ModelState:
    """Parse the head of a model."""
    model = parse_content_model(json.loads(item["definition"]))
    return ModelState(model, int(item["version"]), int(item.get("documents", 0)))
