"""The whole HTTP API in one process, on moto, with turns that run to their end as soon as they are started.

A WSGI application takes the part of API Gateway.
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterable, Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

import pytest

from fermata.agents.definitions.definition_store import replace_agents
from fermata.agents.definitions.tenant_secrets import set_secret
from fermata.aws.clock import new_id
from fermata.aws.resources import Resources
from fermata.content.change_sets.change_set_store import begin_change_set
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.change_document import create_document
from fermata.content.documents.document import ContentAuthor, ContentStatus, DocumentContent
from fermata.content.forms.submission import Submission, build_submission_puts, make_submission_id
from fermata.content.media.asset_store import AssetTexts, store_asset
from fermata.content.model_store import create_space, put_model
from fermata.content.publishing.delivery_token import issue_delivery_token
from fermata.content.space_members import SpaceMember, put_member
from fermata.content.working_documents import WorkingDocuments
from fermata.conversations.conversation_store import create_conversation
from fermata.credentials import credential_store
from fermata.credentials.scope_defaults import set_default
from fermata.domain.agent_ids import SCOPES
from fermata.domain.blocks import ImageBlock, ToolCallBlock
from fermata.domain.conversation_key import ConversationKeyRules
from fermata.domain.events import ApprovalRequestedEvent
from fermata.domain.use_limits import DEFAULT_CALLER_LIMITS
from fermata.planner_api.chat_store import store_chat
from fermata.planner_api.sessions import make_site_key, open_session
from fermata.plans.apply_plan import apply_submitted_operations
from fermata.plans.drafts.draft_history import import_pages, step_page
from fermata.plans.drafts.publishing import publish_draft
from fermata.pricing.catalogue import PriceCatalogue, PricedModel, store_catalogue
from fermata.pricing.token_cost import Price
from fermata.privacy.data_subject import DataSubject
from fermata.privacy.privacy_job import create_privacy_job
from fermata.remote_tools.tool_registry import register_tool
from fermata.tools.tool import Access, Approval, Execution, Tool
from fermata.turns.prompt_queue.enqueue_prompt import start_or_enqueue
from fermata.turns.prompt_queue.queued_prompt import QueuedPrompt
from fermata.turns.start.start_turn import start_turn
from fermata.turns.turn import Turn, find_turn
from fermata.webhooks.delivery import Delivery, store_attempt
from fermata.webhooks.webhook_registry import add_webhook, list_webhooks, remove_webhook
from fermata.wire.auth.api_key_store import create_api_key
from fermata.wire.auth.conversation_key_store import create_conversation_key
from fermata.wire.auth.mcp_connector_store import create_connector
from fermata.wire.http.api_gateway import request_from_event, to_proxy_response
from fermata.wire.http.dispatch import handle_request
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import Routes
from fermata.wire.operations import api_keys, chat_clients, cms_agent, openai, remote_tools, studio, turns
from fermata.wire.operations.common import API_PREFIX
from fermata.wire.operations.operation import BaseOperation
from functions.api import app as api
from functions.credentials import app as credentials
from functions.redraw_images import app as redraw_images
from functions.stream_turns import app as stream_turns
from functions.tool_result import app as tool_result
from local.seed import WIDE_LIMITS
from tests import images
from tests.agent_definitions import make_definition
from tests.tenant_tokens import ALL_CAPABILITIES, TokenSigner, make_tenant
from tests.unit.plans.page_samples import SITE
from tests.unit.remote_tools.manifests import make_manifest_json
from tests.unit.turns.stage import FakeWorkflow, Stage, reply_with_calls, tool_call_block
from tests.uploads import put_upload

ROUTES: Routes = [
    route
    for function in (api, credentials, redraw_images, stream_turns, tool_result)
    for route in function.router.routes
]
OF_CONTENT = (
    *("content", "content-spaces", "assets", "content-search", "content-index", "delivery", "asset-descriptions"),
    *("content-git", "content-files", "content-sync"),
)
"""First words of paths that name a space."""
WHOLE_SPACE = "content-spaces/{"
"""Of the path of an operation that changes all that is in a space."""
PLACES_OF_ASSETS = ("asset", "export", "content-search", "content-index", "content-files")
"""Words of the paths of operations that read or write assets."""
CAPABILITIES = (*ALL_CAPABILITIES, "site.read", "site.structure.edit")
NOBODY = DataSubject(kind="user", tenant="bakery", id="nobody")
VARIATIONS = {"variations": [{"title": "Short", "summary": "Shorter.", "patch": {"heading": "Fresh bread."}}]}
DESCRIPTION = {"alt": "A loaf", "description": "Dark bread.", "tags": ["bread"]}
MODELS = json.dumps(
    {
        "data": [{"id": "claude-opus-4-5", "display_name": "Opus"}, {"id": "claude-haiku-4-5"}],
        "has_more": False,
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": json.dumps(VARIATIONS | DESCRIPTION)}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
).encode()
"""A list of models which is an answer too, because the provider answers every request with it."""


PUBLISH_SITE = Tool(
    name="publishSite",
    toolset="site",
    description="Publishes the site.",
    execution=Execution.BROWSER,
    access=Access.WRITE,
    approval=Approval.ALWAYS,
)
"""A tool that needs a person."""


CMS_OPERATIONS = tuple(one for one in vars(cms_agent).values() if isinstance(one, BaseOperation))
STUDIO_OPERATIONS = tuple(one for one in vars(studio).values() if isinstance(one, BaseOperation))
CHAT_OPERATIONS = tuple(one for one in vars(chat_clients).values() if isinstance(one, BaseOperation))


def is_about(operation: BaseOperation, *words: str) -> bool:
    """Return whether the path of an operation has one of these words, or means all that is in a space."""
    return any(word in operation.path for word in (*words, WHOLE_SPACE))


class ImmediateWorkflow(FakeWorkflow):
    """A workflow that runs each turn to its end within the request that starts it."""

    def __init__(self, stage: "PlayingStage") -> None:
        super().__init__()
        self.stage = stage
        self.runs_turns = True

    def start_execution(self, tenant: str, turn: str, n: int, *, hint: dict[str, Any] | None = None) -> None:
        super().start_execution(tenant, turn, n, hint=hint)
        if self.runs_turns:
            started_turn = find_turn(self.stage.resources, tenant, turn)
            if not started_turn.undone_turn:  # an undo requests no model
                self.stage.script_replies("Done.")
            self.stage.run_turn(started_turn)


class PlayingStage(Stage):
    """A stage for turns that are started through the API."""

    workflow: "ImmediateWorkflow"

    def run_turn(self, turn: Turn) -> None:
        if self._turn is None or self._turn.id != turn.id:
            self._waiting_token = ""  # of the turn before
        self._turn = turn
        self.run_workflow()

    def start_waiting_turn(self, conversation: str, call: ToolCallBlock | None = None) -> Turn:
        """Start a turn with an image as its prompt, and run it until it waits for a browser, or for another call."""
        image = ImageBlock(mime_type="image/jpeg", data=images.to_base64(images.make_image()))
        prompt = replace(
            self.make_prompt(limits=WIDE_LIMITS.apply_to(DEFAULT_CALLER_LIMITS)),
            conversation_id=conversation,
            content=(image,),
        )
        self.workflow.runs_turns = False
        turn = start_turn(self.resources, self.caller, prompt).turn
        self.workflow.runs_turns = True
        call = call or tool_call_block("insertHtml", parentId="root", html="<p>x</p>")
        self.script_replies(reply_with_calls(call))
        self.run_turn(turn)
        return turn


DELIVERY = Delivery(
    event_id="turn-1.7.0", event="turnEnd", turn="turn-1", entry=7, index=0, at_ms=1_900_000_000_000, attempts=1
)


@dataclass(frozen=True)
class Service:
    """The service with a tenant, the bakery, whose user Ada owns everything.

    The message `image_message` of `used_conversation` begins with an image. `waiting_turn` waits for a browser to
    answer `open_request`.
    """

    resources: Resources
    stage: PlayingStage
    bakery: TokenSigner
    empty_conversation: str
    used_conversation: str
    image_message: str
    waiting_turn: str
    open_request: str

    def headers(self, operation: BaseOperation) -> dict[str, str]:
        """Return the headers of a caller who may do everything."""
        return {"Authorization": self.bakery.bearer_headers(capabilities=CAPABILITIES)["authorization"]}

    def token(self, *capabilities: str) -> str:
        return self.bakery.bearer_headers(capabilities=capabilities)["authorization"]

    def real_ids(self, operation: BaseOperation, status: int = 200) -> dict[str, str]:
        """Return an existing id for each parameter and member that refers to something.

        Args:
            operation: The operation.
            status: That of the response. With 204 there is nothing behind the id.
        """
        kind = operation.path.removeprefix(f"{API_PREFIX}/").lstrip("/").split("/")[0]
        return {
            "id": self._path_id(kind, deletes=operation.method == "DELETE" and "/queue/" not in operation.path),
            "conversationId": self.empty_conversation,
            "conversation": self.empty_conversation,
            "credentialId": self.stage.credential.id,
            "bridgeId": self._bridge_id(operation),
            "requestId": self.open_request,
            "responseId": f"resp_{self._bridge_id(operation)}",
            "messageId": self.image_message,
            "promptId": self._queue_prompt(operation.name) if "{promptId}" in operation.path else "",
            "approvalId": self._start_turn_that_needs_approval() if "{approvalId}" in operation.path else "",
            **(self._open_cms_session(operation) if operation in CMS_OPERATIONS else {}),
            "index": "0",
            **(self._open_planner_session() if kind == "planner" else {}),
            **(self._write_content(operation, status) if kind in OF_CONTENT else {}),
            "deliveryId": DELIVERY.sort_key,
            "name": self._find_name(operation, kind),
            **(self._name_chat(operation, status) if operation in CHAT_OPERATIONS else {}),
            **(self._open_studio(operation, status) if operation in STUDIO_OPERATIONS else {}),
            **({"id": self._create_conversation_key()} if operation is api_keys.CHANGE_API_KEY else {}),
        }

    def _open_studio(self, operation: BaseOperation, status: int) -> dict[str, str]:
        """Return a project, and a conversation about it, in which a turn runs where one is followed."""
        project = self._write_content(operation, status)
        space = f"{project['site']}/{project['environment']}"
        credential = self.stage.credential.id  # other tests delete the default of the scope
        conversation = create_conversation(
            self.resources, self.stage.caller, "studio", None, credential, "model-1", space=space
        ).id
        if operation is studio.FOLLOW_STUDIO_CHAT and status == 200:
            limits = WIDE_LIMITS.apply_to(DEFAULT_CALLER_LIMITS)
            prompt = replace(
                self.stage.make_prompt(limits=limits), scope="studio", conversation_id=conversation, space=space
            )
            caller = self.stage.caller.model_copy(update={"capabilities": frozenset(CAPABILITIES)})
            self.stage.workflow.runs_turns = False
            start_turn(self.resources, caller, prompt)
            self.stage.workflow.runs_turns = True
        return {"workspaceId": self.bakery.tenant, "projectId": project["site"], "conversationId": conversation}

    def _create_conversation_key(self) -> str:
        project = self._write_content(api_keys.CHANGE_API_KEY, 200)
        rules = ConversationKeyRules(project=f"{project['site']}/{project['environment']}")
        caller = self.stage.caller.model_copy(update={"capabilities": frozenset(CAPABILITIES)})
        return create_conversation_key(self.resources, caller, "Robot", rules)[0].id

    def _name_chat(self, operation: BaseOperation, status: int) -> dict[str, str]:
        """Return a chat in which a turn waits, where it is resumed, or one whose conversation is empty."""
        is_resumed = operation in (chat_clients.RESUME_CHAT, chat_clients.RESUME_ON_PAGE) and status != 204
        waiting = find_turn(self.resources, self.bakery.tenant, self.waiting_turn).conversation
        chat = waiting if is_resumed else self.empty_conversation
        path = f"home/site/{chat}/stream" if operation is chat_clients.RESUME_ON_PAGE else "home/site"
        return {"agentId": "site", "chatId": chat, "id": chat, "threadId": chat, "path": path}

    def _open_cms_session(self, operation: BaseOperation) -> dict[str, str]:
        """Return a session with the CMS agent, and a turn of it where one is followed."""
        set_default(self.resources, self.stage.caller, "cms", self.stage.credential.id, "claude-opus-4-5")
        session = create_conversation(self.resources, self.stage.caller, "cms", None, None, "").id
        if operation is not cms_agent.FOLLOW_CMS_ANSWER:
            return {"sessionId": session}
        prompt = replace(
            self.stage.make_prompt(limits=WIDE_LIMITS.apply_to(DEFAULT_CALLER_LIMITS)),
            scope="cms",
            conversation_id=session,
        )
        turn = start_turn(self.resources, self.stage.caller, prompt).turn
        return {"sessionId": session, "traceId": turn.id}

    def _push_agent(self) -> str:
        """Push an agent again, which changes nothing where it is there."""
        replace_agents(self.resources, self.stage.caller, {"helper": make_definition("helper")})
        return "helper"

    def _find_name(self, operation: BaseOperation, kind: str) -> str:
        if kind == "secrets":
            return str(set_secret(self.resources, self.stage.caller, operation.name, "a value")["name"])
        if operation is remote_tools.TURN_ON_BUILT_IN_TOOL:
            return "http_get"
        return self._register_tool() if "{name}" in operation.path else ""

    def _write_content(self, operation: BaseOperation, status: int) -> dict[str, str]:
        """Return a space with a model and its document, and what else the operation is about (decision 0503).

        A model that is deleted has no document.
        """
        space, author = (
            SpaceKey("bakery", f"site-{new_id(12).lower().replace('_', '0').strip('-')}x"),
            ContentAuthor("ada"),
        )
        create_space(self.resources, space, ContentSpace(), author)
        put_model(self.resources, space, {"id": "recipe", "kind": "collection", "i18n": False}, author)
        if operation.name != "removeContentModel":
            content = DocumentContent(title="Rye", slug="rye-bread", status=ContentStatus.PUBLISHED)
            create_document(self.resources, space, "recipe", author, content, document_id="rye")
        names = {
            "site": space.site,
            "environment": space.environment,
            "confirm": space.name,
            "model": "recipe",
            "document": "rye",
        }
        return names | {
            "version": "1",
            "slug": "rye-bread",
            "member": self._add_member(operation, space),
            **(self._begin_change_set(space, author) if is_about(operation, "change-sets") else {}),
            **(self._store_image(space, author, status) if is_about(operation, *PLACES_OF_ASSETS) else {}),
            **(self._issue_token(space) if is_about(operation, "token") else {}),
            "workspace": space.tenant,
            "submission": self._leave_submission(operation, space, author),
        }

    def _leave_submission(self, operation: BaseOperation, space: SpaceKey, author: ContentAuthor) -> str:
        """Open the form of the model, and return a submission, where the operation is about forms."""
        if "/forms/" not in operation.path and "/submissions" not in operation.path:
            return ""
        form = {"enabled": True, "exposedFields": ["name"]}
        fields = {"name": {"type": "string"}}
        model = {"id": "recipe", "kind": "collection", "i18n": False, "fields": fields, "form": form}
        put_model(self.resources, space, model, author)
        submission = Submission(
            id=make_submission_id(self.resources.clock.time()),
            model="recipe",
            data={"name": "Eve"},
            created_at=self.resources.clock.now_iso(),
        )
        table = self.resources.settings.content_table
        self.resources.tables.write_items(*build_submission_puts(table, space, submission))
        return submission.id

    def _add_member(self, operation: BaseOperation, space: SpaceKey) -> str:
        """Return a user, who is a member where that is asked for."""
        if "members" in operation.path and operation.method in ("GET", "DELETE"):
            put_member(self.resources, space, SpaceMember("bob", "editor"))
        return "bob"

    def _begin_change_set(self, space: SpaceKey, author: ContentAuthor) -> dict[str, str]:
        return {"changeSet": begin_change_set(self.resources, space, "", author).id}

    def _issue_token(self, space: SpaceKey) -> dict[str, str]:
        text, grant = issue_delivery_token(self.resources, space, "ada", "published")
        return {"token": text, "tokenId": grant.id}

    def _store_image(self, space: SpaceKey, author: ContentAuthor, status: int) -> dict[str, str]:
        """Return an asset, and an upload of another image, or of the same one for status 200."""
        raw = images.make_image()
        stored = store_asset(WorkingDocuments(self.resources, space, author), raw, AssetTexts("bread.jpg")).version
        other = put_upload(self.resources, self.stage.caller, "image", raw if status == 200 else images.make_image(41))
        return {"asset": stored.id, "file": "original", "uploadRef": other}

    def _open_planner_session(self) -> dict[str, str]:
        """Return a session whose draft has a step to undo and one to redo, and a chat that is not run yet."""
        caller, session = self.stage.caller, new_id()
        location = open_session(self.resources, caller, session, None)
        import_pages(self.resources, location, SITE.pages, overwrite=False)
        meta = {"op": "update_page_meta", "pageSlug": "/faq", "patch": {"title": "T"}}
        apply_submitted_operations(self.resources, location, [meta], "one")
        step_page(self.resources, location, "/faq", "undo")
        publish_draft(self.resources, location, make_site_key(session))
        body = {"session": session, "message": "Change the heading"}
        chat = store_chat(self.resources, caller, location.conversation, body, "")
        return {"session": session, "siteId": session, "streamId": chat.id}

    def _register_tool(self) -> str:
        manifest = make_manifest_json()
        register_tool(self.resources, self.stage.caller, manifest, "https://93.184.216.34/tool", replace=True)
        return str(manifest["name"])

    def _path_id(self, kind: str, *, deletes: bool) -> str:
        """Return the id of a new item if the operation deletes it."""
        match kind:
            case "conversations":
                return self.stage.new_conversation().id if deletes else self.used_conversation
            case "credentials":
                return self._create_credential() if deletes else self.stage.credential.id
            case "exports":
                return create_privacy_job(self.resources, "export", NOBODY).id
            case "erasures":
                return create_privacy_job(self.resources, "erasure", NOBODY).id
            case "api-keys":
                return create_api_key(self.resources, self.stage.caller, "Build server", ["ai.chat"])[0].id
            case "mcp":
                made = create_connector(
                    self.resources, self.stage.caller, "Desktop", "local", ["ai.chat"], expires_in_seconds=60
                )
                return made[0].id
            case "webhooks":
                return self._add_webhook()
            case "agent-definitions":
                return self._push_agent()
            case _:
                return "anthropic"

    def _add_webhook(self) -> str:
        """Return a new webhook with one delivery."""
        registered = list_webhooks(self.resources, self.stage.caller.tenant)
        for webhook in registered:
            remove_webhook(self.resources, self.stage.caller, webhook["id"])
        webhook_id = str(add_webhook(self.resources, self.stage.caller, "https://93.184.216.34/hook", ()).view["id"])
        store_attempt(self.resources, self.stage.caller.tenant, webhook_id, DELIVERY)
        return webhook_id

    def _bridge_id(self, operation: BaseOperation) -> str:
        """Return a new turn if the operation changes it."""
        match operation:
            case turns.CANCEL_TURN | openai.CANCEL_RESPONSE | openai.DELETE_RESPONSE:
                return self._start_turn()
            case turns.UNDO_TURN | turns.SHOW_JOURNAL:
                return self._start_edited_turn()
            case _:
                return self.waiting_turn

    def _start_edited_turn(self) -> str:
        """Start a turn with an edit that has an inverse."""
        turn = self.stage.start_waiting_turn(self.stage.new_conversation().id)
        inverse = {"tool": "restore", "input": {"patch": {}}}
        self.stage.answer_request({"ok": True, "revision": "r2", "inverse": inverse})
        self.stage.script_replies("Done.")
        self.stage.run_turn(turn)
        return turn.id

    def _start_turn(self) -> str:
        return self.stage.start_waiting_turn(self.stage.new_conversation().id).id

    def _start_turn_that_needs_approval(self) -> str:
        """Start a turn with a call that waits for a person, and return the approval's id."""
        turn = self.stage.start_waiting_turn(self.stage.new_conversation().id, tool_call_block("publishSite"))
        requests = (event for event in self.stage.events() if isinstance(event, ApprovalRequestedEvent))
        assert self.stage.turn.id == turn.id
        return next(requests).approval_id

    def _queue_prompt(self, key: str) -> str:
        """Put a prompt behind the waiting turn, once for the same key, and return its id."""
        stage = self.stage
        limits = WIDE_LIMITS.apply_to(DEFAULT_CALLER_LIMITS)
        prompt = stage.make_prompt("And a footer", limits=limits, idempotency_key=key)
        prompt = replace(prompt, conversation_id=self.used_conversation)
        queued = start_or_enqueue(
            stage.resources, stage.caller, prompt, partial(start_turn, stage.resources, stage.caller)
        )
        assert isinstance(queued, QueuedPrompt)
        return queued.id

    def _create_credential(self) -> str:
        return credential_store.create_credential(
            self.resources, self.stage.caller, "anthropic", "apiKey", new_id(), "sk-ant-test"
        ).id


def make_service(resources: Resources, patch: pytest.MonkeyPatch) -> Service:
    for limit in ("content.model_store.MAX_SPACES", "wire.auth.mcp_connector_store.MAX_CONNECTORS"):
        patch.setattr(f"fermata.{limit}", 10**6)  # each request gets one of its own
    stage = PlayingStage(resources, patch)
    _price_models(resources)
    stage.workflow = resources.__dict__["workflow"] = ImmediateWorkflow(stage)
    stage.add_tools(PUBLISH_SITE)
    used_conversation = stage.conversation.id
    turn = stage.start_waiting_turn(used_conversation)
    for scope in SCOPES:  # so that no test needs another one that sets them
        set_default(resources, stage.caller, scope, stage.credential.id, "claude-opus-4-5")
    return Service(
        resources=resources,
        stage=stage,
        bakery=make_tenant(resources, limits=WIDE_LIMITS),
        empty_conversation=stage.new_conversation().id,
        used_conversation=used_conversation,
        image_message=f"{turn.id}-0",
        waiting_turn=turn.id,
        open_request=stage.tool_requests()[-1].request_id,
    )


def _price_models(resources: Resources) -> None:
    """Store a price of the models that are asked, because a budget refuses those without one."""
    priced = PricedModel(price=Price(input_per_mtok=3, output_per_mtok=15))
    models = dict.fromkeys(("model-1", "claude-opus-4-5"), priced)
    store_catalogue(resources, PriceCatalogue(refreshed_at=1, priced_models=models))


class WsgiGateway:
    """A WSGI application over the routes of all functions."""

    resources: Resources

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        response = handle_request(self.resources, ROUTES, request_from_event(_make_event(environ)))
        status, headers, content = _render(response)
        start_response(f"{status} {HTTPStatus(status).phrase}", list(headers.items()))
        return [content]


GATEWAY = WsgiGateway()
"""Schemathesis needs it at import time. The fixture `service` sets its resources."""


def _make_event(environ: dict[str, Any]) -> dict[str, Any]:
    headers = {key[5:].replace("_", "-").lower(): value for key, value in environ.items() if key.startswith("HTTP_")}
    if environ.get("CONTENT_TYPE"):
        headers["content-type"] = environ["CONTENT_TYPE"]
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    return {
        "resource": "/{proxy+}",
        "httpMethod": environ["REQUEST_METHOD"],
        "path": environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace"),
        "headers": headers,
        "queryStringParameters": dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)) or None,
        "requestContext": {"requestId": "platform-request"},
        "body": base64.b64encode(body).decode(),
        "isBase64Encoded": True,
    }


def _render(response: Response) -> tuple[int, dict[str, str], bytes]:
    if response.stream is None:
        event = to_proxy_response(response)
        text = event["body"]
        return response.status, event["headers"], base64.b64decode(text) if event["isBase64Encoded"] else text.encode()
    assert isinstance(response.stream, AsyncIterable)
    try:
        content = asyncio.run(_join(response.stream))
    finally:
        if response.on_close:
            response.on_close()
    if response.build_whole is not None:
        return _render(replace(response.build_whole(), headers=response.headers))
    return response.status, dict(response.headers), content


async def _join(stream: AsyncIterable[bytes]) -> bytes:
    return b"".join([chunk async for chunk in stream])
