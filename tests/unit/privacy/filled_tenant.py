"""Fill a tenant with everything that it can create, and read everything that is stored, raw."""

import json
import zlib
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Any

from fermata.agents.approval_policy import ApprovalPolicy, PolicyRule
from fermata.agents.definitions.definition_store import replace_agents
from fermata.agents.definitions.tenant_secrets import set_secret
from fermata.agents.files.bundle_store import PushedFile, store_bundle
from fermata.agents.policy_store import set_policy
from fermata.aws.dynamodb_items_and_writes import Item, deserialize_item
from fermata.aws.resources import Resources
from fermata.content.content_space import ContentSpace, SpaceKey, list_spaces
from fermata.content.documents.change_document import create_document
from fermata.content.documents.document import ContentAuthor, DocumentContent
from fermata.content.files.read_project import read_whole_space
from fermata.content.files.space_snapshot import store_space_snapshot
from fermata.content.forms.captcha_keys import CaptchaService, put_captcha
from fermata.content.forms.submission import Submission, build_submission_puts, make_submission_id
from fermata.content.forms.submission_store import decide_submission
from fermata.content.git.git_remote import GitRemote, put_git_remote
from fermata.content.model_store import create_space
from fermata.content.publishing.delivery_token import issue_delivery_token
from fermata.content.search.search_index import IndexSettings, TextEmbedder, index_documents, set_index_settings
from fermata.content.space_members import SpaceMember, put_member
from fermata.conversations import conversation_store
from fermata.credentials import last_used, scope_defaults
from fermata.domain.blocks import ImageBlock
from fermata.domain.caller import Caller
from fermata.domain.events import ApprovalRequestedEvent
from fermata.domain.workspace_plan import Subscription
from fermata.hosts import registry
from fermata.limits.monthly_messages import MonthlyMessages
from fermata.planner_api.chat_store import store_chat
from fermata.planner_api.sessions import open_session
from fermata.plans.apply_plan import apply_submitted_operations
from fermata.plans.drafts.draft_history import import_pages, step_page
from fermata.plans.drafts.publishing import publish_draft
from fermata.plans.page_model import Page
from fermata.turns.answer.result_tokens import issue_callback_token
from fermata.turns.approvals.approval_answer import ApprovalAnswer
from fermata.turns.approvals.decide_approval import decide_approval
from fermata.turns.prompt_queue.change_queue import edit_queued_prompt
from fermata.turns.prompt_queue.enqueue_prompt import start_or_enqueue
from fermata.turns.prompt_queue.queued_prompt import QueuedPrompt
from fermata.turns.start.start_turn import start_turn
from fermata.turns.webhooks.delivery_slots import take_delivery_slot
from fermata.usage.audit.user_labels import store_user_label
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from fermata.usage.ledger.ledger_parsing import load_ledger_records
from fermata.usage.rollups import rollup_store
from fermata.webhooks.delivery import Delivery, store_attempt
from fermata.wire.auth.api_key_store import create_api_key
from fermata.wire.auth.authenticate_api_key import record_api_key_use
from tests.agent_definitions import make_definition
from tests.images import make_image, to_base64
from tests.resources import resources_of_new_process
from tests.tenant_tokens import make_tenant
from tests.unit.privacy.filled_workspace import (
    fill_workspace,
    leave_approval_waiting,
    leave_change_open,
    leave_editor_open,
    leave_plan_waiting,
    leave_transcript,
)
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block
from tests.uploads import put_upload

USER, NAME = "ada-7f3@people.example", "Ada Lovelace"
SECRETS_OF_ADA = ("my-prompt-is-private", "title-of-ada", "answer-to-ada", "page-of-ada", "result-for-ada")
LARGE = "page-of-ada " * 4_000
"""More than a row may have: it is stored in the bucket."""
SNAPSHOT = {"site": {"pages": []}, "page": {"id": "p", "title": "page-of-ada"}, "filler": LARGE}


def make_caller(user: str, name: str, tenant: str = "bakery") -> Caller:
    capabilities = (
        "ai.chat ai.tools.write ai.providers.manage ai.keys.manage site.read site.structure.edit site.style.edit"
    )
    return Caller(tenant=tenant, user=user, capabilities=frozenset(capabilities.split()), label=name)


ADA = make_caller(USER, NAME)
BEN = make_caller("ben-1c9@people.example", "Ben Franklin")


def fill_tenant(resources: Resources, stage: Stage) -> None:
    """Create tenant, keys, defaults, budgets, host, and for the stage's user all that a user leaves behind."""
    caller = stage.caller
    if not resources.tables.get_item(resources.settings.settings_table, f"t#{caller.tenant}", "tenant"):
        make_tenant(resources, caller.tenant)
        here = resources.settings.model_copy(update={"fermata_stage": "local"})
        registry.register_host(Resources(here, resources.clock), caller.tenant, "http://127.0.0.1:9/bakery-cms")
    stage.set_price(input_per_mtok=Decimal(3), output_per_mtok=Decimal(15))
    limits = BudgetLimits(daily_usd=Decimal(50), monthly_usd=Decimal(500))
    set_budgets(resources, caller, Budgets(tenant=limits, each_user=limits, users={caller.user: limits}))
    scope_defaults.set_default(resources, caller, "site", stage.credential.id, "model-1")
    last_used.record_use(resources, caller.tenant, stage.credential.id)
    key, _ = create_api_key(resources, caller, "Importer", ["ai.chat"])
    record_api_key_use(resources, key.to_caller())
    resources.tables.write_items(*MonthlyMessages(resources, caller.tenant, caller.user, Subscription()).build_writes())
    store_user_label(resources, caller)
    put_upload(resources, caller, "snapshot", b'{"page": "page-of-ada"}')
    store_bundle(resources, caller.tenant, [PushedFile("menu.md", b"Bread")])
    set_secret(resources, caller, "VENDOR_KEY", "key-of-the-vendor")
    replace_agents(resources, caller, {"helper": make_definition()})
    write_content(resources, caller)
    fill_workspace(resources, caller)
    leave_editor_open(resources, caller, LARGE)
    leave_transcript(resources, caller, stage.credential.id)
    conversation_store.create_conversation(resources, caller, "agent:helper", None, None, "")
    conversation_store.update_conversation(resources, caller, stage.conversation.id, title="title-of-ada")
    run_edited_turn(stage)
    run_approved_turn(stage)
    deleted = stage.new_conversation()
    run_edited_turn(stage)
    conversation_store.delete_conversation(resources, caller, deleted.id)
    edit_and_publish_draft(resources, caller)
    stage.new_conversation()
    leave_approval_waiting(stage)
    stage.new_conversation()
    leave_turn_open(stage)
    leave_prompts_waiting(resources, stage)


def write_content(resources: Resources, caller: Caller) -> None:
    """Write a document that is so large that it is stored in the bucket, and begin a change set."""
    space, author = SpaceKey(caller.tenant, "shop"), ContentAuthor(caller.user)
    if not list_spaces(resources, caller.tenant):
        create_space(resources, space, ContentSpace(), author)
    post = DocumentContent(title="Bread", slug="bread", locales={"en": {"body": "bread of the bakery " * 2_000}})
    written = create_document(resources, space, "post", author, post).version
    index_documents(resources, space, [written.key], TextEmbedder())
    set_index_settings(resources, space, IndexSettings())
    issue_delivery_token(resources, space, caller.user, "published")
    leave_change_open(resources, space, author)
    put_git_remote(resources, space, GitRemote(url="https://1.1.1.1/shop.git", username="ada"), "password-of-git")
    store_space_snapshot(resources, space, read_whole_space(resources, space))
    put_captcha(resources, space, CaptchaService.TURNSTILE, "public-key", "secret-of-captcha")
    put_member(resources, space, SpaceMember(caller.user, "editor"))
    leave_submission(resources, space, caller)


def leave_submission(resources: Resources, space: SpaceKey, caller: Caller) -> None:
    """Leave what a visitor has sent by a form, and the user has rejected."""
    now = resources.clock.time()
    sent = Submission(
        id=make_submission_id(now), model="post", data={"name": "Eve"}, created_at=resources.clock.now_iso()
    )
    table = resources.settings.content_table
    resources.tables.write_items(*build_submission_puts(table, space, sent))
    decide_submission(resources, space, sent, "rejected", caller.user)


def run_edited_turn(stage: Stage) -> None:
    picture = ImageBlock(mime_type="image/png", data=to_base64(make_image(kind="PNG")))
    stage.start_turn(
        "my-prompt-is-private", snapshot=SNAPSHOT, idempotency_key=stage.conversation.id, pictures=(picture,)
    )
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="p", html=LARGE)), "answer-to-ada")
    stage.run_workflow()
    inverse = {"tool": "restore", "input": {"patch": {"html": LARGE}}}
    stage.answer_request(OK | {"data": {"text": "result-for-ada"}, "inverse": inverse}, snapshot=SNAPSHOT)
    stage.run_workflow()


def run_approved_turn(stage: Stage) -> None:
    """Run a turn with a call that its own user approves, and leave another one that waits for a decision."""
    set_policy(stage.resources, stage.caller, ApprovalPolicy(rules=(PolicyRule(effect="ask"),)))
    call = tool_call_block("insertHtml", parentId="p", html="page-of-ada")
    stage.start_turn("my-prompt-is-private", snapshot=SNAPSHOT)
    stage.script_replies(reply_with_calls(call), "answer-to-ada")
    stage.run_workflow()
    [request] = [event for event in stage.events() if isinstance(event, ApprovalRequestedEvent)]
    answer = ApprovalAnswer(is_approved=False, reason="result-for-ada")
    decide_approval(stage.resources, stage.caller, request.approval_id, answer)
    stage.run_workflow()
    set_policy(stage.resources, stage.caller, ApprovalPolicy())


def leave_turn_open(stage: Stage) -> None:
    stage.start_turn("my-prompt-is-private", snapshot=SNAPSHOT)
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="page-of-ada")))
    assert stage.run_workflow() == "waiting"


def edit_and_publish_draft(resources: Resources, caller: Caller) -> None:
    """Edit a draft of the planner and leave a chat that is not run. What is published is the tenant's."""
    location = open_session(resources, caller, "session-of-ada", None)
    pages = [{"id": "p", "slug": "/", "title": "Home of the bakery"}]
    import_pages(resources, location, tuple(map(Page.from_wire, pages)), overwrite=False)
    publish_draft(resources, location, "bakery-site")
    for number in range(2):
        operation = {"op": "update_page_meta", "pageSlug": "/", "patch": {"title": f"page-of-ada {number}"}}
        apply_submitted_operations(resources, location, [operation], f"edit-{number}")
    step_page(resources, location, "/", "undo")
    leave_plan_waiting(resources, location)
    chat = {"session": "session-of-ada", "message": "my-prompt-is-private"}
    store_chat(resources, caller, location.conversation, chat, "https://bakery.example")


def leave_prompts_waiting(resources: Resources, stage: Stage) -> None:
    """Leave a prompt in the queue of the open turn, a token that answers its call, and a delivery of its events."""
    process = resources_of_new_process(resources)
    start = partial(start_turn, process, stage.caller)
    queued = start_or_enqueue(process, stage.caller, stage.make_prompt("my-prompt-is-private"), start)
    assert isinstance(queued, QueuedPrompt)
    ids = (stage.conversation.id, queued.id)
    edit_queued_prompt(resources, stage.caller, *ids, text="my-prompt-is-private, and page-of-ada", version=None)
    issue_callback_token(resources, stage.caller, stage.turn.id)
    at_ms = int(resources.clock.time() * 1000)
    delivery = Delivery(event_id="e", event="toolRequest", turn=stage.turn.id, entry=3, index=0, at_ms=at_ms)
    store_attempt(resources, stage.caller.tenant, "webhook-1", delivery.model_copy(update={"attempts": 1}))
    take_delivery_slot(resources, stage.caller.tenant)


def count_ledger(resources: Resources) -> None:
    """Count the ledger as the stream does."""
    for row in list_rows(resources, "usage"):
        if "gsk" in row:
            rollup_store.count_records(resources, row["tenant"], load_ledger_records(resources, row))


def list_rows(resources: Resources, *tables: str) -> list[Item]:
    names = tables or ("conversations", "bridges", "usage", "settings", "pricing", "content")
    client, settings = resources.tables._client, resources.settings.model_dump()
    pages = [client.get_paginator("scan").paginate(TableName=settings[f"{name}_table"]) for name in names]
    return [deserialize_item(item) for table in pages for page in table for item in page["Items"]]


def list_objects(resources: Resources) -> dict[str, bytes]:
    """Return every version of every object, by key and version."""
    client, bucket = resources.blobs._client, resources.settings.bucket
    listed = client.list_object_versions(Bucket=bucket).get("Versions", [])
    return {
        f"{entry['Key']} {entry['VersionId']}": client.get_object(
            Bucket=bucket, Key=entry["Key"], VersionId=entry["VersionId"]
        )["Body"].read()
        for entry in listed
    }


def read_everything(resources: Resources) -> str:
    """Return all rows and objects as text, packed values unpacked."""
    texts = [read_row(row) for row in list_rows(resources)]
    for key, body in list_objects(resources).items():
        texts += [key, *_iter_readings(body)]
    return "\n".join(texts)


def read_row(row: Item) -> str:
    """Return a row as text, packed values unpacked."""
    return json.dumps(row, default=lambda value: "".join(_iter_readings(value)))


def _iter_readings(value: Any) -> Iterator[str]:
    if not isinstance(value, bytes) and not hasattr(value, "value"):
        yield str(value)
        return
    raw = bytes(value if isinstance(value, bytes) else value.value)
    yield raw.decode("utf-8", "replace")
    for window in (15, 31):
        try:
            yield zlib.decompress(raw, window).decode("utf-8", "replace")
        except zlib.error:
            continue


def find_traces(resources: Resources, *texts: str) -> list[str]:
    """Return which of the texts are still somewhere in storage, in any table or object."""
    everything = read_everything(resources)
    return [text for text in texts if text in everything]
