"""Write, merge, sweep, search and erase content, and keep images, with the permissions of each function."""

import json
from decimal import Decimal
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.aws.vector_bucket import VectorBucket
from fermata.content.change_sets.change_set_documents import change_in_change_set
from fermata.content.change_sets.change_set_store import begin_change_set, list_change_sets
from fermata.content.change_sets.merge_change_set import merge_change_set
from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.content_space import (
    ContentSpace,
    SpaceKey,
    forget_deleted_space,
    list_spaces,
    mark_space_deleted,
    read_space,
)
from fermata.content.documents import document_commit, staged_commit
from fermata.content.documents.change_document import create_document, delete_document, update_document
from fermata.content.documents.document import ContentAuthor, DocumentContent, DocumentKey
from fermata.content.documents.document_history import restore_document
from fermata.content.documents.list_documents import list_documents
from fermata.content.documents.read_document import find_document_by_slug, read_versions_at_once
from fermata.content.documents.settle_commit import settle_commit
from fermata.content.media.asset_files import media_folder
from fermata.content.model_store import create_space, put_model
from fermata.content.outbox import ChangeSetStep, ContentChange
from fermata.content.search.search_catalogue import forget_catalogues
from fermata.content.search.search_index import IndexSettings, TextEmbedder, index_documents, set_index_settings
from fermata.content.search.search_space import search_space
from fermata.content.space_members import SpaceMember, delete_member_list, put_member
from fermata.content.sweep_spaces import sweep_due_spaces
from fermata.credentials import credential_store
from fermata.domain.caller import Capability
from fermata.privacy.erase_space import make_space_subject
from fermata.privacy.privacy_job import create_privacy_job
from fermata.privacy.run_jobs import run_open_jobs
from fermata.turns.generate.embed_texts import INDEXING_USER
from fermata.turns.index_content import index_content_change
from fermata.turns.webhooks.deliver_message import deliver_webhook_message
from fermata.turns.webhooks.queue_content_events import queue_change_set_step, queue_content_change
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from fermata.webhooks.webhook_event import WebhookEvent
from fermata.webhooks.webhook_registry import add_webhook
from fermata.wire.http.dispatch import handle_request
from fermata.wire.http.messages import HttpRequest
from functions.redraw_images import app as redraw_images
from tests.images import make_image
from tests.resources import TestClock, resources_of_new_process
from tests.scripted_tool_server import run_scripted_tool_server
from tests.strict.model_lists import run_model_list_server
from tests.strict.s3_vectors import BUCKET_ARN, S3VectorsServer, run_s3_vectors_server
from tests.template.permission_guard import GuardedResources
from tests.template.permissions.guarded_stage import LARGE, record_messages, run_locally_without_queue, with_settings
from tests.tenant_tokens import make_tenant
from tests.uploads import put_upload


@pytest.mark.parametrize("function", ["api", "round", "credentials"])
def test_content_is_written_merged_deleted_and_restored(
    functions: dict[str, Any], function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By people, by tools of a turn, and by files of a project; also in a commit of several chunks."""
    api, space, author = functions[function], SpaceKey("bakery", "shop"), ContentAuthor("ada")
    create_space(functions["api"], space, ContentSpace(), author)
    put_model(functions["api"], space, {"id": "recipe", "kind": "collection"}, author)
    key = DocumentKey("recipe", "rye")
    large = DocumentContent(slug="rye", title="Rye", locales={"data": {"body": LARGE}})
    create_document(api, space, "recipe", author, large, document_id="rye", effect_key="once")
    update_document(api, space, key, author, lambda content: content.model_copy(update={"slug": "rye-bread"}))
    assert find_document_by_slug(api, space, "recipe", "rye-bread").version == 2
    change_set = begin_change_set(api, space, "", author).id
    change_in_change_set(api, space, change_set, key, lambda _before, _basis: DocumentContent(title="Dark rye"))
    assert merge_change_set(api, space, change_set, author).status == "merged"
    model_set = begin_change_set(api, space, "", author).id
    oven = DocumentKey("model", "oven")
    put_model(functions["api"], space, {"id": "oven", "kind": "collection"}, author)
    change_in_change_set(api, space, model_set, oven, lambda _before, _basis: None)
    change_in_change_set(api, space, model_set, key, lambda _before, _basis: DocumentContent(title="Darker"))
    monkeypatch.setattr(document_commit, "MAX_WRITES", 1)
    assert merge_change_set(api, space, model_set, author).status == "merged"
    monkeypatch.undo()
    delete_document(api, space, key, author)
    restore_document(api, space, key, 1, author)
    assert len(list_documents(api, space, "recipe").documents) == 1
    put_member(functions["api"], space, SpaceMember("bob", "viewer"))
    delete_member_list(functions["api"], space)
    assert list(read_versions_at_once(api, space, [(key, 6)])) == [(key, 6)]


@pytest.mark.parametrize("function", ["consume_content", "redraw_images"])
def test_a_commit_whose_process_died_is_finished_by_whoever_meets_it(
    functions: dict[str, Any], function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, space, author = functions["api"], SpaceKey("bakery", "shop"), ContentAuthor("ada")
    create_space(api, space, ContentSpace(), author)
    old = create_document(api, space, "post", author, DocumentContent(title="Old", slug="old")).version.key
    change_set = begin_change_set(api, space, "", author).id
    for key in (old, DocumentKey("post", "new")):
        content = None if key == old else DocumentContent(title="New", slug="old")
        change_in_change_set(api, space, change_set, key, lambda _before, _basis, content=content: content)
    with monkeypatch.context() as dying:
        dying.setattr(document_commit, "MAX_WRITES", 1)
        dying.setattr(staged_commit, "finish_commit", lambda *_: None)
        merge_change_set(api, space, change_set, author)
    (commit,) = api.tables.query_items("content", space.pk, min_sk="k#", max_sk="k#~", limit=1)
    settle_commit(functions[function], space, commit["sk"].removeprefix("k#"))
    marks = [row for row in api.tables.query_items("content", space.pk) if "staged_by" in row]
    assert marks == []


def test_a_space_is_swept(functions: dict[str, Any], clock: TestClock, monkeypatch: pytest.MonkeyPatch) -> None:
    api, space, author = functions["api"], SpaceKey("bakery", "shop"), ContentAuthor("ada")
    create_space(api, space, ContentSpace(), author)
    change_set = begin_change_set(api, space, "", author).id
    key = DocumentKey("post", "rye")
    change_in_change_set(api, space, change_set, key, lambda _before, _basis: DocumentContent(title="Rye"))
    functions["redraw_images"].blobs.put_bytes(media_folder(space, "0" * 64), b"left", "image/png")
    with monkeypatch.context() as dying:
        dying.setattr(document_commit, "MAX_WRITES", 1)
        dying.setattr(staged_commit, "finish_commit", lambda *_: None)
        create_document(api, space, "post", author, DocumentContent(title="Old", slug="old"))
    for _ in range(2):
        clock.advance(32 * 86_400)
        assert sweep_due_spaces(functions["purge"]) == 1
    assert [one.status for one in list_change_sets(api, space)] == ["discarded"]


def test_a_turn_starts_and_is_recovered_in_a_space_and_a_space_is_erased(functions: dict[str, Any]) -> None:
    space = SpaceKey("bakery", "shop")
    create_space(functions["api"], space, ContentSpace(), ContentAuthor("ada"))
    for function in ("stream_turns", "recover"):
        assert read_space(functions[function], space).locales == ("en",)
        assert [key for key, _ in list_spaces(functions[function], space.tenant)] == [space]
    mark_space_deleted(functions["purge"], space)
    forget_deleted_space(functions["purge"], space)
    assert list_spaces(functions["api"], space.tenant) == []


def test_an_upload_becomes_an_asset_and_is_found_again_also_when_people_have_written_much_about_it(
    resources: Resources, functions: dict[str, Any]
) -> None:
    bakery, space = make_tenant(resources_of_new_process(resources)), SpaceKey("bakery", "shop")
    create_space(functions["api"], space, ContentSpace(), ContentAuthor("ada"))
    ref = put_upload(resources_of_new_process(resources), functions["stage"].caller, "image", make_image())
    path = f"/admin/api/ai/assets/{space.site}/{space.environment}"
    headers = bakery.bearer_headers(functions["stage"].caller.user) | {"content-type": "application/json"}
    body = json.dumps({"uploadRef": ref, "filename": "rye.jpg", "alt": "Rye"}).encode()
    request = HttpRequest(id="r", method="POST", path=path, headers=headers, body=body)
    stored = handle_request(functions["redraw_images"], redraw_images.router.routes, request)
    assert stored.status == 201, stored.body
    key = DocumentKey("asset", stored.body["document"]["id"])
    described = {"description": LARGE}
    update_document(
        functions["api"],
        space,
        key,
        ContentAuthor("ada"),
        lambda asset: asset.with_fields(DEFINITION_LOCALE, described),
    )
    again = handle_request(functions["redraw_images"], redraw_images.router.routes, request)
    assert again.status == 200, again.body


def test_changes_of_content_are_indexed_with_the_model_that_their_space_has_chosen(
    resources: Resources, functions: dict[str, Any]
) -> None:
    api, caller = functions["api"], functions["stage"].caller
    space, author = SpaceKey("bakery", "shop"), ContentAuthor("ada")
    create_space(api, space, ContentSpace(), author)
    limits = BudgetLimits(monthly_usd=Decimal(500))
    functions["stage"].set_price(input_per_mtok=1, output_per_mtok=1)
    set_budgets(api, caller, Budgets(tenant=limits, users={INDEXING_USER: limits}))
    with run_model_list_server() as server:
        vector = {"data": [{"index": 0, "embedding": [1.0, 0.5]}], "usage": {"prompt_tokens": 9}}
        server.set_response("/v1/embeddings", vector)
        here = {"fermata_stage": "local", "provider_urls": json.dumps({"openai": server.url})}
        consumer = with_settings(functions["consume_content"], resources.settings.model_copy(update=here))
        made = credential_store.create_credential(
            functions["credentials"], caller, "openai", "apiKey", "search", server.key
        )
        set_index_settings(functions["credentials"], space, IndexSettings(made.id, "model-1"))
        key = create_document(api, space, "page", author, DocumentContent(slug="rye", title=LARGE[:200])).version.key
        update_document(
            api, space, key, author, lambda page: page.with_fields(DEFINITION_LOCALE, {"description": LARGE})
        )
        for version in (1, 2):
            index_content_change(consumer, ContentChange(space, key, version, "update", ""))
        delete_document(api, space, key, author)
        index_content_change(consumer, ContentChange(space, key, 3, "delete", ""))
        assert [request.path for request in server.requests] == ["/v1/embeddings"]


def test_vectors_are_kept_in_a_bucket_found_and_erased(resources: Resources, functions: dict[str, Any]) -> None:
    api, space, author = functions["api"], SpaceKey("bakery", "shop"), ContentAuthor("ada")
    create_space(api, space, ContentSpace(), author)
    key = create_document(api, space, "page", author, DocumentContent(slug="rye", title="Rye")).version.key
    with run_s3_vectors_server() as server:
        connected = {name: _with_vector_bucket(functions[name], server) for name in functions if name != "stage"}
        for indexing in ("consume_content", "credentials"):
            server.reset()
            index_documents(connected[indexing], space, [key], TextEmbedder(), again=True)
            update_document(
                api, space, key, author, lambda page: page.model_copy(update={"title": f"{page.title} bread"})
            )
            index_documents(connected[indexing], space, [key], TextEmbedder())
        for searching in ("round", "credentials"):
            forget_catalogues()
            assert search_space(connected[searching], space, "bread", TextEmbedder())
        create_privacy_job(connected["credentials"], "erasure", make_space_subject(space))
        mark_space_deleted(connected["purge"], space)
        run_open_jobs(connected["purge"])
        assert server.keys == set()
        assert connected["purge"].vector_bucket.delete_tenant(space.tenant) == 1


def _with_vector_bucket(guarded: GuardedResources, server: S3VectorsServer) -> GuardedResources:
    settings = guarded.settings.model_copy(update={"vector_bucket_arn": BUCKET_ARN})
    object.__setattr__(guarded, "settings", settings)
    client = server.make_client()
    client.meta.events.register("before-parameter-build", guarded.guard.check_call)
    guarded.__dict__["vector_bucket"] = VectorBucket(client, BUCKET_ARN)
    return guarded


def test_webhooks_are_told_about_content(
    resources: Resources, functions: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tenant(resources_of_new_process(resources))
    rights = frozenset({Capability.TOOLS, Capability.CONTENT})
    caller = functions["stage"].caller.model_copy(update={"capabilities": rights})
    api, space, author = functions["api"], SpaceKey("bakery", "shop"), ContentAuthor("ada")
    sent = record_messages(monkeypatch)
    run_locally_without_queue(functions)
    with run_scripted_tool_server() as receiver:
        add_webhook(functions["credentials"], caller, receiver.url, (WebhookEvent.DOCUMENT_CREATED,))
        create_space(api, space, ContentSpace(), author)
        content = DocumentContent(slug="rye").with_fields(DEFINITION_LOCALE, {"description": LARGE})
        key = create_document(api, space, "page", author, content).version.key
        queue_content_change(functions["consume_content"], ContentChange(space, key, 1, "create", ""))
        deliver_webhook_message(functions["deliver_webhooks"], sent.pop())
        opened = begin_change_set(api, space, "Spring", author)
        queue_change_set_step(functions["consume_content"], ChangeSetStep(space, opened.id, 1, "open"))
        deliver_webhook_message(functions["deliver_webhooks"], sent.pop())
        assert [call.body["type"] for call in receiver.calls] == ["content.documentCreated"]
