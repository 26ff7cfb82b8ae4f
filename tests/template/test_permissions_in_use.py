"""Every function does its work with the permissions that the template gives it, and uses all of them."""

import json
import queue
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from fermata.agents.approval_policy import ApprovalPolicy, PolicyRule
from fermata.agents.definitions.definition_store import (
    get_definition_view,
    read_agent_list,
    remove_agent,
    replace_agents,
)
from fermata.agents.definitions.tenant_secrets import remove_secret, set_secret
from fermata.agents.policy_store import set_policy
from fermata.aws import uploads
from fermata.aws.message_queue import MessageQueue
from fermata.aws.resources import Resources
from fermata.aws.vector_bucket import VectorBucket
from fermata.client_protocols.chat_conversations import open_chat
from fermata.client_protocols.client_messages import ClientAnswer
from fermata.client_protocols.continue_turn import ClientTurn
from fermata.client_protocols.conversation_keys import build_key_rules
from fermata.client_protocols.openai_conversations import (
    find_response_conversation,
    open_transcript_conversation,
    store_transcript,
)
from fermata.client_protocols.openai_transcript import TranscriptMessage
from fermata.content.asking_key import read_asking_key
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
from fermata.content.media.sweep_media import media_folder
from fermata.content.model_store import create_space, put_model
from fermata.content.outbox import ChangeSetStep, ContentChange
from fermata.content.search.search_catalogue import forget_catalogues
from fermata.content.search.search_index import (
    IndexSettings,
    TextEmbedder,
    index_documents,
    set_index_settings,
)
from fermata.content.search.search_space import search_space
from fermata.content.space_members import SpaceMember, delete_member_list, put_member
from fermata.content.sweep_spaces import sweep_due_spaces
from fermata.conversations import conversation_store, message_store, message_views
from fermata.conversations.purge import purge_deleted_conversations
from fermata.credentials import credential_store, initial_defaults, last_used, model_list, scope_defaults
from fermata.domain.blocks import AudioBlock, ImageBlock, TextBlock
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import NotFound
from fermata.domain.messages import Message
from fermata.domain.one_shot_generation import GenerateRequest
from fermata.domain.workspace_plan import Subscription
from fermata.hosts import registry
from fermata.limits.monthly_messages import MonthlyMessages
from fermata.plans.drafts.draft_history import import_pages
from fermata.plans.drafts.draft_rows import LOG_LENGTH, DraftLocation
from fermata.plans.drafts.draft_store import load_draft
from fermata.plans.page_model import Page
from fermata.plans.submit_plan import apply_submitted_operations
from fermata.pricing import catalogue_refresh
from fermata.privacy.data_subject import DataSubject, SubjectKind
from fermata.privacy.erase_space import make_space_subject
from fermata.privacy.erasure import SETTLING_SECONDS
from fermata.privacy.privacy_job import create_privacy_job, get_privacy_job
from fermata.privacy.run_jobs import run_open_jobs
from fermata.remote_tools.tool_registry import ToolChange, change_tool, list_registered_tools, register_tool
from fermata.signed_requests.signature import sign_request
from fermata.turns.answer.result_tokens import issue_callback_token, open_callback_token
from fermata.turns.answer.submit_remote_result import RemoteResult, submit_remote_result
from fermata.turns.approvals.approval_answer import ApprovalAnswer
from fermata.turns.approvals.approval_record import ApprovalRecord
from fermata.turns.approvals.decide_approval import decide_approval
from fermata.turns.approvals.decide_held_plan import apply_held_plan
from fermata.turns.approvals.list_approvals import get_approval, list_waiting_approvals
from fermata.turns.approvals.list_decisions import list_decisions
from fermata.turns.end.stop_turn import cancel_turn
from fermata.turns.generate import ask_model
from fermata.turns.generate.answer_request import answer_generate_request
from fermata.turns.generate.embed_texts import INDEXING_USER
from fermata.turns.index_content import index_content_change
from fermata.turns.prompt_queue import change_queue
from fermata.turns.prompt_queue.change_queue import edit_queued_prompt
from fermata.turns.prompt_queue.enqueue_prompt import start_or_enqueue
from fermata.turns.prompt_queue.queued_prompt import QueuedPrompt
from fermata.turns.prompt_queue.start_queued_prompt import start_next_prompt, start_queued_prompts
from fermata.turns.read.follow_log import LogPoller, read_entries_after
from fermata.turns.read.journal_pages import get_journal_page
from fermata.turns.recover.recover_open_turns import recover_open_turns
from fermata.turns.recover.recover_turn import recover_turn
from fermata.turns.start.commit_start import StartedTurn
from fermata.turns.start.conversation_claim import cancel_active_turn
from fermata.turns.start.start_turn import start_turn
from fermata.turns.turn_agent import open_turn_agent
from fermata.turns.webhooks.deliver_entry import deliver_queued_entry
from fermata.turns.webhooks.deliver_message import deliver_webhook_message
from fermata.turns.webhooks.outbox import resend_outbox
from fermata.turns.webhooks.queue_content_events import queue_change_set_step, queue_content_change
from fermata.turns.webhooks.queued_entry import QueuedEntry
from fermata.usage.audit.audit_from_rollups import audit_usage
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from fermata.usage.budgets.budget_status import load_budget_status
from fermata.usage.ledger import ledger_store
from fermata.usage.rollups.stream_consumer import LedgerStreamRecord, count_stream_records
from fermata.webhooks.redeliver_event import list_webhook_deliveries, redeliver_event
from fermata.webhooks.webhook_event import WebhookEvent
from fermata.webhooks.webhook_registry import add_webhook
from fermata.wire.auth import api_key_store
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
from tests.agent_definitions import make_definition, push_definitions, start_agent_turn
from tests.fixed_response_server import run_fixed_response_server
from tests.images import make_image, open_image, to_base64
from tests.recordings import WAV, encode_recording
from tests.resources import TestClock, resources_of_new_process
from tests.scripted_host import scripted_host
from tests.scripted_tool_server import run_scripted_tool_server
from tests.strict.model_lists import run_model_list_server
from tests.strict.s3_vectors import BUCKET_ARN, S3VectorsServer, run_s3_vectors_server
from tests.strict.transcription import run_transcription_server
from tests.template import iam
from tests.template.iam import Role, Statement
from tests.template.permission_guard import GuardedResources, NeededPermission, guard_resources
from tests.template.templates import Template
from tests.tenant_tokens import make_tenant
from tests.unit.plans.page_samples import HOME
from tests.unit.privacy.filled_tenant import count_ledger, fill_tenant
from tests.unit.remote_tools.manifests import make_manifest_json
from tests.unit.turns.stage import (
    OK,
    Stage,
    as_posted_snapshot,
    make_provider_error,
    reply_with_calls,
    reply_with_text,
    tool_call_block,
)
from tests.unit.turns.sub_agents.sub_agent_stage import Family, ask
from tests.uploads import announce_test_upload, put_upload
from tests.waiting import BACKSTOP_SECONDS

pytestmark = pytest.mark.exhaustive

LARGE = "x" * 40_000
"""More than a row may have: it is stored in the bucket."""
SNAPSHOT = {"site": {"pages": []}, "page": {"id": "p"}, "filler": LARGE}
STREAM = ("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams")
OUTSIDE_THE_CODE = ("logs:", "xray:", "sqs:", *STREAM)
"""Actions of Lambda itself with the function's role."""
_ENDS_TURNS = "An erasure ends turns in any state: with a dead request, with text and calls to store, small or large."
UNUSED_PERMISSIONS: dict[tuple[str, str, str], str] = {
    ("purge", "dynamodb:GetItem", "PricingTable"): _ENDS_TURNS,
    ("purge", "dynamodb:PutItem", "ConversationsTable"): _ENDS_TURNS,
    ("purge", "s3:PutObject", "Bucket/turns/*"): _ENDS_TURNS,
    ("purge", "s3:PutObject", "Bucket/conversations/*"): _ENDS_TURNS,
}
"""Permissions that no code uses yet, and why they are kept."""
StageOf = Callable[[str], Stage]


@pytest.fixture(scope="module")
def usage() -> dict[str, Any]:
    """The permissions that all tests of this file needed, by function; and the names of these tests."""
    return {"needs": defaultdict(set), "tests": set()}


@pytest.fixture
def functions(
    resources: Resources,
    deployed: Template,
    monkeypatch: pytest.MonkeyPatch,
    usage: dict[str, Any],
    request: pytest.FixtureRequest,
) -> Iterator[dict[str, Any]]:
    """A stage, and guarded resources for each function. A call that was refused in a test fails it at the end."""
    stage = Stage(resources, monkeypatch)
    guarded = {
        function: guard_resources(resources, stage.workflow, role)
        for function, role in iam.roles_by_function(deployed).items()
    }
    yield {"stage": stage, **guarded}
    assert {
        function: guarded_resources.guard.refused
        for function, guarded_resources in guarded.items()
        if guarded_resources.guard.refused
    } == {}
    for function, guarded_resources in guarded.items():
        usage["needs"][function] |= guarded_resources.guard.requested
    usage["tests"].add(request.function.__name__)


@pytest.fixture
def at(functions: dict[str, Any]) -> StageOf:
    """Return the stage with the resources of a function: `at("round").run_workflow()`."""

    def seen(function: str) -> Stage:
        stage: Stage = functions["stage"]
        stage.resources = functions[function]
        return stage

    return seen


def test_a_turn_with_large_prompts_calls_and_answers(at: StageOf) -> None:
    turn = at("stream_turns").start_turn(LARGE, snapshot=SNAPSHOT, idempotency_key="once")
    at("stream_turns").start_turn(LARGE, snapshot=SNAPSHOT, idempotency_key="once")
    at("round").script_replies(
        reply_with_calls(tool_call_block("list_documents"), tool_call_block("insertHtml", parentId="p", html=LARGE)),
        LARGE,
    )
    assert at("round").run_workflow() == "waiting"
    assert at("api").show_turn()["status"] == "paused"
    request = at("stream_turns").tool_requests()[-1].request_id
    at("tool_result").answer_request({"ok": True, "data": LARGE}, request, snapshot=SNAPSHOT)
    at("tool_result").answer_request({"ok": True, "data": LARGE}, request)
    assert at("round").run_workflow() == "finished"
    assert read_entries_after(at("stream_turns").resources, turn, 0)


@pytest.mark.parametrize("function", ["api", "stream_turns", "round", "tool_result", "deliver_webhooks"])
def test_a_draft_changes_until_its_oldest_versions_are_deleted(at: StageOf, function: str) -> None:
    resources, location = at(function).resources, DraftLocation("bakery", f"draft-{function}")
    block = {"id": "b", "type": "CTA", "props": {}}
    import_pages(resources, location, (Page.from_wire({**HOME, "blocks": [block]}),), overwrite=False)
    for number in range(LOG_LENGTH + 2):
        operation = {"op": "update_props", "pageSlug": "/", "blockId": "b", "patch": {"title": str(number)}}
        apply_submitted_operations(resources, location, [operation], f"e{number}")
    apply_submitted_operations(resources, location, [operation], f"e{LOG_LENGTH + 1}")
    assert load_draft(resources, location).version == LOG_LENGTH + 3


def test_a_round_requests_the_tenants_own_content_system(
    resources: Resources, at: StageOf, functions: dict[str, Any]
) -> None:
    make_tenant(resources_of_new_process(resources), functions["stage"].caller.tenant)
    here = resources.settings.model_copy(update={"fermata_stage": "local"})
    functions["round"] = _with_settings(functions["round"], here)
    with scripted_host() as host:
        host.script_response("GET tables", {"tables": []})
        registry.register_host(Resources(here, resources.clock), functions["stage"].caller.tenant, host.url)
        at("stream_turns").start_turn()
        at("round").script_replies(reply_with_calls(tool_call_block("list_post_types")), "None.")
        assert at("round").run_workflow() == "finished"
        assert [request.path for request in host.requests] == ["tables"]
    assert NeededPermission("kms:Decrypt", "Key", "host-secret") in functions["round"].guard.requested


def test_a_remote_tool_is_registered_called_and_sends_its_result_later(
    resources: Resources, at: StageOf, functions: dict[str, Any], clock: TestClock
) -> None:
    make_tenant(resources_of_new_process(resources))
    caller, tools = functions["stage"].caller, functions["credentials"]
    for function in ("credentials", "round"):
        here = functions[function].settings.model_copy(update={"fermata_stage": "local"})
        object.__setattr__(functions[function], "settings", here)
    with run_scripted_tool_server() as vendor:
        vendor.script_answer({}, 202)
        stored = register_tool(tools, caller, make_manifest_json(), vendor.url, forwards_authorization=True)
        secret = stored.signing_secret or ""
        change_tool(tools, caller, "pim.getProduct", ToolChange(headers={"x-api-key": "k"}))
        clock.advance(tools.settings.turn_lifetime_seconds + 1)
        change_tool(tools, caller, "pim.getProduct", ToolChange(enabled=True))
        assert list_registered_tools(tools, caller.tenant)
        turn = at("stream_turns").start_turn(authorization="Bearer x")
        at("round").script_replies(reply_with_calls(tool_call_block("pim.getProduct")), "Done.")
        assert at("round").run_workflow() == "waiting"
    body = b"{}"
    headers = sign_request([secret], "msg_1", clock.time(), body)
    result = RemoteResult(caller.tenant, turn.id, "1.0.remote", {"title": "Bread"})
    submit_remote_result(functions["tool_result"], result, headers, body)
    assert at("round").run_workflow() == "finished"


def test_a_round_asks_other_agents_and_whoever_ends_one_lets_it_go_on(
    at: StageOf, functions: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    family = Family(functions["stage"], monkeypatch)
    at("stream_turns").start_turn()
    calls = [ask("data", LARGE), ask("content", "Two"), ask("data", "Three")]
    family.script("site", reply_with_calls(*calls), "Done.")
    family.script("data", LARGE)
    family.step(at("round").turn.id)
    first, second, third = family.children()
    family.step(first.id)
    cancel_turn(functions["api"], functions["stage"].caller, second.id)
    family.time_out(at("round").turn.id)
    recover_turn(functions["recover"], third.tenant, third.id, execution_number=1, has_execution_failed=True)
    family.run()
    assert family.is_over(functions["stage"].turn)


def test_an_agent_of_a_tenant_is_pushed_and_asked(resources: Resources, at: StageOf, functions: dict[str, Any]) -> None:
    make_tenant(resources_of_new_process(resources))
    caller, settings = functions["stage"].caller, functions["credentials"]
    set_secret(settings, caller, "ANTHROPIC_KEY", "sk-ant-secret")
    replace_agents(settings, caller, {"helper": make_definition()})
    assert get_definition_view(settings, caller.tenant, "helper")
    turn = start_agent_turn(at("stream_turns"), "helper")
    at("round").script_replies("Done.")
    assert at("round").run_workflow() == "finished"
    for function in ("tool_result", "recover", "deliver_webhooks"):
        assert open_turn_agent(functions[function], turn).id == "helper"
    remove_agent(settings, caller, "helper")
    remove_secret(settings, caller, "ANTHROPIC_KEY")


def test_the_messages_of_an_openai_client_are_stored_and_found_again(at: StageOf, functions: dict[str, Any]) -> None:
    stream, caller = functions["stream_turns"], at("stream_turns").caller
    said = (TranscriptMessage("user", "Hi"), TranscriptMessage("assistant", "Hello."))
    imported = open_transcript_conversation(stream, caller, "site", said)
    assert len(message_store.load_messages(stream, caller.tenant, imported.id)) == 2
    turn = at("stream_turns").start_turn()
    at("round").script_replies("Hello.")
    at("round").advance_turn()
    store_transcript(stream, caller, turn, said)
    assert open_transcript_conversation(stream, caller, "site", said).id == turn.conversation
    assert find_response_conversation(stream, caller, "site", f"resp_{turn.id}", "b").id == turn.conversation
    assert read_agent_list(functions["tool_result"], caller.tenant).agents == {}


def _record_messages(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the messages that are queued from now on."""
    sent: list[Any] = []
    monkeypatch.setattr(MessageQueue, "send", lambda _self, message, delay_seconds=0: sent.append(message))
    return sent


def test_webhooks_are_registered_told_and_answer(
    resources: Resources, at: StageOf, functions: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tenant(resources_of_new_process(resources))
    caller, settings = may_also_approve(functions["stage"].caller), functions["credentials"]
    sent = _record_messages(monkeypatch)
    _run_locally_without_queue(functions)
    with run_scripted_tool_server() as receiver:
        receiver.script_answer({"result": {"ok": True, "data": LARGE}})
        webhook = add_webhook(settings, caller, receiver.url, (), may_answer=True).view["id"]
        at("stream_turns").start_turn()
        at("round").script_replies(
            reply_with_calls(*(tool_call_block("insertHtml", parentId="root", html=LARGE) for _ in range(2))), "Done."
        )
        assert at("round").run_workflow() == "waiting"
        for _ in range(2):
            deliver_queued_entry(functions["deliver_webhooks"], QueuedEntry.from_message(sent.pop()))
        assert at("round").run_workflow() == "finished"
        [delivery, *_] = list_webhook_deliveries(settings, caller, webhook)
        redeliver_event(settings, caller, webhook, delivery["id"])
    assert resend_outbox(functions["recover"]) == 0


def test_hooks_of_an_agent_are_called_while_a_turn_runs_and_before_it_ends(
    resources: Resources, at: StageOf, functions: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tenant(resources_of_new_process(resources))
    sent = _record_messages(monkeypatch)
    _run_locally_without_queue(functions)
    with run_scripted_tool_server() as server:
        definition = make_definition(
            credential=functions["stage"].credential.id,
            hooks={"onStart": ["log"], "onFinish": ["log"]},
            endpoints={"log": {"id": "log", "url": server.url, "headers": {"x-key": {"_secret": "KEY"}}}},
        )
        caller = functions["stage"].caller
        push_definitions(resources_of_new_process(resources), caller, definition)
        set_secret(resources_of_new_process(resources), caller, "KEY", "hook-secret")
        start_agent_turn(at("stream_turns"), "helper")
        at("round").script_replies(LARGE)
        assert at("round").run_workflow() == "finished"
        start_agent_turn(at("stream_turns"), "helper")
        at("stream_turns").cancel_turn()
        for message in sent:
            deliver_queued_entry(functions["deliver_webhooks"], QueuedEntry.from_message(message))
    paths = [call.headers["idempotency-key"].partition("/")[2] for call in server.calls]
    assert sorted(set(paths)) == ["finish/log", "start/log"]
    assert {call.headers["x-key"] for call in server.calls} == {"hook-secret"}


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


def test_a_webhook_decides_about_a_call(
    resources: Resources, at: StageOf, functions: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tenant(resources_of_new_process(resources))
    caller, settings = may_also_approve(functions["stage"].caller), functions["credentials"]
    sent = _record_messages(monkeypatch)
    _run_locally_without_queue(functions)
    with run_scripted_tool_server() as receiver:
        receiver.script_answer({"approved": True, "data": 1})
        register_tool(settings, caller, make_manifest_json(capability="write"), receiver.url)
        add_webhook(settings, caller, receiver.url, (WebhookEvent.APPROVAL_REQUEST,), may_answer=True)
        at("stream_turns").start_turn()
        at("round").script_replies(reply_with_calls(tool_call_block("pim.getProduct")), "Done.")
        assert at("round").run_workflow() == "waiting"
        deliver_queued_entry(functions["deliver_webhooks"], QueuedEntry.from_message(sent.pop()))
        assert at("round").run_workflow() == "finished"
    assert [call.body.get("toolName") for call in receiver.calls] == [None, "pim.getProduct"]


def _run_locally_without_queue(functions: dict[str, Any]) -> None:
    """Let all functions reach servers on this machine, and need no queue."""
    for function in functions.keys() - {"stage"}:
        here = functions[function].settings.model_copy(update={"fermata_stage": "local"})
        object.__setattr__(functions[function], "settings", here)
        functions[function].__dict__["webhook_queue"] = MessageQueue(None, "")


def test_a_server_answers_with_a_callback_token(at: StageOf, functions: dict[str, Any]) -> None:
    turn = at("stream_turns").start_turn()
    at("round").script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="n")), "Done.")
    assert at("round").run_workflow() == "waiting"
    token = issue_callback_token(functions["tool_result"], functions["stage"].caller, turn.id)
    grant = open_callback_token(functions["tool_result"], token.text)
    at("tool_result").answer_request(OK, caller=grant.caller)
    assert at("round").run_workflow() == "finished"


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
        caller = api_key_store.authenticate_api_key(functions[function], text)
        assert caller.user == key.user
        if function != "tool_result":
            api_key_store.record_api_key_use(functions[function], caller)
    assert api_key_store.read_last_uses(functions["credentials"], manager.tenant)
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


def test_files_of_a_project_come_by_upload_and_variations_from_a_session(
    resources: Resources, functions: dict[str, Any]
) -> None:
    caller, credentials = functions["stage"].caller, functions["credentials"]
    ref = put_upload(resources_of_new_process(resources), caller, "snapshot", b"{}")
    assert uploads.fetch_upload(credentials, caller, uploads.parse_upload_ref(ref, "snapshot")) == b"{}"
    session = conversation_store.create_conversation(functions["api"], caller, "planner", None, None, "m")
    assert conversation_store.get_conversation(credentials, caller, session.id).scope == "planner"
    assert load_draft(credentials, DraftLocation(caller.tenant, session.id)).order == ()


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
        consumer = _with_settings(functions["consume_content"], resources.settings.model_copy(update=here))
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
    sent = _record_messages(monkeypatch)
    _run_locally_without_queue(functions)
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


def test_a_recording_is_transcribed_before_its_turn_starts(resources: Resources, functions: dict[str, Any]) -> None:
    stage: Stage = functions["stage"]
    set_budgets(functions["api"], stage.caller, Budgets(tenant=BudgetLimits(monthly_usd=Decimal(500))))
    stage.set_price(input_per_mtok=1, output_per_mtok=1)
    with run_transcription_server() as server:
        here = {"fermata_stage": "local", "provider_urls": json.dumps({"openai": server.url})}
        settings = resources.settings.model_copy(update=here)
        stage.resources = functions["credentials"]
        made = credential_store.create_credential(stage.resources, stage.caller, "openai", "apiKey", "ears", server.key)
        stage.resources = resources
        conversation = conversation_store.create_conversation(resources, stage.caller, "site", None, made.id, "model-1")
        stage.resources = _with_settings(functions["stream_turns"], settings)
        stage.conversation = conversation
        server.script_text("Hello.", seconds=1)
        recording = AudioBlock(mime_type="audio/wav", data=encode_recording(WAV))
        for key in ("first", "first"):
            stage.start_turn("", pictures=(recording,), idempotency_key=key)
        assert len(server.sent) == 1


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


def test_several_calls_are_answered_one_by_one(at: StageOf) -> None:
    at("stream_turns").start_turn()
    at("round").script_replies(
        reply_with_calls(tool_call_block("deleteNode", nodeId="a"), tool_call_block("deleteNode", nodeId="b")), "Gone."
    )
    at("round").run_workflow()
    for _ in range(2):
        request = at("stream_turns").tool_requests()[-1].request_id
        at("tool_result").answer_request(OK, request)
    assert at("round").run_workflow() == "finished"


@pytest.mark.parametrize("ends", ["done", "cancel", "recover"])
def test_an_undo_of_edits(at: StageOf, functions: dict[str, Any], clock: TestClock, ends: str) -> None:
    turn = at("stream_turns").start_turn(revision="1")
    at("round").script_replies(
        reply_with_calls(tool_call_block("deleteNode", nodeId="a"), tool_call_block("deleteNode", nodeId="b")), "Gone."
    )
    at("round").run_workflow()
    back = {"tool": "restore", "input": {"patch": {"html": LARGE}}}
    for revision in ("2", "3"):
        at("tool_result").answer_request(OK | {"inverse": back, "revision": revision})
    at("round").run_workflow()
    at("stream_turns").start_undo(turn, idempotency_key="once")
    at("stream_turns").start_undo(turn, idempotency_key="once")
    at("round").run_workflow()
    at("tool_result").answer_request({"ok": True, "inverse": back, "revision": "4"})
    at("round").run_workflow()
    _end(at, clock, ends)
    assert len(get_journal_page(functions["api"], at("api").caller, turn.id)["entries"]) == 2
    assert at("stream_turns").event_types()[-1] in ("done", "cancelled", "error")


def _end(at: StageOf, clock: TestClock, ends: str) -> None:
    if ends == "done":
        at("tool_result").answer_request({"ok": False, "conflict": True, "error": LARGE, "revision": "9"})
        assert at("round").run_workflow() == "finished"
    elif ends == "cancel":
        at("api").cancel_turn()
    else:
        clock.advance(60)
        at("recover").recover_turn(execution_number=1, has_execution_failed=True)


def test_a_long_wait_is_held_and_answered(resources: Resources, at: StageOf, functions: dict[str, Any]) -> None:
    at("stream_turns").start_turn()
    patient = resources.settings.model_copy(update={"browser_wait_seconds": 3600})
    functions["round"] = _with_settings(functions["round"], patient)
    functions["store_hold_token"] = _with_settings(functions["store_hold_token"], patient)
    at("round").script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="p", html=LARGE)), "Done.")
    wake = at("round").advance_turn()
    output = at("round").workflow.outputs[wake.token]
    assert output["next"] == "hold"
    held = at("store_hold_token").advance_turn(holds=True, hint=output["hint"])
    assert held.token not in at("store_hold_token").workflow.outputs
    request = at("stream_turns").tool_requests()[-1].request_id
    at("tool_result").answer_request(OK, request)
    assert at("round").run_workflow() == "finished"


@pytest.mark.parametrize("outcome", ["approved", "denied", "expired", "cancelled"])
def test_a_call_waits_for_a_person(at: StageOf, functions: dict[str, Any], clock: TestClock, outcome: str) -> None:
    """Its input and its result are large, and the tool is new to the tenant."""
    policy = ApprovalPolicy(rules=(PolicyRule(effect="ask"),), new_tools=True)
    set_policy(functions["credentials"], at("api").caller, policy)
    at("stream_turns").start_turn()
    at("round").script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="p", html=LARGE)), "Done.")
    wake = at("round").advance_turn()
    held = at("store_hold_token").advance_turn(holds=True, hint=at("round").workflow.outputs[wake.token]["hint"])
    approver = at("api").caller
    [listed] = list_waiting_approvals(functions["tool_result"], approver, "", 50).approvals
    assert get_approval(functions["tool_result"], approver, listed.id)["input"]["html"] == LARGE
    if outcome == "expired":
        clock.advance(8 * 86_400)
        at("store_hold_token").advance_turn(holds=True)
    elif outcome == "cancelled":
        at("api").cancel_turn()
        return
    else:
        answer = ApprovalAnswer(is_approved=outcome == "approved", reason="x")
        assert decide_approval(functions["tool_result"], approver, listed.id, answer).state == outcome
    assert held.token
    if outcome == "approved":
        at("tool_result").answer_request(OK)
    assert at("round").run_workflow() == "finished"


def test_a_chat_client_decides_and_answers_where_it_is_streamed_to(at: StageOf, functions: dict[str, Any]) -> None:
    stream, editor = functions["stream_turns"], at("api").caller
    approver = editor.model_copy(update={"capabilities": editor.capabilities | {"ai.tools.approve"}})
    set_policy(functions["credentials"], editor, ApprovalPolicy(rules=(PolicyRule(effect="ask"),)))
    open_chat(stream, editor, "site", "a name")
    turn = at("stream_turns").start_turn(LARGE, snapshot=SNAPSHOT, protocol="ui")
    insert = tool_call_block("insertHtml", parentId="p", html=LARGE)
    at("round").script_replies(reply_with_calls(insert), "Done.")
    wake = at("round").advance_turn()
    at("store_hold_token").advance_turn(holds=True, hint=at("round").workflow.outputs[wake.token]["hint"])
    waiting = ClientTurn(stream, approver, turn)
    approval = next(call.approval for call in waiting.fold.calls.values() if call.approval)
    waiting.apply([ClientAnswer(insert.tool_call_id, approval_id=approval.approval_id, is_approved=True)])
    snapshot = as_posted_snapshot(SNAPSHOT)
    answered = ClientTurn(stream, approver, turn, snapshot)
    answered.apply([ClientAnswer(insert.tool_call_id, output={"ok": True, "data": LARGE})])
    assert at("round").run_workflow() == "finished"


@pytest.mark.parametrize("starter", ["stream_turns", "recover"])
def test_a_queued_prompt_is_edited_and_starts_after_its_turn(
    resources: Resources, at: StageOf, functions: dict[str, Any], starter: str
) -> None:
    set_budgets(functions["api"], at("api").caller, Budgets(tenant=BudgetLimits(monthly_usd=Decimal(500))))
    functions["stage"].resources = resources
    functions["stage"].set_price(input_per_mtok=3, output_per_mtok=15)
    stage = at("stream_turns")
    start = partial(start_turn, stage.resources, stage.caller)
    started = start_or_enqueue(stage.resources, stage.caller, stage.make_prompt("First"), start)
    assert isinstance(started, StartedTurn)
    stage._turn, stage._waiting_token = started.turn, ""
    at("round").script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="p", html="<p></p>")), "Done.")
    at("round").run_workflow()
    stage = at("stream_turns")
    prompt = stage.make_prompt("Second", snapshot=SNAPSHOT)
    queued = start_or_enqueue(stage.resources, stage.caller, prompt, start)
    assert isinstance(queued, QueuedPrompt)
    ids = (functions["tool_result"], stage.caller, stage.conversation.id, queued.id)
    edit_queued_prompt(*ids, text=LARGE, version=1)
    assert change_queue.list_prompt_views(*ids[:3])[0]["state"] == "waiting"
    at("tool_result").answer_request(OK)
    assert at("round").run_workflow() == "finished"
    if starter == "recover":
        assert start_queued_prompts(functions["recover"], "2099-01-01T00:00:00.000Z") == 1
    else:
        assert start_next_prompt(functions["stream_turns"], stage.caller.tenant, stage.conversation.id) is not None


@pytest.mark.parametrize("decider", ["tool_result", "deliver_webhooks", "stream_turns", "api"])
def test_a_plan_waits_for_a_person(at: StageOf, functions: dict[str, Any], decider: str) -> None:
    """It has replaced an older one."""
    stage, resources = at("stream_turns"), functions["api"]
    stage.conversation = conversation_store.create_conversation(
        resources, stage.caller, "planner", None, stage.credential.id, "model-1"
    )
    location = DraftLocation(stage.caller.tenant, stage.conversation.id)
    import_pages(resources, location, (Page.from_wire(HOME),), overwrite=False)
    for title in ("First", "Second"):
        listed = _hold_plan(at, functions, title)
    assert get_approval(functions["tool_result"], stage.caller, listed.id)["plan"] is not None
    if decider in ("stream_turns", "api"):
        apply_held_plan(functions[decider], stage.caller, location, listed.plan_id)
    else:
        decide_approval(functions[decider], stage.caller, listed.id, ApprovalAnswer(is_approved=True))
    assert list_decisions(functions["tool_result"], stage.caller, "", 50).decisions[0]["outcome"] == "approved"


def _hold_plan(at: StageOf, functions: dict[str, Any], title: str) -> ApprovalRecord:
    stage = at("stream_turns")
    prompt = replace(stage.make_prompt("Plan"), scope="planner", snapshot=as_posted_snapshot({"onlyPlan": True}))
    stage._turn = start_turn(functions["stream_turns"], stage.caller, prompt).turn
    operation = {"op": "update_page_meta", "pageSlug": "/", "patch": {"title": title}}
    call = tool_call_block("submit_edit_plan", summary_for_user="Done.", ops=[operation])
    at("round").script_replies(reply_with_calls(call))
    assert at("round").run_workflow() == "finished"
    stage.clock.advance(1)
    [listed] = list_waiting_approvals(functions["tool_result"], stage.caller, "", 50).approvals
    return listed


def may_also_approve(caller: Caller) -> Caller:
    return caller.model_copy(update={"capabilities": caller.capabilities | {Capability.APPROVE, Capability.WRITE}})


def _with_settings(function: GuardedResources, settings: Any) -> GuardedResources:
    changed = GuardedResources(settings, function.clock, function.guard)
    changed.__dict__["workflow"] = function.workflow
    return changed


def test_a_hold_that_comes_after_the_end_lets_the_execution_finish(at: StageOf) -> None:
    at("stream_turns").start_turn()
    at("round").script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="p", html="<p></p>")))
    at("round").run_workflow()
    at("api").cancel_turn()
    held = at("store_hold_token").advance_turn(holds=True)
    assert at("store_hold_token").workflow.outputs[held.token]["next"] == "finish"


@pytest.mark.parametrize("ends", ["answer", "cancel", "recover"])
def test_a_round_of_very_many_calls_is_held_and_ends(
    at: StageOf,
    functions: dict[str, Any],
    clock: TestClock,
    ends: str,
) -> None:
    turn = at("stream_turns").start_turn()
    at("round").script_replies(
        reply_with_calls(*[tool_call_block("deleteNode", nodeId=f"n{number}") for number in range(400)])
    )
    at("round").run_workflow()
    at("store_hold_token").advance_turn(holds=True)
    if ends == "answer":
        request = at("stream_turns").tool_requests()[-1].request_id
        at("tool_result").answer_request(OK, request)
        return
    if ends == "cancel":
        at("api").cancel_turn()
    else:
        clock.advance(60)
        at("stream_turns").workflow.states[turn.id, 1] = ("FAILED", "TurnFailed")
        recover_open_turns(functions["recover"])
    assert at("stream_turns").event_types()[-1] in ("cancelled", "error")


def test_an_unanswered_request_ends_the_turn(at: StageOf, clock: TestClock) -> None:
    at("stream_turns").start_turn()
    at("round").script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="p", html="<p></p>")))
    at("round").run_workflow()
    clock.advance(120)
    assert at("round").run_workflow() == "finished"
    assert at("stream_turns").event_types()[-1] == "error"


def test_a_cancel_during_a_model_request_ends_the_turn_and_is_billed(at: StageOf, functions: dict[str, Any]) -> None:
    turn = at("stream_turns").start_turn()
    caller = at("stream_turns").caller
    said, reply = reply_with_text(LARGE)
    at("round").script_replies([said, lambda: cancel_turn(functions["api"], caller, turn.id), reply])
    at("round").advance_turn()
    assert at("stream_turns").event_types()[-1] == "cancelled"


def test_a_cancel_while_the_browser_works_resumes_the_workflow(at: StageOf) -> None:
    at("stream_turns").start_turn()
    at("round").script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="p", html=LARGE)))
    at("round").run_workflow()
    assert at("api").cancel_turn() == "cancelled"


def test_a_new_prompt_takes_over_from_a_turn_during_a_model_request(at: StageOf, clock: TestClock) -> None:
    at("stream_turns").start_turn(dialect="instatic")
    said, reply = reply_with_text(LARGE)
    at("round").script_replies(
        [said, lambda: clock.advance(5), lambda: at("stream_turns").start_turn("And now?", dialect="instatic"), reply],
        "Second.",
    )
    at("round").advance_turn()
    assert at("round").run_workflow() == "finished"


def test_a_new_prompt_takes_over_from_a_turn_that_waits_for_its_browser(at: StageOf, clock: TestClock) -> None:
    at("stream_turns").start_turn(dialect="instatic")
    at("round").script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="p", html="<p></p>")))
    at("round").run_workflow()
    clock.advance(5)
    assert at("stream_turns").start_turn("And now?", dialect="instatic")


def test_a_prompt_goes_behind_messages_that_are_not_counted(resources: Resources, at: StageOf) -> None:
    conversation = at("stream_turns").conversation
    message = Message(position=0, role="user", content=(TextBlock(text="Hi"),), turn="expired", created_at="2026-01-01")
    put = message_store.build_message_put(resources, conversation.tenant, conversation.id, message)
    resources.tables.write_items(put)
    at("stream_turns").start_turn()
    at("round").script_replies("Done.")
    assert at("round").run_workflow() == "finished"


def test_a_reader_receives_new_entries(at: StageOf, clock: TestClock) -> None:
    turn = at("stream_turns").start_turn()
    entries: queue.Queue[Any] = queue.Queue()
    at("round").script_replies("Hello.")
    at("round").run_workflow()
    poller = LogPoller(at("stream_turns").resources)
    follower = poller.follow(turn, 2, entries.put)
    clock.advance(1)
    assert entries.get(timeout=BACKSTOP_SECONDS) is not None
    poller.unfollow(follower)


def test_a_prompt_restarts_a_stalled_turn(at: StageOf, clock: TestClock) -> None:
    at("stream_turns").start_turn()
    at("stream_turns").workflow.started.clear()
    clock.advance(60)
    with pytest.raises(Exception, match="already generating"):
        at("stream_turns").start_turn()
    assert at("stream_turns").workflow.started


def test_the_recovery_starts_continues_and_ends_turns(at: StageOf, functions: dict[str, Any], clock: TestClock) -> None:
    turn = at("stream_turns").start_turn()
    workflow = at("stream_turns").workflow
    workflow.started.clear()
    clock.advance(60)
    assert recover_open_turns(functions["recover"]) == 1
    workflow.states[turn.id, 1] = ("SUCCEEDED", "")
    said, reply = reply_with_text(LARGE)
    at("round").script_replies(
        [
            said,
            lambda: clock.advance(11),
            lambda: recover_open_turns(functions["recover"]),
            lambda: recover_turn(
                functions["recover"], turn.tenant, turn.id, execution_number=2, has_execution_failed=True
            ),
            reply,
        ]
    )
    at("round").advance_turn()
    assert (turn.id, 2) in workflow.started
    assert at("stream_turns").event_types()[-1] == "error"


def test_credentials_and_defaults_are_managed(functions: dict[str, Any]) -> None:
    stage, vault, other = functions["stage"], functions["credentials"], functions["api"]
    made = credential_store.create_credential(vault, stage.caller, "anthropic", "apiKey", "second", "sk-ant-2")
    credential_store.update_credential(vault, stage.caller, made.id, "renamed", "sk-ant-3")
    assert len(credential_store.list_credentials(vault, stage.caller)) == 2
    assert credential_store.find_existing_ids(other, stage.caller.tenant, [made.id, "gone"]) == {made.id}
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
        vault = _with_settings(functions["credentials"], resources.settings.model_copy(update=urls))
        made = credential_store.create_credential(vault, caller, "anthropic", "apiKey", "second", server.key)
        initial_defaults.set_missing_defaults(vault, caller, made)
        assert model_list.try_credential(vault, caller, made.id) == {"ok": True, "modelCount": 1}
        assert model_list.list_credential_models(vault, caller, "anthropic", made.id)
    assert scope_defaults.get_defaults_view(functions["api"], caller.tenant)["site"]["modelId"] == "claude-opus-5"
    last_used.record_use(functions["round"], caller.tenant, made.id)
    assert last_used.get_credential_view(vault, made)["lastUsedAt"]


def test_the_catalogue_is_refreshed(resources: Resources, functions: dict[str, Any]) -> None:
    with run_fixed_response_server() as server:
        server.body = b'{"data":[{"id":"openai/gpt-5","pricing":{"prompt":"0.1","completion":"0.2"}}]}'
        settings = resources.settings.model_copy(update={"catalogue_url": server.url})
        refresh = _with_settings(functions["refresh_prices"], settings)
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


def test_a_missing_permission_raises(resources: Resources, functions: dict[str, Any]) -> None:
    stage: Stage = functions["stage"]
    unprivileged = guard_resources(resources, stage.workflow, iam.Role("an empty role", ()))
    with pytest.raises(AssertionError, match="an empty role does not allow dynamodb:GetItem on ConversationsTable"):
        conversation_store.get_conversation(unprivileged, stage.caller, stage.conversation.id)
    with pytest.raises(AssertionError, match="states:StartExecution"):
        unprivileged.workflow.start_execution("bakery", "turn", 1)


def test_no_function_has_a_permission_that_it_does_not_use(deployed: Template, usage: dict[str, Any]) -> None:
    """An unused permission is removed, or its reason is in UNUSED_PERMISSIONS."""
    if usage["tests"] != {name for name in globals() if name.startswith("test_")} - {
        "test_no_function_has_a_permission_that_it_does_not_use"
    }:
        pytest.skip("needs the results of all tests of this file")
    unused = {
        (function, action, resource)
        for function, role in iam.roles_by_function(deployed).items()
        for statement in role.statements
        for action in statement.actions
        for resource in statement.resources
        if not action.startswith(OUTSIDE_THE_CODE)
        and not _is_used(usage["needs"][function], statement, action, resource)
    }
    assert unused == set(UNUSED_PERMISSIONS)


def _is_used(needs: set[NeededPermission], statement: Statement, action: str, resource: str) -> bool:
    alone = Role("one permission", (Statement((action,), (resource,), statement.equals),))
    return any(need.is_granted_by(alone) for need in needs)
