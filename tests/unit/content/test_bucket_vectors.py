"""Search with a vector bucket: the same answers as with rows, nothing of others, and no vector that nothing names."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.aws.resources import Resources
from fermata.aws.transient_errors import is_transient_error
from fermata.aws.vector_bucket import KeyedVector, name_vector_index
from fermata.content.content_space import ContentSpace, SpaceKey, mark_space_deleted
from fermata.content.documents.change_document import create_document, delete_document, update_document
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.model_store import create_space
from fermata.content.search.bucket_vectors import scale_to_one
from fermata.content.search.lexical_embedding import LEXICAL_DIMENSIONS, Vector, embed_lexically
from fermata.content.search.search_catalogue import forget_catalogues
from fermata.content.search.search_index import IndexMoved, TextEmbedder, index_documents
from fermata.content.search.search_space import search_space
from fermata.domain.errors import ServiceUnavailable
from fermata.privacy.data_subject import DataSubject
from fermata.privacy.erase_space import make_space_subject
from fermata.privacy.erasure import SETTLING_SECONDS
from fermata.privacy.privacy_job import create_privacy_job, get_privacy_job
from fermata.privacy.run_jobs import run_open_jobs
from tests.resources import TestClock
from tests.strict.s3_vectors import S3VectorsServer, run_s3_vectors_server
from tests.unit.content.conftest import ADA
from tests.unit.content.test_documents import interfere_once
from tests.unit.content.test_search import LEXICAL, PAGES, add_page

WITHOUT_TITLE_MATCH = "zzz harbour"


@pytest.fixture(scope="module")
def server() -> Iterator[S3VectorsServer]:
    with run_s3_vectors_server() as server:
        yield server


@pytest.fixture
def bucket(resources: Resources, space: SpaceKey, server: S3VectorsServer) -> Resources:
    """A process of a deployment with a vector bucket."""
    forget_catalogues()
    server.reset()
    return server.connect(resources)


@pytest.fixture
def pages(bucket: Resources, space: SpaceKey) -> list[DocumentKey]:
    keys = [add_page(bucket, space, slug, title) for slug, title in PAGES.items()]
    assert index_documents(bucket, space, keys, LEXICAL) == len(keys)
    return keys


def embed_harbours(texts: Sequence[str]) -> list[Vector]:
    """Return vectors that are near to each other for all texts about harbours."""
    return [[1.0, 0.0, 1e-3] if "harbour" in text.casefold() else [0.0, 1.0, 1e-3] for text in texts]


HARBOURS = TextEmbedder("cred/harbours", embed_harbours)


def find(resources: Resources, space: SpaceKey, query: str, embedder: TextEmbedder = LEXICAL, **how: Any) -> list[str]:
    return [one.entry.key.id for one in search_space(resources, space, query, embedder, **how)]


def test_vectors_in_a_bucket_find_what_vectors_in_rows_find(
    bucket: Resources, resources: Resources, space: SpaceKey, pages: list[DocumentKey], server: S3VectorsServer
) -> None:
    queries = ("rye bread", "Pricse of bred", "how to contact us", "bread page")
    in_bucket = [[(one.entry.key, one.score) for one in search_space(bucket, space, it, LEXICAL)] for it in queries]
    assert server.operations[:3] == ["PutVectors", "CreateIndex", "PutVectors"]
    assert "QueryVectors" in server.operations
    forget_catalogues()
    assert index_documents(resources, space, pages, LEXICAL) == len(pages)
    for query, before in zip(queries, in_bucket, strict=True):
        in_rows = [(one.entry.key, one.score) for one in search_space(resources, space, query, LEXICAL)]
        assert [key for key, _ in in_rows] == [key for key, _ in before]
        assert [score for _, score in in_rows] == pytest.approx([score for _, score in before], abs=0.01)


def test_nothing_of_another_tenant_site_or_environment_is_near(
    bucket: Resources, space: SpaceKey, pages: list[DocumentKey], server: S3VectorsServer
) -> None:
    for other in (space._replace(tenant="mill"), space._replace(site="blog"), space._replace(environment="staging")):
        create_space(bucket, other, ContentSpace(), ADA)
        index_documents(bucket, other, [add_page(bucket, other, "secret", "Rye bread secrets")], LEXICAL)
        assert find(bucket, other, "rye bread") == ["secret"]
    assert "secret" not in find(bucket, space, "rye bread secrets")
    assert set(server.indexes) == {name_vector_index(one, LEXICAL_DIMENSIONS) for one in (space.tenant, "mill")}
    filters = [body["filter"]["$and"] for name, body in server.calls if name == "QueryVectors"]
    searched = {(*one[0]["space"]["$in"], *one[1]["embedder"]["$in"]) for one in filters}
    assert searched == {
        (f"t#{one}", LEXICAL.name)
        for one in ("mill#s#shop#main", "bakery#s#blog#main", "bakery#s#shop#staging", "bakery#s#shop#main")
    }


def test_a_change_replaces_its_vector_and_a_deletion_takes_it_away(
    bucket: Resources, space: SpaceKey, pages: list[DocumentKey], server: S3VectorsServer
) -> None:
    update_document(bucket, space, pages[2], ADA, lambda it: it.model_copy(update={"title": "Pumpernickel"}))
    delete_document(bucket, space, pages[1], ADA)
    assert index_documents(bucket, space, pages, LEXICAL) == 2
    assert find(bucket, space, "Pumpernickel") == ["rye"]
    assert {tuple(key.split("#")[5:8]) for key in server.keys} == {
        ("page", "about", "1"),
        ("page", "contact", "1"),
        ("page", "rye", "2"),
    }


def test_a_space_is_indexed_anew_in_the_bucket_where_its_vectors_were_in_rows(
    bucket: Resources, resources: Resources, space: SpaceKey, server: S3VectorsServer
) -> None:
    key = add_page(resources, space, "port", "Harbour")
    index_documents(resources, space, [key], HARBOURS)
    assert find(bucket, space, WITHOUT_TITLE_MATCH, HARBOURS) == ["port"]
    assert server.operations == []
    assert index_documents(bucket, space, [key], HARBOURS) == 1
    assert find(bucket, space, WITHOUT_TITLE_MATCH, HARBOURS) == ["port"]
    assert server.operations[-1] == "QueryVectors"
    assert index_documents(bucket, space, [key], HARBOURS) == 0
    assert index_documents(bucket, space, [key], HARBOURS, again=True) == 1
    assert len(server.keys) == 1


def test_another_model_with_other_dimensions_has_an_index_of_its_own_and_leaves_nothing_in_the_first(
    bucket: Resources, space: SpaceKey, pages: list[DocumentKey], server: S3VectorsServer
) -> None:
    assert index_documents(bucket, space, pages, HARBOURS) == len(pages)
    sizes = {index.dimension: len(index.vectors) for index in server.indexes.values()}
    assert sizes == {LEXICAL_DIMENSIONS: 0, 3: len(pages)}
    assert find(bucket, space, "zzz", HARBOURS) == [key.id for key in sorted(pages)]
    assert find(bucket, space, "zzz", LEXICAL) == []


def test_a_space_is_indexed_with_another_model_although_the_index_of_the_former_one_was_deleted(
    bucket: Resources, space: SpaceKey, pages: list[DocumentKey], server: S3VectorsServer
) -> None:
    server.reset()  # as an operator does after the content table was restored to an earlier moment
    assert index_documents(bucket, space, pages, HARBOURS) == len(pages)
    assert find(bucket, space, "zzz", HARBOURS) == [key.id for key in sorted(pages)]
    assert len(server.keys) == len(pages)


def test_a_search_whose_vectors_are_gone_says_who_brings_them_back(
    bucket: Resources, space: SpaceKey, pages: list[DocumentKey], server: S3VectorsServer
) -> None:
    server.reset()
    with pytest.raises(ServiceUnavailable, match=f"reindex {space.name} --again`"):
        find(bucket, space, "rye bread")
    assert search_space(bucket, space, "rye", None)[0].entry.key.id == "rye", "titles are found without vectors"
    index_documents(bucket, space, pages, LEXICAL, again=True)
    assert find(bucket, space, "rye bread")[0] == "rye"


def test_an_index_that_a_change_has_created_anew_is_not_taken_for_the_whole_space(
    bucket: Resources, space: SpaceKey, pages: list[DocumentKey], server: S3VectorsServer
) -> None:
    server.reset()
    update_document(bucket, space, pages[0], ADA, lambda it: it.model_copy(update={"title": "Rye and bread"}))
    assert index_documents(bucket, space, pages, LEXICAL) == 1
    with pytest.raises(ServiceUnavailable, match=f"reindex {space.name} --again`"):
        find(bucket, space, "rye bread")
    index_documents(bucket, space, pages, LEXICAL, again=True)
    assert {"about", "rye"} <= set(find(bucket, space, "rye bread"))
    assert "GetVectors" not in server.operations[-2:], "Nothing is looked for where nothing is missed."


def test_another_space_of_the_tenant_does_not_hide_that_the_vectors_of_one_are_gone(
    bucket: Resources, space: SpaceKey, pages: list[DocumentKey], server: S3VectorsServer
) -> None:
    other = space._replace(site="blog")
    create_space(bucket, other, ContentSpace(), ADA)
    server.reset()
    index_documents(bucket, other, [add_page(bucket, other, "rye", "Rye")], LEXICAL)
    assert find(bucket, other, "rye") == ["rye"]
    with pytest.raises(ServiceUnavailable, match=f"reindex {space.name} --again`"):
        find(bucket, space, "rye bread")


def test_vectors_that_a_query_misses_although_they_are_there_are_left_out(
    bucket: Resources,
    space: SpaceKey,
    pages: list[DocumentKey],
    server: S3VectorsServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "_query_vectors", lambda _body: {"vectors": [], "distanceMetric": "cosine"})
    assert find(bucket, space, "Rye bread")[0] == "rye", "It is found by its title."
    assert server.operations[-2:] == ["QueryVectors", "GetVectors"]


def test_more_documents_than_a_page_of_the_answer_are_found(bucket: Resources, space: SpaceKey) -> None:
    keys = [add_page(bucket, space, f"port-{number}", f"Harbour {number}") for number in range(8)]
    index_documents(bucket, space, keys, HARBOURS)
    assert len(find(bucket, space, WITHOUT_TITLE_MATCH, HARBOURS, limit=20)) == len(keys)
    assert find(bucket, space, WITHOUT_TITLE_MATCH, HARBOURS, types=("image",)) == []


def test_types_are_chosen_by_the_query(
    bucket: Resources, space: SpaceKey, pages: list[DocumentKey], server: S3VectorsServer
) -> None:
    key = create_document(bucket, space, "post", ADA, DocumentContent(title="Harbour of the week")).version.key
    index_documents(bucket, space, [key, *pages], HARBOURS)
    assert find(bucket, space, WITHOUT_TITLE_MATCH, HARBOURS, types=("entry", "page"), limit=1) == [key.id]
    assert server.calls[-1][1]["filter"]["$and"][2] == {"type": {"$in": ["entry", "page"]}}


def test_of_two_that_index_one_document_the_slower_one_leaves_no_vector(
    bucket: Resources,
    space: SpaceKey,
    pages: list[DocumentKey],
    server: S3VectorsServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def index_newer_version() -> None:
        update_document(bucket, space, pages[0], ADA, lambda it: it.model_copy(update={"title": "We all"}))
        index_documents(bucket, space, pages, LEXICAL)

    update_document(bucket, space, pages[0], ADA, lambda it: it.model_copy(update={"title": "Us"}))
    place = server.answer
    seen: list[str] = []

    def answer_then_interfere(path: str, *rest: Any) -> dict[str, Any]:
        done = place(path, *rest)
        seen.append(path)
        if seen.count("/PutVectors") == 1 and path == "/PutVectors":
            index_newer_version()
        return done

    monkeypatch.setattr(server, "answer", answer_then_interfere)
    with pytest.raises(IndexMoved):
        index_documents(bucket, space, pages, LEXICAL)
    assert {key.split("#")[7] for key in server.keys if "#about#" in key} == {"3"}


def test_the_slower_one_keeps_the_vector_that_the_faster_one_has_named(
    bucket: Resources,
    space: SpaceKey,
    pages: list[DocumentKey],
    server: S3VectorsServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    update_document(bucket, space, pages[0], ADA, lambda it: it.model_copy(update={"title": "Us"}))
    interfere_once(monkeypatch, bucket, lambda: index_documents(bucket, space, pages, LEXICAL))
    with pytest.raises(IndexMoved):
        index_documents(bucket, space, pages, LEXICAL)
    assert find(bucket, space, "Us page")[0] == "about"
    assert len(server.keys) == len(pages)


def test_a_vector_that_was_not_deleted_when_its_process_died_is_deleted_by_the_repetition(
    bucket: Resources, space: SpaceKey, pages: list[DocumentKey], server: S3VectorsServer
) -> None:
    update_document(bucket, space, pages[0], ADA, lambda it: it.model_copy(update={"title": "Us"}))
    server.failing["DeleteVectors"] = "InternalServerException"
    with pytest.raises(ClientError) as failure:
        index_documents(bucket, space, pages, LEXICAL)
    assert is_transient_error(failure.value)
    server.failing.clear()
    assert len(server.keys) == len(pages) + 1
    assert index_documents(bucket, space, pages, LEXICAL) == 0
    assert len(server.keys) == len(pages)


@pytest.mark.parametrize("error", ["TooManyRequestsException", "ServiceUnavailableException", "AccessDeniedException"])
def test_a_bucket_that_does_not_answer_fails_the_search_and_stores_nothing(
    bucket: Resources, space: SpaceKey, pages: list[DocumentKey], server: S3VectorsServer, error: str
) -> None:
    server.failing = {"QueryVectors": error, "PutVectors": error}
    with pytest.raises(ClientError) as failure:
        find(bucket, space, "rye bread")
    assert is_transient_error(failure.value) == (error != "AccessDeniedException")
    assert find(bucket, space, "rye bread", TextEmbedder("other", embed_lexically))[0] == "rye"
    update_document(bucket, space, pages[0], ADA, lambda it: it.model_copy(update={"title": "Us"}))
    with pytest.raises(ClientError):
        index_documents(bucket, space, pages, LEXICAL)
    server.failing = {}
    assert index_documents(bucket, space, pages, LEXICAL) == 1


@pytest.mark.parametrize("vector", [[], [0.0] * 3, [math.nan, 1.0, 1.0], [math.inf, 1.0, 1.0], [1.0] * 4097])
def test_a_vector_without_direction_is_not_stored(
    bucket: Resources, space: SpaceKey, server: S3VectorsServer, vector: Vector
) -> None:
    key = add_page(bucket, space, "rye", "Rye")
    assert index_documents(bucket, space, [key], TextEmbedder("c/m", lambda texts: [vector for _ in texts])) == 1
    assert server.operations == []
    assert find(bucket, space, "Rye", TextEmbedder("c/m", lambda texts: [vector for _ in texts])) == ["rye"]


def test_numbers_that_32_bits_do_not_hold_keep_their_direction() -> None:
    assert scale_to_one([3e300, 4e300]) == pytest.approx([0.6, 0.8])
    assert scale_to_one([3e-300, 4e-300]) == pytest.approx([0.6, 0.8])


def test_two_that_create_an_index_at_once_both_store(bucket: Resources, server: S3VectorsServer) -> None:
    server.failing["PutVectors"] = "NotFoundException"
    vectors = [KeyedVector("k", [1.0], {"space": "s"})]
    with pytest.raises(ClientError):
        bucket.vector_bucket.put_vectors("bakery", vectors)
    with pytest.raises(ClientError, match="NotFoundException"):  # another one has created it: that is no failure
        bucket.vector_bucket.put_vectors("bakery", vectors)
    server.failing.clear()
    bucket.vector_bucket.put_vectors("bakery", vectors)
    assert server.keys == {"k"}


def test_the_erasure_of_a_space_deletes_its_vectors_and_no_others(
    bucket: Resources, space: SpaceKey, pages: list[DocumentKey], server: S3VectorsServer, clock: TestClock
) -> None:
    other = space._replace(site=f"{space.site}-2")
    create_space(bucket, other, ContentSpace(), ADA)
    index_documents(bucket, other, [add_page(bucket, other, "rye", "Rye")], HARBOURS)
    index_documents(bucket, other, [add_page(bucket, other, "oats", "Oats")], LEXICAL)
    job = create_privacy_job(bucket, "erasure", make_space_subject(space))
    mark_space_deleted(bucket, space)
    run_open_jobs(bucket)
    assert {key.split("#")[3] for key in server.keys} == {other.site}
    clock.advance(SETTLING_SECONDS)
    run_open_jobs(bucket)
    assert get_privacy_job(bucket, space.tenant, job.id, "erasure").counts["vectors"] == len(pages)


def test_the_erasure_of_a_tenant_deletes_its_indexes_and_no_others(
    bucket: Resources, space: SpaceKey, pages: list[DocumentKey], server: S3VectorsServer
) -> None:
    other = space._replace(tenant="mill")
    create_space(bucket, other, ContentSpace(), ADA)
    index_documents(bucket, other, [add_page(bucket, other, "rye", "Rye")], LEXICAL)
    index_documents(bucket, space, pages, HARBOURS)
    subject = DataSubject(kind="tenant", tenant=space.tenant, id=space.tenant)
    job = create_privacy_job(bucket, "erasure", subject)
    run_open_jobs(bucket)
    assert set(server.indexes) == {name_vector_index("mill", LEXICAL_DIMENSIONS)}
    assert get_privacy_job(bucket, space.tenant, job.id, "erasure").counts["vector_indexes"] == 2
    assert bucket.vector_bucket.delete_tenant(space.tenant) == 0
