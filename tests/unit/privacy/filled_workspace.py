"""Fill a tenant with what stands beside its conversations: an open editor, connectors, tools, webhooks, plans."""

import pytest

from fermata.agents.approval_policy import ApprovalPolicy, PolicyRule
from fermata.agents.policy_store import set_policy
from fermata.aws.blob_store import prompt_folder
from fermata.aws.resources import Resources
from fermata.billing.count_media_hours import count_media_hours
from fermata.billing.make_usage_reports import make_usage_reports
from fermata.billing.usage_report import read_workspace_reports
from fermata.content.change_sets.change_set_documents import change_in_change_set
from fermata.content.change_sets.change_set_store import begin_change_set
from fermata.content.content_space import SpaceKey, list_spaces
from fermata.content.documents.change_document import create_document
from fermata.content.documents.document import ContentAuthor, DocumentContent, DocumentKey
from fermata.content.media.asset_files import media_folder
from fermata.content.media.media_room import MediaRoom
from fermata.content.media.sweep_media import sweep_media
from fermata.credentials.credential_store import create_credential, delete_credential
from fermata.credentials.known_capabilities import store_listed_capabilities
from fermata.credentials.model_choice import ModelChoice
from fermata.domain.blocks import AudioBlock
from fermata.domain.caller import Caller
from fermata.domain.dialect import NEWEST_GENERATION
from fermata.domain.tools import ToolOutput
from fermata.domain.use_limits import DEFAULT_CALLER_LIMITS
from fermata.domain.workspace_plan import PlanMeter, Subscription
from fermata.editor_bridge.editor_call import answer_editor_call, request_editor_call
from fermata.editor_bridge.open_editors import register_editor
from fermata.limits.delivered_traffic import TRAFFIC_SHARE_BYTES, count_traffic
from fermata.limits.metered_uses import MeteredUse, reserve_metered_use
from fermata.limits.reader_leases import ReaderLease
from fermata.plans.drafts.draft_rows import DraftLocation
from fermata.plans.drafts.multi_step_request import StepPlace, build_chain_writes
from fermata.plans.drafts.pending_plan import PendingPlan, store_pending_plan
from fermata.plans.drafts.site_registry import register_site
from fermata.plans.plan_outcome import PlanOutcome
from fermata.remote_tools.tool_registry import register_tool
from fermata.turns.generate.transcribe_recording import Transcriber
from fermata.turns.read.reader_presence import mark_reader_departed
from fermata.turns.start import prompt_transcripts
from fermata.webhooks.webhook_registry import add_webhook
from fermata.wire.auth.mcp_connector_store import create_connector
from tests.recordings import WAV, encode_recording
from tests.unit.remote_tools.manifests import make_manifest_json
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block

PUBLIC_URL = "https://93.184.216.34/"
WORDS = "page-of-ada"


def fill_workspace(resources: Resources, caller: Caller) -> None:
    """Register what an administrator registers, and delete a credential. Turns that start afterwards are told of."""
    register_site(resources, caller.tenant, "bakery-site", {"name": "Bakery"})
    create_connector(resources, caller, "Desktop", "local", ["ai.chat"], expires_in_seconds=None)
    register_tool(resources, caller, make_manifest_json(), f"{PUBLIC_URL}tool", replace=True)
    add_webhook(resources, caller, f"{PUBLIC_URL}hook", ())
    own_server = create_credential(resources, caller, "ollama", "baseUrl", "Own", None, PUBLIC_URL)
    store_listed_capabilities(resources, own_server, ())
    unused = create_credential(resources, caller, "ollama", "baseUrl", "Unused", None, PUBLIC_URL)
    delete_credential(resources, caller, unused.id)
    use = MeteredUse(PlanMeter.CHAT_MESSAGES, "message-of-ada", caller.user)
    reserve_metered_use(resources, caller.tenant, Subscription(), use)
    make_usage_reports(resources, caller.tenant, read_workspace_reports(resources, caller.tenant))
    MediaRoom(resources, caller.tenant, Subscription(plan="pro")).add(1)
    [(space, _), *_] = list_spaces(resources, caller.tenant)
    fields: dict[str, object] = {"filename": "loaf.jpg", "mediaType": "image/jpeg", "sha256": "1" * 64}
    stored = resources.blobs.put_bytes(media_folder(space, "1" * 64), b"a loaf of bread", "image/jpeg")
    fields["files"] = [{"name": "original", "sha256": stored.rpartition("/")[2]}]
    asset = DocumentContent(title="Loaf").with_fields("data", fields)
    create_document(resources, space, "asset", ContentAuthor(caller.user), asset)
    count_media_hours(resources, caller.tenant)
    count_traffic(resources, caller.tenant, TRAFFIC_SHARE_BYTES)


def leave_transcript(resources: Resources, caller: Caller, credential_id: str) -> None:
    """Leave what was said in a recording, which is kept for the same file sent again."""
    choice = ModelChoice(credential_id=credential_id, version=1, provider="openai", model="hears")
    chat = "conversation"
    folder = prompt_folder(caller.tenant, caller.user, chat, "turn")
    transcripts = prompt_transcripts.PromptTranscripts(
        resources,
        caller,
        "site",
        "conversation",
        folder,
        DEFAULT_CALLER_LIMITS,
        lambda: Transcriber(choice, pytest.fail),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prompt_transcripts, "transcribe_recording", lambda *_: WORDS)
        transcripts.add_to([AudioBlock(mime_type="audio/wav", data=encode_recording(WAV))])


def leave_editor_open(resources: Resources, caller: Caller, words: str) -> None:
    """Leave an editor open with a call that it has answered, both too large for a row, and a reader of a turn."""
    editor = register_editor(resources, caller, "site", "seed", NEWEST_GENERATION)
    call = request_editor_call(resources, editor, "read", {"text": words}, is_edit=False, seconds=60)
    assert call
    answer_editor_call(resources, caller, editor.id, call.request_id, ToolOutput(ok=True, data={"text": words}), "hash")
    ReaderLease.take(resources, caller, DEFAULT_CALLER_LIMITS)


def leave_change_open(resources: Resources, space: SpaceKey, author: ContentAuthor) -> None:
    """Leave a change set with a document that is in no space yet, and files of an image that no asset has."""
    resources.blobs.put_bytes(media_folder(space, "0" * 64), b"an upload that was never finished", "image/png")
    sweep_media(resources, space)
    change_set = begin_change_set(resources, space, "Spring", author)
    change_in_change_set(
        resources,
        space,
        change_set.id,
        DocumentKey("post", "rye"),
        lambda _before, _basis: DocumentContent(title="Rye"),
    )


def leave_plan_waiting(resources: Resources, location: DraftLocation) -> None:
    """Leave a plan that waits to be applied, and the steps that follow another one."""
    now = resources.clock.time()
    outcome = PlanOutcome(status="plan_ready", summary=WORDS)
    plan = PendingPlan(
        id="plan", turn="", outcome=outcome, targets_digest="", at=resources.clock.now_iso(), expires=int(now) + 900
    )
    store_pending_plan(resources, location, plan)
    resources.tables.write_items(*build_chain_writes(resources, location, "plan", StepPlace((WORDS,))))


def leave_approval_waiting(stage: Stage) -> None:
    """Leave a turn whose call waits for a person, and whose reader has left."""
    set_policy(stage.resources, stage.caller, ApprovalPolicy(rules=(PolicyRule(effect="ask"),)))
    stage.start_turn("my-prompt-is-private")
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="p", html=WORDS)))
    stage.run_workflow()
    set_policy(stage.resources, stage.caller, ApprovalPolicy())
    mark_reader_departed(stage.resources, stage.turn, stage.resources.clock.time())
