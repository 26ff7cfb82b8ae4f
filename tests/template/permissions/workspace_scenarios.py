"""Keep credentials, keys, uploads, prices, budgets and people's data, with the permissions of each function."""

import json
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from fermata.aws import uploads
from fermata.aws.resources import Resources
from fermata.client_protocols.conversation_keys import build_key_rules
from fermata.content.asking_key import read_asking_key
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.document import ContentAuthor
from fermata.content.model_store import create_space, put_model
from fermata.conversations import conversation_store, message_views
from fermata.conversations.purge import purge_deleted_conversations
from fermata.credentials import credential_store, initial_defaults, last_used, model_list, scope_defaults
from fermata.credentials.credential_views import get_credential_view
from fermata.credentials.open_credential import find_existing_ids
from fermata.domain.blocks import ImageBlock
from fermata.domain.errors import NotFound
from fermata.domain.one_shot_generation import GenerateRequest
from fermata.domain.workspace_plan import Subscription
from fermata.limits.monthly_messages import MonthlyMessages
from fermata.plans.drafts.draft_rows import DraftLocation
from fermata.plans.drafts.draft_store import load_draft
from fermata.pricing import catalogue_refresh
from fermata.privacy.data_subject import DataSubject, SubjectKind
from fermata.privacy.erasure import SETTLING_SECONDS
from fermata.privacy.privacy_job import create_privacy_job, get_privacy_job
from fermata.privacy.run_jobs import run_open_jobs
from fermata.turns.generate import ask_model
from fermata.turns.generate.answer_request import answer_generate_request
from fermata.turns.start.conversation_claim import cancel_active_turn
from fermata.usage.audit.audit_from_rollups import audit_usage
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from fermata.usage.budgets.budget_status import load_budget_status
from fermata.usage.ledger import ledger_store
from fermata.usage.rollups.stream_consumer import LedgerStreamRecord, count_stream_records
from fermata.wire.auth import api_key_store
from fermata.wire.auth.authenticate_api_key import authenticate_api_key, read_api_key_uses, record_api_key_use
from fermata.wire.auth.conversation_key_store import (
    authenticate_conversation_key,
    change_conversation_key,
    create_conversation_key,
)
from fermata.wire.bodies.studio_requests import NewConversationKeyRules
from fermata.wire.http.dispatch import handle_request
from fermata.wire.http.messages import HttpRequest
from fermata.wire.http.routing import Routes
from functions.api import app as api
from functions.credentials import app as credentials
from functions.redraw_images import app as redraw_images
from functions.stream_turns import app as stream_turns
from functions.tool_result import app as tool_result
from tests.fixed_response_server import run_fixed_response_server
from tests.images import make_image, open_image, to_base64
from tests.resources import TestClock, resources_of_new_process
from tests.strict.model_lists import run_model_list_server
from tests.template.permission_guard import NeededPermission
from tests.template.permissions.guarded_stage import LARGE, StageOf, with_settings
from tests.tenant_tokens import make_tenant
from tests.unit.privacy.filled_tenant import count_ledger, fill_tenant
from tests.unit.turns.stage import OK, Stage, make_provider_error, reply_with_calls, tool_call_block
from tests.uploads import announce_test_upload, put_upload


def test_a_model_is_asked_without_a_conversation(functions: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    stage = functions["stage"]
    monkeypatch.setattr(ask_model, "get_provider", lambda _provider: stage.driver)
    stage.set_price(input_per_mtok=1, output_per_mtok=1)
    limits = BudgetLimits(monthly_usd=Decimal(500))
    set_budgets(functions["api"], stage.caller, Budgets(tenant=limits, users={stage.caller.user: limits}))
    for _ in range(2):
        stage.script_replies("In Bern.")
        asked = GenerateRequest((("user", "Where?"),), credential=stage.credential.id, model="model-1")
        assert answer_generate_request(functions["credentials"], stage.caller, asked)["text"] == "In Bern."


def test_an_upload_is_presigned_by_one_function_and_read_by_two(
    resources: Resources, at: StageOf, functions: dict[str, Any]
) -> None:
    caller, raw = functions["stage"].caller, b'{"page": {"id": "p"}}'
    upload = announce_test_upload(functions["api"], "snapshot", raw)
    uploads.presign_upload(functions["api"], caller, upload)
    for function in ("stream_turns", "tool_result"):
        with pytest.raises(NotFound):
            uploads.fetch_upload(functions[function], caller, upload)
    ref = put_upload(resources_of_new_process(resources), caller, "snapshot", raw)
    used = [
        uploads.fetch_upload(functions[function], caller, uploads.parse_upload_ref(ref, "snapshot"))
        for function in ("stream_turns", "tool_result")
    ]
    assert used == [raw, raw]
    shown = put_upload(resources_of_new_process(resources), caller, "image", make_image())
    at("stream_turns").start_turn("Look", pictures=(ImageBlock(mime_type="image/jpeg", blob=shown),))
    at("round").script_replies(reply_with_calls(tool_call_block("render_snapshot")), "I see.")
    at("round").run_workflow()
    screenshot = {"mimeType": "image/png", "data": to_base64(make_image(kind="PNG"))}
    at("tool_result").answer_request(
        {"ok": True, "images": [screenshot]}, at("stream_turns").tool_requests()[-1].request_id
    )
    assert at("round").run_workflow() == "finished"


def test_a_server_with_an_api_key_is_admitted_by_every_function_over_http(
    resources: Resources, functions: dict[str, Any], clock: TestClock
) -> None:
    manager = functions["stage"].caller.model_copy(update={"capabilities": frozenset({"ai.chat", "ai.keys.manage"})})
    key, text = api_key_store.create_api_key(functions["credentials"], manager, "Importer", ["ai.chat"])
    _, text = api_key_store.rotate_api_key(functions["credentials"], manager, key.id)
    for function in ("stream_turns", "tool_result", "api", "credentials", "redraw_images"):
        caller = authenticate_api_key(functions[function], text)
        assert caller.user == key.user
        if function != "tool_result":
            record_api_key_use(functions[function], caller)
    assert read_api_key_uses(functions["credentials"], manager.tenant)
    api_key_store.revoke_api_key(functions["credentials"], manager.tenant, key.id)
    clock.advance(31 * 86_400)
    api_key_store.create_api_key(functions["credentials"], manager, "Importer", ["ai.chat"])
    assert len(api_key_store.list_api_keys(functions["credentials"], manager.tenant)) == 1


def test_a_key_of_the_conversation_api_is_made_admitted_counted_and_asked_by_tools(functions: dict[str, Any]) -> None:
    space = SpaceKey("bakery", "shop")
    create_space(functions["api"], space, ContentSpace(), ContentAuthor("ada"))
    put_model(functions["api"], space, {"id": "recipe", "kind": "collection"}, ContentAuthor("ada"))
    rights = frozenset({"ai.chat", "ai.keys.manage", "ai.content.manage"})
    manager = functions["stage"].caller.model_copy(update={"capabilities": rights})
    body = NewConversationKeyRules.model_validate({"project": space.name, "models": ["recipe"], "locales": ["en"]})
    rules = build_key_rules(functions["credentials"], "bakery", body)
    key, text = create_conversation_key(functions["credentials"], manager, "Site", rules)
    change_conversation_key(functions["credentials"], manager, key.id, lambda rules: rules, label="Shop")
    assert authenticate_conversation_key(functions["stream_turns"], text).user == key.user
    month = MonthlyMessages(functions["stream_turns"], "bakery", key.user, Subscription(), "api", own_limit=1)
    month.require_room()
    functions["stream_turns"].tables.write_items(*month.build_writes())
    for function in ("stream_turns", "round"):
        asking = read_asking_key(functions[function], space, key.user)
        assert asking is not None
        assert asking.rules == rules


def test_files_of_a_project_come_by_upload_and_variations_from_a_session(
    resources: Resources, functions: dict[str, Any]
) -> None:
    caller, credentials = functions["stage"].caller, functions["credentials"]
    ref = put_upload(resources_of_new_process(resources), caller, "snapshot", b"{}")
    assert uploads.fetch_upload(credentials, caller, uploads.parse_upload_ref(ref, "snapshot")) == b"{}"
    session = conversation_store.create_conversation(functions["api"], caller, "planner", None, None, "m")
    assert conversation_store.get_conversation(credentials, caller, session.id).scope == "planner"
    assert load_draft(credentials, DraftLocation(caller.tenant, session.id)).order == ()


@pytest.mark.parametrize("kind", ["conversation", "user", "tenant"])
def test_data_is_exported_and_erased_on_request(
    resources: Resources, functions: dict[str, Any], clock: TestClock, kind: SubjectKind
) -> None:
    stage: Stage = functions["stage"]
    stage.resources = resources
    fill_tenant(resources, stage)
    count_ledger(resources)
    names = {"conversation": stage.conversation.id, "user": stage.caller.user, "tenant": stage.caller.tenant}
    subject = DataSubject(kind=kind, tenant=stage.caller.tenant, id=names[kind])
    export = create_privacy_job(functions["credentials"], "export", subject)
    run_open_jobs(functions["purge"])
    done = get_privacy_job(functions["credentials"], subject.tenant, export.id, "export")
    functions["credentials"].guard.check_permission(NeededPermission("s3:GetObject", f"Bucket/{done.parts[0]}"))
    erasure = create_privacy_job(functions["credentials"], "erasure", subject)
    for _ in range(3):  # a turn that ends in the first pass gives its place in the tenant's counts back
        run_open_jobs(functions["purge"])
        clock.advance(SETTLING_SECONDS)
    assert get_privacy_job(functions["credentials"], subject.tenant, erasure.id, "erasure").state == "done"


def test_credentials_and_defaults_are_managed(functions: dict[str, Any]) -> None:
    stage, vault, other = functions["stage"], functions["credentials"], functions["api"]
    made = credential_store.create_credential(vault, stage.caller, "anthropic", "apiKey", "second", "sk-ant-2")
    credential_store.update_credential(vault, stage.caller, made.id, "renamed", "sk-ant-3")
    assert len(credential_store.list_credentials(vault, stage.caller)) == 2
    assert find_existing_ids(other, stage.caller.tenant, [made.id, "gone"]) == {made.id}
    scope_defaults.set_default(other, stage.caller, "site", made.id, "model-1")
    assert scope_defaults.get_defaults_view(other, stage.caller.tenant)
    scope_defaults.clear_default(other, stage.caller, "site")
    credential_store.delete_credential(vault, stage.caller, made.id)


def test_a_credential_is_tested_and_sets_defaults_lists_models_and_shows_its_last_use(
    resources: Resources, functions: dict[str, Any]
) -> None:
    caller = functions["stage"].caller
    with run_model_list_server() as server:
        server.set_response("/v1/models", {"data": [{"id": "claude-opus-5"}]})
        urls = {"provider_urls": json.dumps({"anthropic": server.url})}
        vault = with_settings(functions["credentials"], resources.settings.model_copy(update=urls))
        made = credential_store.create_credential(vault, caller, "anthropic", "apiKey", "second", server.key)
        initial_defaults.set_missing_defaults(vault, caller, made)
        assert model_list.try_credential(vault, caller, made.id) == {"ok": True, "modelCount": 1}
        assert model_list.list_credential_models(vault, caller, "anthropic", made.id)
    assert scope_defaults.get_defaults_view(functions["api"], caller.tenant)["site"]["modelId"] == "claude-opus-5"
    last_used.record_use(functions["round"], caller.tenant, made.id)
    assert get_credential_view(vault, made)["lastUsedAt"]


def test_the_catalogue_is_refreshed(resources: Resources, functions: dict[str, Any]) -> None:
    with run_fixed_response_server() as server:
        server.body = b'{"data":[{"id":"openai/gpt-5","pricing":{"prompt":"0.1","completion":"0.2"}}]}'
        settings = resources.settings.model_copy(update={"catalogue_url": server.url})
        refresh = with_settings(functions["refresh_prices"], settings)
        assert catalogue_refresh.refresh_catalogue(refresh).outcome == "fetched"


def test_conversations_are_made_listed_shown_changed_and_deleted(at: StageOf) -> None:
    taken = ImageBlock(mime_type="image/jpeg", data=to_base64(make_image()))
    at("stream_turns").start_turn(LARGE, pictures=(taken,))
    at("round").script_replies(LARGE)
    at("round").run_workflow()
    stage = at("api")
    made = conversation_store.create_conversation(stage.resources, stage.caller, "site", "Another", None, "model-1")
    assert (
        len(conversation_store.list_conversations(stage.resources, stage.caller, "site", limit=10).conversations) == 2
    )
    assert (
        conversation_store.update_conversation(stage.resources, stage.caller, made.id, title="Renamed").title
        == "Renamed"
    )
    shown = conversation_store.get_conversation(stage.resources, stage.caller, stage.conversation.id)
    lines = message_views.read_message_page(stage.resources, shown, "fermata").lines
    stage = at("stream_turns")
    raw, kind = message_views.read_message_image(stage.resources, shown, lines[0]["id"], "1")
    assert (open_image(raw).size, kind) == ((40, 30), "image/jpeg")
    at("stream_turns").start_turn()
    stage = at("api")
    cancel_active_turn(stage.resources, conversation_store.delete_conversation(stage.resources, stage.caller, shown.id))
    assert at("stream_turns").event_types()[-1] == "cancelled"


def test_budgets_hold_across_the_end_of_a_month_and_the_ledger_is_counted_and_audited(
    resources: Resources, at: StageOf, functions: dict[str, Any], clock: TestClock
) -> None:
    stage: Stage = functions["stage"]
    stage.set_price(input_per_mtok=3, output_per_mtok=15)
    clock.now = datetime.fromisoformat("2027-01-31T23:59:50Z").timestamp()
    limits = BudgetLimits(daily_usd=Decimal(10))
    set_budgets(functions["api"], stage.caller, Budgets(tenant=limits, users={stage.caller.user: limits}))
    turn = at("stream_turns").start_turn()
    at("round").script_replies(
        reply_with_calls(tool_call_block("insertHtml", parentId="p", html="<p></p>")),
        [make_provider_error(retryable=False)],
    )
    at("round").run_workflow()
    clock.advance(30)
    request = at("stream_turns").tool_requests()[-1].request_id
    at("tool_result").answer_request(OK, request)
    assert at("round").run_workflow() == "finished"
    rows = list(ledger_store.read_ledger_rows(resources, turn.tenant, "2027-01", "2027-03"))
    assert (
        count_stream_records(
            functions["rollup"], [LedgerStreamRecord(str(number), row) for number, row in enumerate(rows)]
        )
        == ""
    )
    shown = audit_usage(functions["api"], turn.tenant, rows[0]["at"], "Asia/Kolkata", with_billable=True)
    assert shown["totals"]["costUsd"] > 0
    assert load_budget_status(functions["api"], turn.tenant)["tenant"]["today"]["heldUsd"] == 0


def test_deleted_conversations_are_purged(at: StageOf, functions: dict[str, Any], clock: TestClock) -> None:
    at("stream_turns").start_turn(LARGE)
    at("round").script_replies(LARGE)
    at("round").run_workflow()
    stage = at("api")
    conversation_store.delete_conversation(stage.resources, stage.caller, stage.conversation.id)
    clock.advance(31 * 86_400)
    assert purge_deleted_conversations(functions["purge"]) == 1


@pytest.mark.parametrize(
    ("function", "routes", "method", "path"),
    [
        ("stream_turns", stream_turns.router.routes, "GET", "/admin/api/ai/bridges/none/events"),
        ("tool_result", tool_result.router.routes, "POST", "/admin/api/ai/tool-result"),
        ("api", api.router.routes, "GET", "/admin/api/ai/defaults"),
        ("credentials", credentials.router.routes, "GET", "/admin/api/ai/credentials"),
        ("redraw_images", redraw_images.router.routes, "POST", "/admin/api/ai/assets/shop/live"),
    ],
)
def test_every_function_behind_the_api_can_authenticate_its_caller(
    resources: Resources,
    functions: dict[str, Any],
    function: str,
    routes: Routes,
    method: str,
    path: str,
) -> None:
    bakery = make_tenant(resources_of_new_process(resources), origins=["https://bakery.example"])
    headers = bakery.bearer_headers() | {"origin": "https://bakery.example"}
    answer = handle_request(
        functions[function], routes, HttpRequest(id="r", method=method, path=path, headers=headers, body=b"{}")
    )
    assert answer.status not in (401, 403, 500)
    preflight = HttpRequest(id="r", method="OPTIONS", path=path, headers={"origin": "https://bakery.example"})
    assert handle_request(functions[function], routes, preflight).status == 204
