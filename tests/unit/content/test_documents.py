"""Documents are written in one transaction: races, unique values, repetitions, models in use, history and restore."""

import secrets
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.resources import Resources
from fermata.content.content_model import META_MODEL
from fermata.content.content_space import ContentSpace, SpaceKey, list_spaces
from fermata.content.documents.change_document import (
    ChangeOptions,
    create_document,
    delete_document,
    update_document,
)
from fermata.content.documents.document import (
    ContentAuthor,
    ContentStatus,
    DocumentContent,
    DocumentKey,
    DocumentVersion,
)
from fermata.content.documents.document_history import list_versions, restore_document
from fermata.content.documents.document_rows import head_sort_key, list_head_attributes
from fermata.content.documents.list_documents import DocumentPage, ListFilter, list_documents
from fermata.content.documents.read_document import (
    find_document_by_slug,
    read_document,
    read_document_version,
    read_newest_version,
)
from fermata.content.model_store import (
    create_space,
    delete_model,
    list_content_models,
    put_model,
    read_model,
    restore_model,
)
from fermata.content.page_sections import PageSection, add_page_section, merge_section_content, remove_page_sections
from fermata.content.validation.validate_document import ContentRefused
from fermata.content.working_documents import WorkingDocuments
from fermata.domain.errors import Conflict, InvalidRequest, NotFound, PayloadTooLarge, VersionMismatch
from tests.unit.content.conftest import ADA, HERO, RECIPE

BOB = ContentAuthor("bob", "agent", "turn-1", "call-1")
ABOUT = DocumentKey("page", "about")


def make_page(slug: str = "about", title: str = "About us") -> DocumentContent:
    return DocumentContent(slug=slug, title=title, locales={"data": {"indexing": True}})


def make_recipe(title: str = "Rye", code: str = "") -> DocumentContent:
    return DocumentContent(title=title, locales={"data": {"title": title, **({"code": code} if code else {})}})


def create_page(resources: Resources, space: SpaceKey, slug: str = "about", page_id: str = "about") -> DocumentVersion:
    return create_document(resources, space, "page", ADA, make_page(slug), document_id=page_id).version


def rename(title: str) -> Callable[[DocumentContent], DocumentContent]:
    return lambda content: content.model_copy(update={"title": title})


class CountedCalls:
    """Counts the requests to DynamoDB by operation."""

    def __init__(self, resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        call = resources.tables._client._make_api_call  # type: ignore[attr-defined]

        def count(operation: str, parameters: Any) -> Any:
            self.counts[operation] += 1
            return call(operation, parameters)

        monkeypatch.setattr(resources.tables._client, "_make_api_call", count)


@pytest.fixture
def calls(resources: Resources, space: SpaceKey, monkeypatch: pytest.MonkeyPatch) -> CountedCalls:
    return CountedCalls(resources, monkeypatch)


def interfere_once(monkeypatch: pytest.MonkeyPatch, resources: Resources, act: Callable[[], object]) -> None:
    """Let somebody else act right before the next write."""
    write = resources.tables.write_items

    def write_after(*writes: Any) -> None:
        monkeypatch.setattr(resources.tables, "write_items", write)
        act()
        write(*writes)

    monkeypatch.setattr(resources.tables, "write_items", write_after)


def test_a_document_is_read_as_it_was_written_by_id_and_by_slug(resources: Resources, space: SpaceKey) -> None:
    written = create_page(resources, space)
    assert read_document(resources, space, ABOUT) == written
    assert find_document_by_slug(resources, space, "page", "about") == written
    assert (written.version, written.action, written.user) == (1, "create", "ada")


def test_a_write_takes_three_requests_and_a_read_one(
    resources: Resources, space: SpaceKey, calls: CountedCalls
) -> None:
    create_page(resources, space)
    assert calls.counts == {"Query": 1, "BatchGetItem": 1, "TransactWriteItems": 1}
    calls.counts.clear()
    read_document(resources, space, ABOUT)
    assert calls.counts == {"Query": 1}


def test_of_two_writers_the_second_decides_again_on_what_the_first_has_written(
    resources: Resources, space: SpaceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_page(resources, space)

    def add_meta(content: DocumentContent) -> DocumentContent:
        return content.with_fields("data", {"meta": {"title": "T"}})

    interfere_once(monkeypatch, resources, lambda: update_document(resources, space, ABOUT, BOB, rename("Who we are")))
    written = update_document(resources, space, ABOUT, ADA, add_meta).version
    assert written.version == 3
    assert written.content is not None
    assert written.content.title == "Who we are"
    assert written.content.get_locale("data")["meta"] == {"title": "T"}


def test_a_writer_who_names_the_version_that_it_has_seen_is_refused_after_another(
    resources: Resources, space: SpaceKey
) -> None:
    create_page(resources, space)
    update_document(resources, space, ABOUT, BOB, rename("B"))
    with pytest.raises(VersionMismatch) as refused:
        update_document(resources, space, ABOUT, ADA, rename("A"), ChangeOptions(1))
    assert refused.value.details == {"version": 2}


def test_of_two_documents_that_want_one_slug_the_second_is_told_whose_it_is(
    resources: Resources, space: SpaceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    interfere_once(monkeypatch, resources, lambda: create_page(resources, space, page_id="first"))
    with pytest.raises(Conflict) as refused:
        create_page(resources, space, page_id="second")
    assert refused.value.details == {"field": "slug", "owner": "page/first"}
    assert [page.id for page in list_documents(resources, space, "page").documents] == ["first"]
    assert read_newest_version(resources, space, DocumentKey("page", "second")) is None


def test_a_slug_that_is_given_up_can_be_taken(resources: Resources, space: SpaceKey) -> None:
    create_page(resources, space)
    update_document(resources, space, ABOUT, ADA, lambda page: page.model_copy(update={"slug": "about-us"}))
    create_page(resources, space, page_id="other")
    delete_document(resources, space, ABOUT, ADA)
    create_page(resources, space, "about-us", "third")
    assert find_document_by_slug(resources, space, "page", "about-us").id == "third"


def test_a_value_of_a_unique_field_is_one_documents_only(resources: Resources, space: SpaceKey) -> None:
    create_document(resources, space, "recipe", ADA, make_recipe("Rye", "R1"), document_id="rye")
    with pytest.raises(Conflict, match="'R1' is taken by recipe/rye"):
        create_document(resources, space, "recipe", ADA, make_recipe("Spelt", "R1"))


def test_a_repeated_write_is_made_once_also_after_others(resources: Resources, space: SpaceKey) -> None:
    first = create_document(resources, space, "page", BOB, make_page(), effect_key="turn/1/a", document_id="about")
    again = create_document(resources, space, "page", BOB, make_page(), effect_key="turn/1/a", document_id="other")
    assert again.version == first.version
    renamed = update_document(resources, space, ABOUT, BOB, rename("B"), ChangeOptions(effect_key="turn/1/b"))
    update_document(resources, space, ABOUT, ADA, rename("A"))
    repeated = update_document(resources, space, ABOUT, BOB, rename("B"), ChangeOptions(effect_key="turn/1/b"))
    assert repeated.version == renamed.version
    assert read_document(resources, space, ABOUT).content == make_page(title="A")
    delete_document(resources, space, ABOUT, BOB, ChangeOptions(effect_key="turn/1/c"))
    assert delete_document(resources, space, ABOUT, BOB, ChangeOptions(effect_key="turn/1/c")).version.is_deleted


def test_a_copy_of_a_write_that_lands_late_changes_nothing(
    resources: Resources, space: SpaceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[Any, ...]] = []
    write = resources.tables.write_items

    def record(*writes: Any) -> None:
        sent.append(writes)
        write(*writes)

    monkeypatch.setattr(resources.tables, "write_items", record)
    create_page(resources, space)
    update_document(resources, space, ABOUT, ADA, rename("New"))
    delete_document(resources, space, ABOUT, ADA)
    for writes in sent:
        with pytest.raises(Exception, match="refused by writes"):
            write(*writes)
    newest = read_newest_version(resources, space, ABOUT)
    assert newest is not None
    assert newest.version == 3
    assert list_documents(resources, space, "page").documents == ()


def test_a_write_that_changes_nothing_makes_no_version(resources: Resources, space: SpaceKey) -> None:
    create_page(resources, space)
    assert update_document(resources, space, ABOUT, ADA, rename("About us")).version.version == 1


def test_content_that_breaks_its_model_is_refused_with_its_problems(resources: Resources, space: SpaceKey) -> None:
    with pytest.raises(ContentRefused) as refused:
        create_document(resources, space, "recipe", ADA, DocumentContent(slug="Über", locales={"fr": {}}))
    assert [(one["field"], one["kind"]) for one in refused.value.details["problems"]] == [
        ("slug", "slug"),
        ("fr", "locale"),
        ("fr.title", "required"),
    ]


def test_nothing_is_written_to_a_space_or_a_model_that_does_not_exist(resources: Resources, space: SpaceKey) -> None:
    for elsewhere in (space._replace(environment="staging"), space._replace(tenant="florist")):
        with pytest.raises(NotFound):
            create_page(resources, elsewhere)
    with pytest.raises(NotFound, match="no model ghost"):
        create_document(resources, space, "ghost", ADA, make_page())
    assert [key for key, _ in list_spaces(resources, "bakery")] == [space]
    with pytest.raises(Conflict, match="already"):
        create_space(resources, space, ContentSpace(), ADA)


def test_spaces_share_nothing(resources: Resources, space: SpaceKey) -> None:
    staging = space._replace(environment="staging")
    create_space(resources, staging, ContentSpace(), ADA)
    create_page(resources, space)
    create_page(resources, staging)
    delete_document(resources, staging, ABOUT, ADA)
    assert read_document(resources, space, ABOUT).version == 1
    assert list_documents(resources, staging, "page").documents == ()


@pytest.mark.parametrize("name", ["a#b", "", "x" * 41, "_a", "a/b"])
def test_an_id_cannot_reach_into_other_keys(resources: Resources, space: SpaceKey, name: str) -> None:
    for read in (read_document, list_versions):
        with pytest.raises(InvalidRequest):
            read(resources, space, DocumentKey("page", name))
    with pytest.raises(InvalidRequest):
        list_documents(resources, space, name)


def test_a_deleted_page_comes_back_with_its_sections_and_its_slug(resources: Resources, space: SpaceKey) -> None:
    section = PageSection(id="about.s1", model="hero")

    def fill(page: DocumentContent) -> DocumentContent:
        return merge_section_content(add_page_section(page, section), section.id, "de", {"title": "Über uns"})

    create_page(resources, space)
    written = update_document(resources, space, ABOUT, ADA, fill, ChangeOptions(section_models=("hero",))).version
    delete_document(resources, space, ABOUT, ADA)
    with pytest.raises(NotFound):
        read_document(resources, space, ABOUT)
    restored = restore_document(resources, space, ABOUT, 2, BOB).version
    assert (restored.version, restored.action, restored.restored_from) == (4, "restore", 2)
    assert restored.content == written.content
    assert find_document_by_slug(resources, space, "page", "about").version == 4
    assert read_model(resources, space, "hero").documents == 1
    assert [one.action for one in list_versions(resources, space, ABOUT)] == ["restore", "delete", "update", "create"]


def test_a_page_does_not_come_back_to_a_slug_that_is_another_pages(resources: Resources, space: SpaceKey) -> None:
    create_page(resources, space)
    delete_document(resources, space, ABOUT, ADA)
    create_page(resources, space, page_id="new")
    with pytest.raises(Conflict, match="page/new"):
        restore_document(resources, space, ABOUT, 1, ADA)


def test_a_model_in_use_is_not_deleted(resources: Resources, space: SpaceKey, monkeypatch: pytest.MonkeyPatch) -> None:
    create_document(resources, space, "recipe", ADA, make_recipe(), document_id="rye")
    with pytest.raises(Conflict, match="recipe is in use: it has 1"):
        delete_model(resources, space, "recipe", ADA)
    delete_document(resources, space, DocumentKey("recipe", "rye"), ADA)
    create = lambda: create_document(resources, space, "recipe", ADA, make_recipe(), document_id="new")  # noqa: E731
    interfere_once(monkeypatch, resources, create)
    with pytest.raises(Conflict, match="in use"):
        delete_model(resources, space, "recipe", ADA)
    delete_document(resources, space, DocumentKey("recipe", "new"), ADA)
    delete_model(resources, space, "recipe", ADA)
    with pytest.raises(NotFound):
        restore_document(resources, space, DocumentKey("recipe", "rye"), 1, ADA)
    restore_model(resources, space, "recipe", 1, ADA)
    restore_document(resources, space, DocumentKey("recipe", "rye"), 1, ADA)
    assert read_model(resources, space, "recipe").documents == 1


def test_a_section_model_is_in_use_by_the_pages_that_have_it(resources: Resources, space: SpaceKey) -> None:
    create_page(resources, space)
    section = PageSection(id="about.s1", model="hero")
    update_document(
        resources,
        space,
        ABOUT,
        ADA,
        lambda page: add_page_section(page, section),
        ChangeOptions(section_models=("hero",)),
    )
    with pytest.raises(Conflict, match="in use"):
        delete_model(resources, space, "hero", ADA)
    update_document(resources, space, ABOUT, ADA, lambda page: remove_page_sections(page, ["about.s1"]))
    delete_model(resources, space, "hero", ADA)


def test_a_document_is_not_written_under_a_definition_that_changes_meanwhile(
    resources: Resources, space: SpaceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    stricter = RECIPE | {"fields": {"title": {"type": "string", "max": 2}}}
    interfere_once(monkeypatch, resources, lambda: put_model(resources, space, stricter, ADA))
    with pytest.raises(ContentRefused, match="at most 2 characters"):
        create_document(resources, space, "recipe", ADA, make_recipe())


def test_a_model_with_documents_keeps_its_unique_fields_and_its_kind(resources: Resources, space: SpaceKey) -> None:
    create_document(resources, space, "recipe", ADA, make_recipe())
    with pytest.raises(Conflict, match="its unique fields cannot change"):
        put_model(resources, space, RECIPE | {"fields": {"title": {"type": "string", "unique": True}}}, ADA)
    with pytest.raises(Conflict, match="its kind"):
        put_model(resources, space, RECIPE | {"kind": "document"}, ADA)
    put_model(resources, space, RECIPE | {"title": "Recipes"}, ADA)
    assert read_model(resources, space, "recipe").documents == 1


def test_a_built_in_model_can_get_fields_and_stays(resources: Resources, space: SpaceKey) -> None:
    with pytest.raises(Conflict, match="Every space has"):
        delete_model(resources, space, "page", ADA)
    page = read_model(resources, space, "page").model.to_wire() | {"builtIn": False}
    put_model(resources, space, page | {"fields": page["fields"] | {"theme": {"type": "string"}}}, ADA)
    state = read_model(resources, space, "page")
    assert state.model.built_in
    assert "theme" in state.model.fields


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ({"id": "model", "kind": "collection"}, "called model"),
        ({"id": "A b", "kind": "collection"}, "id"),
        ({"id": "a", "kind": "heap"}, "kind"),
        ({"id": "a", "kind": "collection", "fields": {"x": {"type": "blob"}}}, r"fields\.x\.type"),
    ],
)
def test_what_is_no_model_is_refused(
    resources: Resources, space: SpaceKey, definition: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        put_model(resources, space, definition, ADA)


def test_a_space_begins_with_the_models_that_every_space_has(resources: Resources, space: SpaceKey) -> None:
    names = [state.model.id for state in list_content_models(resources, space)]
    assert names == ["asset", "hero", "navigation", "page", "post", "recipe", "setting", "vocabulary"]
    assert read_model(resources, space, "hero").model.to_wire()["fields"].keys() == HERO["fields"].keys()  # type: ignore[attr-defined]
    assert read_document(resources, space, DocumentKey(META_MODEL, "page")).version == 1


def test_the_first_publication_sets_the_time(resources: Resources, space: SpaceKey, clock: Any) -> None:
    create_page(resources, space)
    publish = lambda page: page.model_copy(update={"status": ContentStatus.PUBLISHED})  # noqa: E731
    first = update_document(resources, space, ABOUT, ADA, publish).version.content
    clock.advance(60)
    update_document(resources, space, ABOUT, ADA, lambda page: page.model_copy(update={"status": ContentStatus.DRAFT}))
    again = update_document(resources, space, ABOUT, ADA, publish).version.content
    assert first is not None
    assert again is not None
    assert first.published_at == again.published_at != ""


def test_a_large_document_is_in_the_bucket_and_one_that_is_too_large_is_refused(
    resources: Resources, space: SpaceKey
) -> None:
    post = DocumentContent(title="Long", locales={"en": {"body": "x" * 50_000}})
    create_document(resources, space, "post", ADA, post, document_id="long")
    assert read_document(resources, space, DocumentKey("post", "long")).content == post
    (key,) = resources.blobs.list_keys(space.folder)
    assert key.startswith("content/bakery/shop/main/")
    with pytest.raises(PayloadTooLarge):
        create_document(
            resources, space, "post", ADA, DocumentContent(title="Longer", locales={"en": {"body": "x" * 1_000_001}})
        )


def put_many_heads(resources: Resources, space: SpaceKey, count: int) -> None:
    """Store heads as they are after that many writes, without the time that these take."""
    for number in range(count):
        version = DocumentVersion(
            model="post",
            id=f"p{number:05d}",
            version=1,
            action="create",
            at="2026-01-01",
            created_at="2026-01-01",
            content=DocumentContent(title=f"Post {number}", locales={"data": {"category": f"c{number % 1000}"}}),
        )
        item = {"pk": space.pk, "sk": head_sort_key(version.key), "v": 1, **list_head_attributes(version)}
        resources.tables.write_items(Put(resources.settings.content_table, item))


def test_pages_of_a_long_list_cost_one_request_each_wherever_they_are(
    resources: Resources, space: SpaceKey, calls: CountedCalls
) -> None:
    """10,000 documents differ from 1,200 in nothing but the time that this test takes to store them."""
    put_many_heads(resources, space, 1200)
    calls.counts.clear()
    page, seen = DocumentPage((), ""), []
    for number in range(12):
        page = list_documents(resources, space, "post", limit=100, after=page.after)
        seen += [one.id for one in page.documents]
        assert calls.counts == {"Query": number + 1}
    assert seen == [f"p{number:05d}" for number in range(1200)]
    assert page.after == ""


def test_a_list_with_conditions_keeps_all_of_them(resources: Resources, space: SpaceKey) -> None:
    put_many_heads(resources, space, 1100)
    both = ListFilter(ContentStatus.DRAFT, "c7")
    page = list_documents(resources, space, "post", limit=1, only=both)
    assert [one.id for one in page.documents] == ["p00007"]
    rest = list_documents(resources, space, "post", limit=5, only=both, after=page.after)
    assert [one.id for one in rest.documents] == ["p01007"]
    assert rest.after == ""
    published = ListFilter(ContentStatus.PUBLISHED, "c7")
    assert list_documents(resources, space, "post", only=published).documents == ()


def test_versions_are_listed_page_by_page_and_read_one_by_one(resources: Resources, space: SpaceKey) -> None:
    create_page(resources, space)
    for number in range(4):
        update_document(resources, space, ABOUT, ADA, rename(f"T{number}"))
    newest = list_versions(resources, space, ABOUT, limit=2)
    older = list_versions(resources, space, ABOUT, limit=9, before=newest[-1].version)
    assert [one.version for one in newest + older] == [5, 4, 3, 2, 1]
    assert read_document_version(resources, space, ABOUT, 1).content == make_page()
    with pytest.raises(NotFound):
        read_document_version(resources, space, ABOUT, 6)


def test_a_new_document_takes_no_id_that_was_drawn_in_the_same_second(
    resources: Resources, space: SpaceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = iter(["0000", "0000", "0000", "0001"])
    monkeypatch.setattr(secrets, "token_hex", lambda _size: next(drawn))
    working = WorkingDocuments(resources, space, ADA)
    first = create_document(resources, space, "page", ADA, make_page("rye")).version
    second = working.create("page", make_page("oat")).version
    assert (first.id[-4:], second.id[-4:]) == ("0000", "0001")
    with pytest.raises(Conflict, match="already"):
        create_document(resources, space, "page", ADA, make_page("bun"), document_id=first.id)
    monkeypatch.setattr(secrets, "token_hex", lambda _size: "0002")
    with pytest.raises(Conflict, match="slug"):
        working.create("page", make_page("rye"))
    monkeypatch.setattr(secrets, "token_hex", lambda _size: "0000")
    with pytest.raises(Conflict, match="already"):
        working.create("page", make_page("pie"))
