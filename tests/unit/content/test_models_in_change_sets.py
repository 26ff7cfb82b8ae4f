"""Models change in change sets together with the documents that need it, and not where documents would break."""

from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content.change_sets.change_set_documents import change_in_change_set
from fermata.content.change_sets.change_set_store import begin_change_set
from fermata.content.change_sets.merge_change_set import MergeOptions, MergeRefused, merge_change_set
from fermata.content.content_model import parse_content_model
from fermata.content.content_space import SpaceKey
from fermata.content.documents import document_commit
from fermata.content.documents.change_document import create_document, delete_document
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.documents.read_document import read_document, read_newest_version
from fermata.content.model_changes import BreakingModels, model_to_content
from fermata.content.model_store import delete_model, put_model, read_model
from fermata.content.validation.validate_document import ContentRefused
from fermata.domain.errors import Conflict, NotFound
from tests.unit.content.conftest import ADA, RECIPE

RECIPE_MODEL = DocumentKey("model", "recipe")
RYE = DocumentKey("recipe", "rye")


def define(*, kind: str = "collection", **fields: Any) -> DocumentContent:
    known = RECIPE["fields"] | fields  # type: ignore[operator]
    kept = {name: field for name, field in known.items() if field is not None}
    return model_to_content(parse_content_model(RECIPE | {"kind": kind, "fields": kept}))


def change(resources: Resources, space: SpaceKey, change_set: str, key: DocumentKey, content: Any) -> None:
    change_in_change_set(resources, space, change_set, key, lambda _before, _basis: content)


@pytest.fixture
def change_set(resources: Resources, space: SpaceKey) -> str:
    return begin_change_set(resources, space, "Recipes", ADA).id


@pytest.fixture
def rye(resources: Resources, space: SpaceKey) -> None:
    content = DocumentContent(title="Rye", locales={"data": {"title": "Rye", "code": "R1"}})
    create_document(resources, space, "recipe", ADA, content, document_id="rye")


@pytest.mark.parametrize("max_writes", [100, 3])
def test_a_new_field_and_the_documents_that_need_it_are_merged_together(
    resources: Resources, space: SpaceKey, change_set: str, rye: None, max_writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_commit, "MAX_WRITES", max_writes)
    hours = DocumentContent(title="Rye", locales={"data": {"title": "Rye", "code": "R1", "hours": 3}})
    change(resources, space, change_set, RECIPE_MODEL, define(hours={"type": "integer", "max": 5}))
    with pytest.raises(ContentRefused):
        change(resources, space, change_set, RYE, hours.with_fields("data", {"hours": 9}))
    change(resources, space, change_set, RYE, hours)
    assert "hours" not in read_model(resources, space, "recipe").model.fields
    merge_change_set(resources, space, change_set, ADA)
    state = read_model(resources, space, "recipe")
    assert (state.model.fields["hours"].max, state.documents) == (5, 1)
    assert read_document(resources, space, RYE).content == hours


@pytest.mark.parametrize("max_writes", [100, 3])
def test_a_new_model_comes_with_its_documents_and_goes_with_them(
    resources: Resources, space: SpaceKey, change_set: str, max_writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_commit, "MAX_WRITES", max_writes)
    model, keys = {"id": "oven", "kind": "collection"}, [DocumentKey("oven", name) for name in ("a", "b", "c")]
    change(resources, space, change_set, DocumentKey("model", "oven"), model_to_content(parse_content_model(model)))
    for key in keys:
        change(resources, space, change_set, key, DocumentContent(title=key.id, slug=f"oven-{key.id}"))
    with pytest.raises(NotFound):
        create_document(resources, space, "oven", ADA, DocumentContent(title="Early"))
    merge_change_set(resources, space, change_set, ADA)
    assert read_model(resources, space, "oven").documents == 3
    leaving = begin_change_set(resources, space, "", ADA).id
    for key in (*keys, DocumentKey("model", "oven")):
        change(resources, space, leaving, key, None)
    merge_change_set(resources, space, leaving, ADA)
    with pytest.raises(NotFound):
        read_model(resources, space, "oven")
    assert all(one and one.is_deleted for one in (read_newest_version(resources, space, key) for key in keys))


@pytest.mark.parametrize("max_writes", [100, 1])
def test_a_model_that_is_in_use_meanwhile_is_not_deleted(
    resources: Resources, space: SpaceKey, change_set: str, max_writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(resources, space, change_set, RECIPE_MODEL, None)
    write = resources.tables.write_items

    def write_late(*writes: Any) -> None:
        monkeypatch.setattr(resources.tables, "write_items", write)
        create_document(resources, space, "recipe", ADA, DocumentContent(locales={"data": {"title": "Rye"}}))
        monkeypatch.setattr(document_commit, "MAX_WRITES", max_writes)
        write(*writes)

    monkeypatch.setattr(document_commit, "MAX_WRITES", max_writes)
    monkeypatch.setattr(resources.tables, "write_items", write_late)
    with pytest.raises(Conflict, match="in use: it has 1 documents"):
        merge_change_set(resources, space, change_set, ADA)
    assert read_model(resources, space, "recipe").documents == 1


def test_a_breaking_change_of_a_model_with_documents_has_to_be_allowed(
    resources: Resources, space: SpaceKey, change_set: str, rye: None
) -> None:
    change(resources, space, change_set, RECIPE_MODEL, define(hours={"type": "integer", "required": True}))
    with pytest.raises(BreakingModels) as refused:
        merge_change_set(resources, space, change_set, ADA)
    assert refused.value.details == {"breakingChanges": {"recipe": ["hours: required"]}}
    merge_change_set(resources, space, change_set, ADA, MergeOptions(allow_breaking=True))
    assert read_model(resources, space, "recipe").model.fields["hours"].required


def test_what_documents_do_not_allow_is_refused_when_it_enters_and_when_it_is_merged(
    resources: Resources, space: SpaceKey, change_set: str
) -> None:
    change(resources, space, change_set, RECIPE_MODEL, define(kind="document"))
    with pytest.raises(Conflict, match="Every space has the model"):
        change(resources, space, change_set, DocumentKey("model", "page"), None)
    create_document(
        resources, space, "recipe", ADA, DocumentContent(locales={"data": {"title": "Rye"}}), document_id="rye"
    )
    with pytest.raises(Conflict, match="its kind cannot change"):
        merge_change_set(resources, space, change_set, ADA)
    delete_document(resources, space, RYE, ADA)
    merge_change_set(resources, space, change_set, ADA)
    assert read_model(resources, space, "recipe").model.kind == "document"
    delete_model(resources, space, "recipe", ADA)


def test_fields_of_models_are_merged_one_by_one(resources: Resources, space: SpaceKey, change_set: str) -> None:
    change(resources, space, change_set, RECIPE_MODEL, define(hours={"type": "integer"}))
    put_model(resources, space, define(oven={"type": "string"}).locales["data"], ADA)
    merge_change_set(resources, space, change_set, ADA)
    assert set(read_model(resources, space, "recipe").model.fields) == {"title", "code", "hours", "oven"}
    second = begin_change_set(resources, space, "", ADA).id
    all_fields = {"oven": {"type": "string"}, "hours": {"type": "integer"}}
    change(resources, space, second, RECIPE_MODEL, define(**all_fields | {"hours": {"type": "number"}}))
    put_model(resources, space, define(**all_fields | {"hours": {"type": "rating"}}).locales["data"], ADA)
    with pytest.raises(MergeRefused) as refused:
        merge_change_set(resources, space, second, ADA)
    (conflict,) = refused.value.details["conflicts"]
    assert [one["field"] for one in conflict["fields"]] == ["data.fields.hours"]
