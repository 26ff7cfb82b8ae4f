"""Search of a space: exact, misspelled, by meaning; what changes is found at once; nothing of other spaces is."""

import math
import random
from collections.abc import Sequence
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.change_document import create_document, delete_document, update_document
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.model_store import create_space
from fermata.content.search.lexical_embedding import Vector, embed_lexically
from fermata.content.search.packed_vector import compare_directions, pack_vector, unpack_numbers
from fermata.content.search.search_catalogue import forget_catalogues
from fermata.content.search.search_index import (
    IndexMoved,
    IndexSettings,
    TextEmbedder,
    index_documents,
    read_index_settings,
    set_index_settings,
)
from fermata.content.search.search_space import search_space
from fermata.domain.errors import Conflict, InvalidRequest, ProviderError
from tests.unit.content.conftest import ADA
from tests.unit.content.test_documents import CountedCalls, interfere_once

LEXICAL = TextEmbedder()
PAGES = {"about": "About us", "prices": "Prices of bread", "rye": "Rye bread", "contact": "How to reach us"}


def add_page(resources: Resources, space: SpaceKey, slug: str, title: str) -> DocumentKey:
    content = DocumentContent(slug=slug, title=title, locales={"data": {"meta": {"description": f"{title} page"}}})
    return create_document(resources, space, "page", ADA, content, document_id=slug).version.key


def find(resources: Resources, space: SpaceKey, query: str, **how: Any) -> list[str]:
    return [one.entry.key.id for one in search_space(resources, space, query, LEXICAL, **how)]


@pytest.fixture(autouse=True)
def _new_process() -> None:
    forget_catalogues()


@pytest.fixture
def pages(resources: Resources, space: SpaceKey) -> list[DocumentKey]:
    keys = [add_page(resources, space, slug, title) for slug, title in PAGES.items()]
    assert index_documents(resources, space, keys, LEXICAL) == len(keys)
    return keys


def test_what_is_equal_comes_first_then_what_contains_it_then_what_is_spelled_alike(
    resources: Resources, space: SpaceKey, pages: list[DocumentKey]
) -> None:
    found = search_space(resources, space, "rye bread", LEXICAL)
    assert [one.entry.key.id for one in found][:2] == ["rye", "prices"]
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert found[0].score == 1
    assert 0.9 < search_space(resources, space, "bread", LEXICAL)[0].score < 1


@pytest.mark.parametrize(
    ("query", "slug"), [("abuot us", "about"), ("Pricse of bred", "prices"), ("ABOUT ÜS", "about")]
)
def test_a_misspelled_title_is_found(
    resources: Resources, space: SpaceKey, pages: list[DocumentKey], query: str, slug: str
) -> None:
    found = search_space(resources, space, query, LEXICAL)
    assert found[0].entry.key.id == slug
    assert 0.2 <= found[0].score < 0.9


def test_a_document_is_found_by_its_text(resources: Resources, space: SpaceKey, pages: list[DocumentKey]) -> None:
    fields = {"locales": {"data": {"excerpt": "Sourdough starters need flour and patience"}}}
    key = create_document(resources, space, "post", ADA, DocumentContent(title="Notes", **fields)).version.key
    index_documents(resources, space, [key], LEXICAL)
    assert find(resources, space, "sourdough starter flour")[0] == key.id
    assert key.id not in {one.entry.key.id for one in search_space(resources, space, "sourdough starter", None)}


def test_a_change_and_a_deletion_are_seen_by_the_next_search(
    resources: Resources, space: SpaceKey, pages: list[DocumentKey]
) -> None:
    assert "rye" in find(resources, space, "rye bread")
    update_document(resources, space, pages[2], ADA, lambda it: it.model_copy(update={"title": "Pumpernickel"}))
    delete_document(resources, space, pages[1], ADA)
    assert index_documents(resources, space, pages, LEXICAL) == 2
    assert find(resources, space, "Pumpernickel") == ["rye"]
    assert "prices" not in find(resources, space, "prices of bread")
    forget_catalogues()
    assert "prices" not in find(resources, space, "prices of bread")


def test_what_is_indexed_again_is_left_alone_unless_it_is_asked_for(
    resources: Resources, space: SpaceKey, pages: list[DocumentKey]
) -> None:
    assert index_documents(resources, space, pages, LEXICAL) == 0
    assert index_documents(resources, space, pages, LEXICAL, again=True) == 4
    assert index_documents(resources, space, pages, TextEmbedder("c/m", embed_lexically)) == 4


def test_of_two_that_index_one_document_the_slower_one_begins_again(
    resources: Resources, space: SpaceKey, pages: list[DocumentKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    update_document(resources, space, pages[0], ADA, lambda it: it.model_copy(update={"title": "Us"}))
    resources.clock.sleep(1)
    interfere_once(monkeypatch, resources, lambda: index_documents(resources, space, pages, LEXICAL))
    with pytest.raises(IndexMoved):
        index_documents(resources, space, pages, LEXICAL)
    assert index_documents(resources, space, pages, LEXICAL) == 0


def test_nothing_of_another_tenant_site_or_environment_is_found(
    resources: Resources, space: SpaceKey, pages: list[DocumentKey]
) -> None:
    for other in (space._replace(tenant="mill"), space._replace(site="blog"), space._replace(environment="staging")):
        create_space(resources, other, ContentSpace(), ADA)
        assert find(resources, other, "rye bread") == []
        key = add_page(resources, other, "secret", "Rye bread secrets")
        index_documents(resources, other, [key], LEXICAL)
        assert find(resources, other, "rye bread") == ["secret"]
    assert "secret" not in find(resources, space, "rye bread secrets")


def test_types_are_chosen_before_the_limit(resources: Resources, space: SpaceKey, pages: list[DocumentKey]) -> None:
    key = create_document(resources, space, "post", ADA, DocumentContent(title="Bread of the week")).version.key
    index_documents(resources, space, [key, DocumentKey("model", "hero")], LEXICAL)
    assert find(resources, space, "bread", types=("entry",), limit=1) == [key.id]
    assert find(resources, space, "hero", types=("section_def",), limit=1) == ["hero"]
    assert find(resources, space, "bread", types=("image",)) == []


@pytest.mark.parametrize("query", ["", "   ", "x" * 501])
def test_an_empty_or_long_query_is_refused(resources: Resources, space: SpaceKey, query: str) -> None:
    with pytest.raises(InvalidRequest, match="1 to 500 characters"):
        search_space(resources, space, query, LEXICAL)


def test_an_embedder_that_fails_is_an_error_and_stores_nothing(
    resources: Resources, space: SpaceKey, pages: list[DocumentKey]
) -> None:
    def fail(_texts: Sequence[str]) -> list[Vector]:
        raise ProviderError("provider_down", "The model does not answer.", retryable=True)

    failing = TextEmbedder("c/m", fail)
    with pytest.raises(ProviderError):
        search_space(resources, space, "rye", failing)
    with pytest.raises(ProviderError):
        index_documents(resources, space, pages, failing)
    assert find(resources, space, "rye bread")[0] == "rye"


def test_vectors_of_another_model_are_not_compared(
    resources: Resources, space: SpaceKey, pages: list[DocumentKey]
) -> None:
    other = TextEmbedder("c/m", lambda texts: [[1.0, 0.0, 0.5] for _ in texts])
    assert [one.entry.key.id for one in search_space(resources, space, "zzz", other)] == []


def test_a_search_reads_what_is_new_with_one_request_and_vectors_with_another(
    resources: Resources, space: SpaceKey, pages: list[DocumentKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    find(resources, space, "rye")
    calls = CountedCalls(resources, monkeypatch)
    find(resources, space, "rye")
    assert calls.counts == {"Query": 1, "BatchGetItem": 1}


def test_the_model_of_a_space_is_kept_with_it(resources: Resources, space: SpaceKey) -> None:
    assert read_index_settings(resources, space).embedder_name == LEXICAL.name
    set_index_settings(resources, space, IndexSettings("cred", "text-embedding-3-small"))
    assert read_index_settings(resources, space).embedder_name == "cred/text-embedding-3-small"
    set_index_settings(resources, space, IndexSettings())
    assert read_index_settings(resources, space) == IndexSettings()


def test_of_two_that_choose_a_model_the_slower_one_is_told(
    resources: Resources, space: SpaceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    faster, slower = IndexSettings("c", "one"), IndexSettings("c", "two")
    interfere_once(monkeypatch, resources, lambda: set_index_settings(resources, space, faster))
    with pytest.raises(Conflict):
        set_index_settings(resources, space, slower)
    assert read_index_settings(resources, space) == faster


def test_a_packed_vector_keeps_its_direction() -> None:
    chosen = random.Random(7)
    for size in (3, 256, 1536):
        vector = [chosen.gauss(0, 1) for _ in range(size)]
        packed = pack_vector(vector)
        assert packed is not None
        assert unpack_numbers(packed.to_text()) == packed.numbers
        assert compare_directions(packed.numbers, packed.numbers) == pytest.approx(1)
        length = math.sqrt(sum(value * value for value in vector))
        exact = sum(a * b for a, b in zip(vector, packed.numbers, strict=True)) / length
        assert exact / math.sqrt(sum(number * number for number in packed.numbers)) > 0.999


@pytest.mark.parametrize("vector", [[], [0.0, 0.0], [math.inf, 1.0], [1.0] * 5000])
def test_a_vector_without_direction_or_with_too_many_dimensions_is_none(vector: Vector) -> None:
    assert pack_vector(vector) is None


def test_signatures_of_near_texts_have_fewer_other_bits_than_those_of_unrelated_ones() -> None:
    texts = ("Opening hours of the bakery", "The bakery's opening hours", "Quantum field theory")
    near, same, far = (pack_vector(vector) for vector in embed_lexically(texts))
    assert near is not None
    assert same is not None
    assert far is not None
    assert (near.signature ^ same.signature).bit_count() < (near.signature ^ far.signature).bit_count() - 20
