"""Spaces are indexed with the model of a credential: what it costs, and what happens while it does not answer."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.change_document import create_document
from fermata.content.documents.document import ContentAuthor, DocumentContent, DocumentKey
from fermata.content.model_store import create_space
from fermata.content.outbox import ContentChange
from fermata.content.search.search_catalogue import forget_catalogues
from fermata.content.search.search_index import IndexSettings, read_index_settings
from fermata.content.search.search_space import search_space
from fermata.credentials.credential_store import create_credential
from fermata.domain.errors import InvalidRequest, NotFound, ProviderError
from fermata.turns.generate.embed_texts import open_embedder
from fermata.turns.index_content import choose_search_model, index_content_change, index_space_part
from tests.resources import resources_of_new_process
from tests.strict.model_lists import ModelListServer, run_model_list_server
from tests.unit.resource_fixtures import clock, resources, shared_resources
from tests.unit.turns.stage import ADA

__all__ = ["clock", "resources", "shared_resources"]
SPACE = SpaceKey(ADA.tenant, "shop")
AUTHOR = ContentAuthor(ADA.user)


class EmbeddingServer:
    """A server whose vectors point to where a text speaks of bread, or elsewhere."""

    def __init__(self, server: ModelListServer) -> None:
        self.server = server
        answer = server.respond
        server.respond = self._respond  # type: ignore[method-assign]
        self._answer = answer

    def _respond(self, request: Any) -> tuple[int, Any]:
        if request.path.endswith("/embeddings") and request.body["model"] == "vectors":
            self.server.requests.append(request)
            texts = request.body["input"]
            data = [{"index": place, "embedding": [1.0, float("oaf" in text)]} for place, text in enumerate(texts)]
            return 200, {"data": data, "usage": {"prompt_tokens": 1000}}
        return self._answer(request)


@pytest.fixture(scope="module")
def server() -> Iterator[ModelListServer]:
    with run_model_list_server() as server:
        EmbeddingServer(server)
        yield server


@pytest.fixture
def process(resources: Resources, server: ModelListServer) -> Resources:
    forget_catalogues()
    create_space(resources, SPACE, ContentSpace(), AUTHOR)
    server.requests.clear()
    urls = json.dumps({"openai": server.url, "anthropic": server.url})
    return resources_of_new_process(resources, fermata_stage="local", provider_urls=urls)


@pytest.fixture
def credential(process: Resources, server: ModelListServer) -> str:
    return create_credential(process, ADA, "openai", "apiKey", "Search", server.key).id


def add_page(resources: Resources, slug: str, title: str) -> ContentChange:
    written = create_document(
        resources, SPACE, "page", AUTHOR, DocumentContent(slug=slug, title=title), document_id=slug
    ).version
    return ContentChange(SPACE, written.key, written.version, written.action, written.at)


def index_all(resources: Resources, *, again: bool = False) -> tuple[int, int]:
    seen = written = 0
    cursor, steps = "", 0
    while steps == 0 or cursor:
        part = index_space_part(resources, SPACE, ADA, cursor, again=again)
        seen, written, cursor, steps = seen + part.seen, written + part.written, part.cursor, steps + 1
    return seen, written


def find(resources: Resources, query: str) -> list[str]:
    found = search_space(resources, SPACE, query, open_embedder(resources, SPACE, ADA))
    return [one.entry.key.id for one in found if one.entry.type == "page"]


def list_ledger(resources: Resources) -> list[dict[str, Any]]:
    month = f"t#{ADA.tenant}#{resources.clock.now_iso()[:7]}"
    return [
        row
        for row in resources.tables.query_index(resources.settings.usage_table, "byTime", ("gpk", month))
        if row.get("model") == "vectors" and "prompt" in row
    ]


def test_a_space_is_indexed_in_steps_and_again_without_work(process: Resources) -> None:
    for number in range(60):
        add_page(process, f"page-{number}", f"Page {number}")
    assert index_all(process) == (66, 66)
    assert index_all(process) == (66, 0)
    assert index_all(process, again=True) == (66, 66)
    assert find(process, "Page 17")[0] == "page-17"


def test_a_space_is_searched_with_the_model_of_a_credential_which_is_accounted_for(
    process: Resources, server: ModelListServer, credential: str
) -> None:
    add_page(process, "rye", "A dark loaf")
    choose_search_model(process, SPACE, ADA, IndexSettings(credential, "vectors"))
    index_all(process)
    assert find(process, "Loaves or oaf") == ["rye"]
    rows = list_ledger(process)
    assert {(row["user"], row["prompt"], row["billable"]) for row in rows} == {(ADA.user, 1000, True)}
    assert len(rows) == len([request for request in server.requests if request.path == "/v1/embeddings"])


def test_a_model_that_does_not_answer_is_not_chosen(process: Resources, credential: str) -> None:
    with pytest.raises(ProviderError):
        choose_search_model(process, SPACE, ADA, IndexSettings(credential, "no-such-model"))
    with pytest.raises(NotFound):
        choose_search_model(process, SPACE, ADA, IndexSettings("no-such-credential", "vectors"))
    other = create_credential(process, ADA, "anthropic", "apiKey", "Chat", "sk-ant-1").id
    with pytest.raises(InvalidRequest, match="has no models for search"):
        choose_search_model(process, SPACE, ADA, IndexSettings(other, "vectors"))
    assert read_index_settings(process, SPACE) == IndexSettings()


def test_while_the_model_does_not_answer_changes_are_found_by_title_and_later_by_meaning(
    process: Resources, server: ModelListServer, credential: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose_search_model(process, SPACE, ADA, IndexSettings(credential, "vectors"))
    change = add_page(process, "rye", "A dark loaf")
    with monkeypatch.context() as broken:
        broken.setattr(server, "respond", lambda _request: (500, {"error": {"message": "out of order"}}))
        index_content_change(process, change)
        found = search_space(process, SPACE, "A dark loaf", None)
        assert [(one.entry.key, one.score) for one in found] == [(DocumentKey("page", "rye"), 1.0)]
        with pytest.raises(ProviderError):
            find(process, "oaf")
    index_content_change(process, change)
    assert find(process, "zzz oaf") == ["rye"]


@pytest.mark.parametrize("cursor", ["nothing", "page.!", "x" * 500])
def test_a_cursor_that_is_none_is_refused(process: Resources, cursor: str) -> None:
    with pytest.raises(InvalidRequest):
        index_space_part(process, SPACE, ADA, cursor)
