"""Store answers to tool requests and decisions about calls, and resume the round; serve agents and queued prompts."""

from typing import Any

from fermata.agents import agent_views
from fermata.aws.lazy_snapshot import LazySnapshot
from fermata.aws.resources import Resources, prepare_function
from fermata.aws.security_events import log_refusal
from fermata.domain.errors import ApiError, NotFound
from fermata.editor_bridge.editor_call import EditorCallGone
from fermata.editor_bridge.open_editors import EDITOR_ID_PREFIX
from fermata.tools.tool_names import ToolNaming
from fermata.turns.answer.submit_tool_result import ToolRequestGone, submit_tool_result
from fermata.turns.approvals.approval_answer import ApprovalAnswer
from fermata.turns.approvals.decide_approval import decide_approval
from fermata.turns.approvals.list_approvals import (
    MAX_APPROVALS_PER_PAGE,
    build_approval_view,
    get_approval,
    list_waiting_approvals,
)
from fermata.turns.approvals.list_decisions import MAX_DECISIONS_PER_PAGE, list_decisions
from fermata.turns.prompt_queue import change_queue
from fermata.wire.bodies.approval_requests import ApprovalDecision, ApprovalDecisions, NamedDecision
from fermata.wire.bodies.callback_requests import NewCallbackToken, RemoteResultBody
from fermata.wire.bodies.find_snapshot import find_snapshot
from fermata.wire.bodies.requests import QueuedPromptChange
from fermata.wire.bodies.turn_requests import ToolResultBody
from fermata.wire.http.dispatch import make_handler
from fermata.wire.http.editor_generation import select_listed_generation
from fermata.wire.http.json_body import parse_body
from fermata.wire.http.messages import HttpRequest, Response, read_integer_parameter
from fermata.wire.http.routing import RequestContext, Router
from fermata.wire.http.tool_naming import select_tool_names
from fermata.wire.operations import agents, approvals, callbacks, cms_agent, openai, prompt_queue, turns

BRIDGE_GONE_MESSAGE = "The AI tool bridge is no longer active. The server may have restarted; send the message again."
UNCACHED_HEADERS = {"Cache-Control": "private, no-store"}
DEFAULT_APPROVALS_PER_PAGE = 50
router = Router("tool_result")
router.handles_by_path(openai.LIST_AGENT_MODELS, "fermata.client_protocols.openai_models:list_agent_models")
router.handles_by_path(openai.SHOW_AGENT_MODEL, "fermata.client_protocols.openai_models:show_agent_model")
router.handles_by_path(cms_agent.DECIDE_CMS_APPROVAL, "fermata.client_protocols.cms_agent:decide_cms_approval")


@router.handles(turns.ANSWER_TOOL)
def answer_tool(context: RequestContext) -> Response:
    """Submit the result. The capability that the caller needs depends on the tool, so it is checked there."""
    body = context.parse_body(ToolResultBody)
    snapshot = find_snapshot(context.resources, context.caller, body)
    if body.bridge_id.startswith(EDITOR_ID_PREFIX):
        return _answer_editor_call(context, body, snapshot)
    try:
        submit_tool_result(
            context.resources,
            context.caller,
            bridge_id=body.bridge_id,
            request_id=body.request_id,
            result=body.result.posted,
            snapshot=snapshot,
            revision=body.revision or "",
        )
    except ToolRequestGone as error:
        if context.tenant.dialect != "instatic":
            raise
        return _respond_to_instatic(error)
    return Response(200, {"ok": True})


def _answer_editor_call(context: RequestContext, body: ToolResultBody, snapshot: LazySnapshot | None) -> Response:
    """Submit what the open editor answers to the call of an assistant."""
    from fermata.turns.answer.submit_editor_answer import submit_editor_answer  # few editors carry out such calls

    try:
        submit_editor_answer(
            context.resources, context.caller, body.bridge_id, body.request_id, body.result.posted, snapshot
        )
    except EditorCallGone as error:
        if context.tenant.dialect != "instatic":
            raise
        return _respond_to_instatic(error)
    return Response(200, {"ok": True})


@router.handles(approvals.SHOW_APPROVAL)
def show_approval(context: RequestContext) -> Response:
    view = get_approval(context.resources, context.caller, context.path_parameters["approvalId"])
    return Response(200, {"approval": view}, UNCACHED_HEADERS)


@router.handles(approvals.DECIDE_APPROVAL)
def decide_about_call(context: RequestContext) -> Response:
    """Store the decision of a person about a tool call."""
    body = context.parse_body(ApprovalDecision)
    answer = ApprovalAnswer(body.approved, body.reason, body.input, body.input_hash)
    record = decide_approval(context.resources, context.caller, context.path_parameters["approvalId"], answer)
    return Response(200, {"approval": build_approval_view(record)})


@router.handles(approvals.DECIDE_APPROVALS)
def decide_about_calls(context: RequestContext) -> Response:
    """Store several decisions, each for itself."""
    body = context.parse_body(ApprovalDecisions)
    return Response(200, {"results": [_decide_one(context, decision) for decision in body.decisions]})


def _decide_one(context: RequestContext, decision: NamedDecision) -> dict[str, Any]:
    answer = ApprovalAnswer(decision.approved, decision.reason, decision.input, decision.input_hash)
    try:
        record = decide_approval(context.resources, context.caller, decision.approval_id, answer)
    except ApiError as refusal:
        log_refusal(refusal)
        return {"approvalId": decision.approval_id, "status": refusal.status, "error": refusal.message}
    return {"approvalId": decision.approval_id, "status": 200, "approval": build_approval_view(record)}


def _respond_to_instatic(error: NotFound) -> Response:
    """Respond with both members: older Instatic browsers read `ok`, newer ones show `error`."""
    return Response(error.status, {"ok": False, "error": BRIDGE_GONE_MESSAGE})


@router.handles(callbacks.ISSUE_CALLBACK_TOKEN)
def issue_token(context: RequestContext) -> Response:
    from fermata.turns.answer.result_tokens import (
        issue_callback_token,  # imported here: few answers come from servers
    )

    body = parse_body(context.request, NewCallbackToken) if context.request.body.strip() else NewCallbackToken()
    token = issue_callback_token(
        context.resources,
        context.caller,
        context.path_parameters["bridgeId"],
        request_ids=body.request_ids or (),
        seconds=body.expires_in_seconds,
    )
    return Response(201, {"token": token.text, "expiresAt": token.expires_at})


@router.handles_public_request(callbacks.POST_CALLBACK_RESULT)
def post_callback_result(resources: Resources, request: HttpRequest) -> Response:
    """Submit the result of a server that has a callback token."""
    from fermata.turns.answer.result_tokens import open_callback_token, require_grant

    grant = open_callback_token(resources, request.headers.get(callbacks.CALLBACK_TOKEN_HEADER.lower(), ""))
    body = parse_body(request, ToolResultBody)
    require_grant(grant, body.bridge_id, body.request_id)
    submit_tool_result(
        resources,
        grant.caller,
        bridge_id=body.bridge_id,
        request_id=body.request_id,
        result=body.result.posted,
        snapshot=find_snapshot(resources, grant.caller, body),
        revision=body.revision or "",
    )
    return Response(200, {"ok": True})


@router.handles_public_request(callbacks.POST_REMOTE_RESULT)
def post_remote_result(resources: Resources, request: HttpRequest) -> Response:
    """Submit the result of a remote tool. Its signature is checked when the call is known."""
    from fermata.turns.answer.submit_remote_result import RemoteResult, submit_remote_result

    body = parse_body(request, RemoteResultBody)
    result = RemoteResult(
        body.tenant,
        body.bridge_id,
        body.request_id,
        body.data,
        body.error.message if body.error else None,
        is_retryable=body.error.retryable if body.error else False,
    )
    submit_remote_result(resources, result, request.headers, request.body)
    return Response(200, {"ok": True})


@router.handles(approvals.LIST_APPROVALS)
def list_approvals(context: RequestContext) -> Response:
    limit = read_integer_parameter(context.request, "limit", DEFAULT_APPROVALS_PER_PAGE, maximum=MAX_APPROVALS_PER_PAGE)
    cursor = context.request.query.get("cursor", "")
    page = list_waiting_approvals(context.resources, context.caller, cursor, max(1, limit))
    body: dict[str, Any] = {"approvals": [build_approval_view(record) for record in page.approvals]}
    return Response(200, body | ({"nextCursor": page.next_cursor} if page.next_cursor else {}), UNCACHED_HEADERS)


@router.handles(approvals.LIST_DECISIONS)
def list_past_decisions(context: RequestContext) -> Response:
    limit = read_integer_parameter(context.request, "limit", DEFAULT_APPROVALS_PER_PAGE, maximum=MAX_DECISIONS_PER_PAGE)
    cursor = context.request.query.get("cursor", "")
    page = list_decisions(context.resources, context.caller, cursor, max(1, limit))
    body: dict[str, Any] = {"decisions": list(page.decisions)}
    return Response(200, body | ({"nextCursor": page.next_cursor} if page.next_cursor else {}), UNCACHED_HEADERS)


@router.handles(agents.LIST_AGENTS)
def list_agents(context: RequestContext) -> Response:
    return Response(200, {"agents": agent_views.list_agent_views(context.resources, context.caller)}, UNCACHED_HEADERS)


@router.handles(agents.SHOW_AGENT)
def show_agent(context: RequestContext) -> Response:
    tool_names = select_tool_names(context)
    generation = select_listed_generation(context, tool_names)
    agent_id = context.path_parameters["agentId"]
    view = agent_views.get_agent_view(context.resources, context.caller, agent_id, ToolNaming(tool_names), generation)
    return Response(200, {"agent": view}, UNCACHED_HEADERS)


@router.handles(prompt_queue.LIST_QUEUE)
def list_queue(context: RequestContext) -> Response:
    views = change_queue.list_prompt_views(context.resources, context.caller, context.path_parameters["id"])
    return Response(200, {"prompts": views}, UNCACHED_HEADERS)


@router.handles(prompt_queue.EDIT_QUEUED_PROMPT)
def edit_prompt(context: RequestContext) -> Response:
    body = context.parse_body(QueuedPromptChange)
    ids = (context.path_parameters["id"], context.path_parameters["promptId"])
    edited = change_queue.edit_queued_prompt(
        context.resources, context.caller, *ids, text=body.prompt, version=body.version, limits=context.caller_limits
    )
    return Response(200, {"prompt": change_queue.build_prompt_view(edited)})


@router.handles(prompt_queue.DROP_QUEUED_PROMPT)
def drop_prompt(context: RequestContext) -> Response:
    ids = (context.path_parameters["id"], context.path_parameters["promptId"])
    dropped = change_queue.drop_queued_prompt(context.resources, context.caller, *ids)
    return Response(200, {"prompt": change_queue.build_prompt_view(dropped)})


handler = make_handler(router)
prepare_function("dynamodb", "s3", "kms", "stepfunctions")
