"""Spaces are indexed with the model of a credential: what it costs, and what happens while it does not answer."""

import json
import sys
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import serialize_item
from fermata.aws.resources import Resources
from fermata.content.content_consumers import (
    CONTENT_CONSUMERS,
    prepare_content_consumers,
    tell_content_consumers,
)
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.change_document import create_document, update_document
from fermata.content.documents.document import ContentAuthor, DocumentContent, DocumentKey, DocumentVersion
from fermata.content.documents.document_rows import VERSION_PREFIX
from fermata.content.model_store import create_space
from fermata.content.outbox import ContentChange, consume_content_changes
from fermata.content.search import search_index
from fermata.content.search.search_catalogue import forget_catalogues
from fermata.content.search.search_index import IndexMoved, IndexSettings, read_index_settings
from fermata.content.search.search_space import search_space
from fermata.credentials.credential_store import create_credential
from fermata.domain.errors import InvalidRequest, NotFound, ProviderError
from fermata.pricing import catalogue
from fermata.pricing.catalogue import PriceCatalogue, PricedModel
from fermata.pricing.token_cost import Price
from fermata.turns import index_content
from fermata.turns.generate.embed_texts import open_embedder
from fermata.turns.index_content import choose_search_model, index_content_change, index_space_part
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from tests.resources import resources_of_new_process
from tests.strict.model_lists import ModelListServer, run_model_list_server
from tests.unit.resource_fixtures import clock, resources, shared_resources
from tests.unit.turns.stage import ADA

__all__ = ["clock", "resources", "shared_resources"]
SPACE = SpaceKey(ADA.tenant, "shop")
AUTHOR = ContentAuthor(ADA.user)
BURST_DOCUMENTS = 100


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


def test_a_space_is_indexed_in_steps_and_again_without_work(
    process: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_content, "INDEXED_AT_ONCE", 4)
    for number in range(9):
        add_page(process, f"page-{number}", f"Page {number}")
    assert index_all(process) == (15, 15)
    assert index_all(process) == (15, 0)
    assert index_all(process, again=True) == (15, 15)
    assert find(process, "Page 7")[0] == "page-7"


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


def test_a_budget_is_asked_for_no_answer_that_vectors_do_not_have(process: Resources, credential: str) -> None:
    dear_answers = PricedModel(price=Price(input_per_mtok=Decimal(1), output_per_mtok=Decimal(1_000_000)))
    catalogue.store_catalogue(process, PriceCatalogue(refreshed_at=1, priced_models={"vectors": dear_answers}))
    set_budgets(process, ADA, Budgets(tenant=BudgetLimits(daily_usd=Decimal("0.01"))))
    choose_search_model(process, SPACE, ADA, IndexSettings(credential, "vectors"))
    assert [row["outcome"] for row in list_ledger(process)] == ["ok"]


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
    process: Resources,
    server: ModelListServer,
    credential: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    choose_search_model(process, SPACE, ADA, IndexSettings(credential, "vectors"))
    change = add_page(process, "rye", "A dark loaf")
    with monkeypatch.context() as broken:
        broken.setattr(server, "respond", lambda _request: (500, {"error": {"message": "out of order: A dark loaf"}}))
        index_content_change(process, change)
        assert "content.indexed_without_vector" in caplog.text
        assert "out of order" not in str([vars(record) for record in caplog.records])
        found = search_space(process, SPACE, "A dark loaf", None)
        assert [(one.entry.key, one.score) for one in found] == [(DocumentKey("page", "rye"), 1.0)]
        with pytest.raises(ProviderError):
            find(process, "oaf")
    index_content_change(process, change)
    assert find(process, "zzz oaf") == ["rye"]


def test_a_change_that_waited_for_the_former_model_leaves_what_the_new_one_has_indexed(
    process: Resources, server: ModelListServer, credential: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = add_page(process, "rye", "A dark loaf")
    choose_search_model(process, SPACE, ADA, IndexSettings(credential, "vectors"))
    index_all(process)
    answers, chosen = server.respond, IndexSettings(credential, "vectors")

    def fail_after_another_choice(request: Any) -> tuple[int, Any]:
        monkeypatch.setattr(server, "respond", answers)
        choose_search_model(process, SPACE, ADA, chosen)  # a manager meanwhile, for whom the model answers again
        index_all(process, again=True)
        return 500, {"error": {"message": "out of order"}}

    later = update_document(process, SPACE, change.document, AUTHOR, lambda it: it.model_copy(update={"slug": "loaf"}))
    monkeypatch.setattr(server, "respond", fail_after_another_choice)
    with pytest.raises(IndexMoved, match="chosen another model"):
        index_content_change(process, change._replace(version=later.version.version))
    index_content_change(process, change._replace(version=later.version.version))
    assert find(process, "zzz oaf") == ["rye"]


@pytest.mark.parametrize("again", [False, True])
def test_a_space_is_indexed_while_what_has_changed_just_now_is_indexed_too(
    process: Resources, server: ModelListServer, credential: str, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    change = add_page(process, "rye", "A dark loaf")
    choose_search_model(process, SPACE, ADA, IndexSettings(credential, "vectors"))
    answers = server.respond

    def answer_after_the_outbox(request: Any) -> tuple[int, Any]:
        if "oaf" in str(request.body):
            monkeypatch.setattr(server, "respond", answers)
            index_content_change(process, change)
        return answers(request)

    monkeypatch.setattr(server, "respond", answer_after_the_outbox)
    assert index_all(process, again=again)[0] == 7
    assert find(process, "zzz oaf") == ["rye"]


@pytest.mark.parametrize("cursor", ["nothing", "page.!", "x" * 500])
def test_a_cursor_that_is_none_is_refused(process: Resources, cursor: str) -> None:
    with pytest.raises(InvalidRequest):
        index_space_part(process, SPACE, ADA, cursor)


class BurstOfChanges:
    """A thousand changes, ten of each of a hundred documents, whose newest versions are stored already.

    They come in batches of 25, as the stream delivers them. A batch that fails comes again from there.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.told: list[tuple[str, int]] = []
        self.reads = 0
        self.failing = {12, 262, 512, 999}
        monkeypatch.setitem(CONTENT_CONSUMERS, "webhooks", f"{__name__}:told_consumer")
        monkeypatch.setattr(sys.modules[__name__], "told_consumer", self._remember)
        monkeypatch.setattr(search_index, "read_newest_version", self._read_newest)
        self.records = [
            self._build_record(number, f"page-{number % BURST_DOCUMENTS:02d}", number // BURST_DOCUMENTS + 1)
            for number in range(1000)
        ]

    def deliver(self, process: Resources) -> int:
        """Deliver all records, and return how many invocations it took."""
        tell, prepare = partial(tell_content_consumers, process), partial(prepare_content_consumers, process)
        start = invocations = 0
        while start < len(self.records):
            end = min(start - start % 25 + 25, len(self.records))
            answer = consume_content_changes(self.records[start:end], tell, lambda *_: None, prepare)
            failures = answer["batchItemFailures"]
            start = int(failures[0]["itemIdentifier"]) if failures else end
            invocations += 1
        return invocations

    def _remember(self, _resources: Resources, change: ContentChange) -> None:
        self.told.append((change.document.id, change.version))
        place = (change.version - 1) * BURST_DOCUMENTS + int(change.document.id.removeprefix("page-"))
        if place in self.failing:
            self.failing.remove(place)
            raise RuntimeError("the queue of webhooks is away")

    def _read_newest(self, _resources: Resources, _space: SpaceKey, key: DocumentKey) -> DocumentVersion:
        self.reads += 1
        content = DocumentContent(slug=key.id, title=f"Title {key.id} oaf")
        return DocumentVersion(
            model="page", id=key.id, version=10, action="update", at="2026-11-29", created_at="", content=content
        )

    def _build_record(self, number: int, document: str, version: int) -> dict[str, Any]:
        data = {"model": "page", "id": document, "version": version, "action": "update", "at": "2026-11-29"}
        row = {"pk": SPACE.pk, "sk": f"{VERSION_PREFIX}page#{document}#{version}", "data": json.dumps(data)}
        return {"eventName": "INSERT", "dynamodb": {"SequenceNumber": str(number), "NewImage": serialize_item(row)}}


def test_a_burst_of_a_thousand_changes_is_told_whole_and_asks_the_model_once_for_a_batch_of_documents(
    process: Resources, server: ModelListServer, credential: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose_search_model(process, SPACE, ADA, IndexSettings(credential, "vectors"))
    burst = BurstOfChanges(monkeypatch)
    server.requests.clear()
    assert burst.deliver(process) == 1000 / 25 + 4
    assert len(burst.told) == 1000 + 4
    assert list(dict.fromkeys(sorted(burst.told))) == sorted(
        (f"page-{number:02d}", version) for number in range(BURST_DOCUMENTS) for version in range(1, 11)
    )
    for document in ("page-12", "page-62", "page-99"):
        versions = [version for told, version in burst.told if told == document]
        assert versions == sorted(versions)
    asked = [len(request.body["input"]) for request in server.requests if request.path == "/v1/embeddings"]
    assert (asked, burst.reads) == ([25] * (BURST_DOCUMENTS // 25), BURST_DOCUMENTS)
    assert len(find_all(process, "zzz oaf")) == BURST_DOCUMENTS


def find_all(resources: Resources, query: str) -> set[str]:
    found = search_space(resources, SPACE, query, open_embedder(resources, SPACE, ADA), limit=1000)
    return {one.entry.key.id for one in found}


def told_consumer(_resources: Resources, _change: ContentChange) -> None:
    raise AssertionError("replaced by the test")


def test_what_cannot_be_indexed_together_is_indexed_change_by_change(
    process: Resources, server: ModelListServer, credential: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose_search_model(process, SPACE, ADA, IndexSettings(credential, "vectors"))
    changes = [add_page(process, slug, f"A loaf {slug}") for slug in ("rye", "oats")]
    with monkeypatch.context() as broken:
        broken.setattr(server, "respond", lambda _request: (500, {"error": {"message": "out of order"}}))
        prepare_content_consumers(process, changes)
        assert search_space(process, SPACE, "A loaf rye", None) == []
    with monkeypatch.context() as broken:
        broken.setattr(search_index, "read_newest_version", lambda *_: 1 / 0)
        prepare_content_consumers(process, changes)
    server.requests.clear()
    for change in changes:
        index_content_change(process, change)
        index_content_change(process, change)
    assert len(server.requests) == len(changes)
    assert find_all(process, "zzz oaf") == {"rye", "oats"}
