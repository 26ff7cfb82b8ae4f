"""Store a browser's answer to a tool request or a person's decision about a call, and resume the round."""

from fermata.aws.resources import prepare_function
from fermata.domain.errors import NotFound
from fermata.turns.answer.submit_tool_result import ToolRequestGone, submit_tool_result
from fermata.turns.approvals.decide_approval import ApprovalAnswer, decide_approval
from fermata.turns.approvals.list_approvals import build_approval_view, get_approval
from fermata.wire.bodies.approval_requests import ApprovalDecision
from fermata.wire.bodies.find_snapshot import find_snapshot
from fermata.wire.bodies.turn_requests import ToolResultBody
from fermata.wire.http.dispatch import make_handler
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext, Router
from fermata.wire.operations import approvals, turns

BRIDGE_GONE_MESSAGE = "The AI tool bridge is no longer active. The server may have restarted; send the message again."
UNCACHED_HEADERS = {"Cache-Control": "private, no-store"}
router = Router("tool_result")


@router.handles(turns.ANSWER_TOOL)
def answer_tool(context: RequestContext) -> Response:
    """Submit the result. The capability that the caller needs depends on the tool, so it is checked there."""
    body = context.parse_body(ToolResultBody)
    snapshot = find_snapshot(context.resources, context.caller, body)
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


def _respond_to_instatic(error: NotFound) -> Response:
    """Respond with both members: older Instatic browsers read `ok`, newer ones show `error`."""
    return Response(error.status, {"ok": False, "error": BRIDGE_GONE_MESSAGE})


handler = make_handler(router)
prepare_function("dynamodb", "s3", "kms", "stepfunctions")
