"""Change sets are merged as a whole or not at all, field by field against what others have stored meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content.change_sets import change_set_documents
from fermata.content.change_sets.change_set_documents import change_in_change_set
from fermata.content.change_sets.change_set_store import (
    begin_change_set,
    discard_change_set,
    list_change_sets,
    read_change_set,
)
from fermata.content.change_sets.merge_change_set import MergeOptions, MergeRefused, merge_change_set
from fermata.content.change_sets.merge_contents import FieldConflict, flatten_content, merge_contents
from fermata.content.content_space import SpaceKey
from fermata.content.documents.change_document import create_document, delete_document, update_document
from fermata.content.documents.document import ContentAuthor, DocumentContent, DocumentKey
from fermata.content.documents.document_history import list_versions
from fermata.content.documents.document_rows import versions_prefix
from fermata.content.documents.read_document import read_document, read_newest_version
from fermata.domain.errors import Conflict, NotFound, PayloadTooLarge, TooManyRequests
from tests.unit.content.conftest import ADA

BOB = ContentAuthor("bob", "agent")
RYE = DocumentKey("post", "rye")
OATS = DocumentKey("post", "oats")


def make_post(title: str = "Rye", **fields: Any) -> DocumentContent:
    return DocumentContent(title=title, locales={"en": {"body": "Bread", **fields}})


def set_fields(**fields: Any) -> Callable[..., DocumentContent]:
    """Return a decision that sets fields of the English content."""

    def decide(before: Any, _basis: Any = None) -> DocumentContent:
        content = before if isinstance(before, DocumentContent) else before.content
        return content.with_fields("en", fields)

    return decide


@pytest.fixture
def open_set(resources: Resources, space: SpaceKey) -> str:
    """A change set in which rye has another body, and oats are new."""
    create_document(resources, space, "post", ADA, make_post(), document_id="rye")
    change_set = begin_change_set(resources, space, "Spring", BOB).id
    change_in_change_set(resources, space, change_set, RYE, set_fields(body="Rye bread"))
    change_in_change_set(resources, space, change_set, OATS, lambda _before, _basis: make_post("Oats"))
    return change_set


def test_readers_see_nothing_of_a_change_set_and_then_all_of_it(
    resources: Resources, space: SpaceKey, open_set: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_document(resources, space, RYE).content == make_post()
    with pytest.raises(NotFound):
        read_document(resources, space, OATS)
    write, seen = resources.tables.write_items, []

    def record(*writes: Any) -> None:
        seen.append(len(writes))
        write(*writes)

    monkeypatch.setattr(resources.tables, "write_items", record)
    assert merge_change_set(resources, space, open_set, ADA).status == "merged"
    assert len(seen) == 1, "one transaction"
    assert read_document(resources, space, RYE).content == make_post(body="Rye bread")
    assert read_document(resources, space, OATS).change_set == open_set
    assert read_change_set(resources, space, open_set).documents == ()
    assert merge_change_set(resources, space, open_set, ADA).status == "merged"
    assert len(list_versions(resources, space, RYE)) == 2


def test_fields_that_others_have_changed_stay_and_the_rest_is_merged(
    resources: Resources, space: SpaceKey, open_set: str
) -> None:
    update_document(resources, space, RYE, ADA, set_fields(excerpt="Dark"))
    merge_change_set(resources, space, open_set, ADA)
    assert read_document(resources, space, RYE).content == make_post(body="Rye bread", excerpt="Dark")


def test_a_field_that_both_have_changed_is_a_conflict_and_nothing_is_merged(
    resources: Resources, space: SpaceKey, open_set: str
) -> None:
    update_document(resources, space, RYE, ADA, set_fields(body="Sourdough"))
    with pytest.raises(MergeRefused) as refused:
        merge_change_set(resources, space, open_set, ADA)
    field = {"field": "en.body", "base": "Bread", "theirs": "Sourdough", "ours": "Rye bread"}
    assert refused.value.details == {"conflicts": [{"model": "post", "id": "rye", "fields": [field]}]}
    assert read_newest_version(resources, space, OATS) is None
    merge_change_set(resources, space, open_set, ADA, MergeOptions("theirs"))
    assert read_document(resources, space, RYE).content == make_post(body="Sourdough")
    assert read_document(resources, space, OATS).content == make_post("Oats")


def test_a_base_that_moves_while_the_merge_is_written_is_read_again(
    resources: Resources, space: SpaceKey, open_set: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = resources.tables.write_items

    def write_late(*writes: Any) -> None:
        monkeypatch.setattr(resources.tables, "write_items", write)
        update_document(resources, space, RYE, ADA, set_fields(excerpt="Dark"))
        change_in_change_set(resources, space, open_set, OATS, set_fields(excerpt="Light"))
        write(*writes)

    monkeypatch.setattr(resources.tables, "write_items", write_late)
    merge_change_set(resources, space, open_set, ADA)
    assert read_document(resources, space, RYE).content == make_post(body="Rye bread", excerpt="Dark")
    assert read_document(resources, space, OATS).content == make_post("Oats", excerpt="Light")


@pytest.mark.parametrize(("prefer", "exists"), [("ours", True), ("theirs", False)])
def test_a_document_that_was_deleted_meanwhile_is_a_conflict(
    resources: Resources, space: SpaceKey, open_set: str, prefer: Any, exists: bool
) -> None:
    delete_document(resources, space, RYE, ADA)
    with pytest.raises(MergeRefused) as refused:
        merge_change_set(resources, space, open_set, ADA)
    (conflict,) = refused.value.details["conflicts"]
    assert conflict["fields"] == [{"field": "document", "base": "changed", "theirs": "deleted", "ours": "changed"}]
    merge_change_set(resources, space, open_set, ADA, MergeOptions(prefer))
    newest = read_newest_version(resources, space, RYE)
    assert newest is not None
    assert newest.is_deleted is not exists


def test_two_documents_of_a_change_set_may_exchange_a_slug_and_not_share_one(
    resources: Resources, space: SpaceKey
) -> None:
    for name in ("a", "b"):
        create_document(
            resources, space, "page", ADA, DocumentContent(slug=f"slug-{name}", title=name), document_id=name
        )
    change_set = begin_change_set(resources, space, "", ADA).id

    def take(slug: str) -> Callable[..., DocumentContent]:
        return lambda before, _basis: before.content.model_copy(update={"slug": slug})

    change_in_change_set(resources, space, change_set, DocumentKey("page", "a"), take("slug-b"))
    with pytest.raises(Conflict, match="taken by page/b"):
        merge_change_set(resources, space, change_set, ADA)
    change_in_change_set(resources, space, change_set, DocumentKey("page", "b"), take("slug-a"))
    merge_change_set(resources, space, change_set, ADA)
    assert read_document(resources, space, DocumentKey("page", "a")).content == DocumentContent(
        slug="slug-b", title="a"
    )


def test_a_discarded_change_set_leaves_nothing(resources: Resources, space: SpaceKey, open_set: str) -> None:
    discard_change_set(resources, space, open_set)
    assert discard_change_set(resources, space, open_set).status == "discarded"
    assert read_change_set(resources, space, open_set).documents == ()
    with pytest.raises(Conflict, match="discarded"):
        change_in_change_set(resources, space, open_set, RYE, set_fields(body="x"))
    with pytest.raises(Conflict, match="discarded"):
        merge_change_set(resources, space, open_set, ADA)
    rows = resources.tables.query_items("content", space.pk, min_sk=versions_prefix(OATS), max_sk="h#post#oats#~")
    assert rows == []


def test_a_change_set_takes_so_many_documents_and_not_one_more(
    resources: Resources, space: SpaceKey, open_set: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_set_documents, "MAX_CHANGED_DOCUMENTS", 6)
    for number in range(4):
        post = make_post(f"P{number}").model_copy(update={"slug": f"post-{number}"})
        change_in_change_set(
            resources, space, open_set, DocumentKey("post", f"p{number}"), lambda _before, _basis, post=post: post
        )
    with pytest.raises(PayloadTooLarge):
        change_in_change_set(resources, space, open_set, DocumentKey("post", "more"), lambda _b, _s: make_post())
    merge_change_set(resources, space, open_set, ADA)
    assert read_document(resources, space, DocumentKey("post", "p3")).version == 1


def test_too_many_open_change_sets_let_no_other_begin(resources: Resources, space: SpaceKey) -> None:
    for number in range(80):
        begin_change_set(resources, space, str(number), ADA)
    with pytest.raises(TooManyRequests):
        begin_change_set(resources, space, "", ADA)
    discard_change_set(resources, space, list_change_sets(resources, space)[0].id)
    begin_change_set(resources, space, "", ADA)


def test_the_content_of_sections_is_merged_field_by_field() -> None:
    def page(**fields: str) -> DocumentContent:
        sections = [{"id": "p.s", "model": "hero"}]
        locales = {"data": {"sections": sections}, "en": {"p.s": fields}}
        return DocumentContent(slug="p", locales=locales, parts={"hero": 1})

    base = page(title="A", text="B")
    assert ("en", "p.s", "title") in flatten_content(base)
    merged = merge_contents(base, page(title="A", text="theirs"), page(title="ours", text="B"))
    assert merged.content == page(title="ours", text="theirs")
    both = merge_contents(base, page(title="theirs", text="B"), page(text="B"))
    assert both.conflicts == (FieldConflict("en.p.s.title", "A", "theirs", None),)
    assert merge_contents(base, page(title="t", text="B"), page(text="B"), "ours").content == page(text="B")


def test_a_language_in_which_nothing_is_said_yet_stays() -> None:
    def make(title: str, *empty: str) -> DocumentContent:
        return make_post().model_copy(update={"locales": {"en": {"title": title}, **{locale: {} for locale in empty}}})

    base = make("a", "tr")
    assert merge_contents(base, make("a", "tr", "de"), make("b", "tr")).content == make("b", "tr", "de")
    assert merge_contents(base, make("a"), make("b", "tr")).content == make("b"), "one side has taken it away"


def test_a_further_language_that_one_side_says_as_a_draft_is_not_published_by_the_other() -> None:
    base = make_post()
    further, published = base.with_fields("de", {"body": "Brot"}), base.with_statuses("published", {})
    for theirs, ours in ((further, published), (published, further)):
        merged = merge_contents(base, theirs, ours)
        assert merged.conflicts == ()
        assert [merged.content.is_published_in(locale) for locale in ("en", "de")] == [True, False]
    whole = further.with_statuses("published", {})
    assert merge_contents(base, base, whole).content == whole


def test_who_has_written_last_is_no_conflict_and_a_status_is_one() -> None:
    def with_meta(title: str, **meta: Any) -> DocumentContent:
        return make_post().with_fields("en", {title: "x"}).model_copy(update={"meta": {"en": meta}})

    base = with_meta("a", updated_by="ada")
    merged = merge_contents(base, with_meta("a", updated_by="bob"), with_meta("a", updated_by="eve"))
    assert (merged.conflicts, merged.content.meta) == ((), {"en": {"updated_by": "eve"}})
    refused = merge_contents(base, with_meta("a", status="archived"), with_meta("a", status="published"))
    assert [conflict.path for conflict in refused.conflicts] == ["meta.en"]
