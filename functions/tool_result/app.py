"""Takes a browser's answer and wakes the round that waits for it."""

from fermata.domain.errors import NotFound
from fermata.turns.answer import submit_tool_result
from fermata.wire.bodies.requests import ToolResultBody
from fermata.wire.bodies.snapshots import resolve_snapshot
from fermata.wire.http.dispatch import RequestContext, make_handler
from fermata.wire.http.messages import Response
from fermata.wire.operations import surface

BRIDGE_GONE_MESSAGE = "The AI tool bridge is no longer active. The server may have restarted; send the message again."


def answer_tool(visit: RequestContext) -> Response:
    """Whether this caller may answer this call depends on the tool; the verb decides it."""
    body = visit.parse_body(ToolResultBody)
    snapshot = resolve_snapshot(visit.resources, visit.caller, body)
    try:
        submit_tool_result.submit_tool_result(
            visit.resources,
            visit.caller,
            bridge_id=body.bridge_id,
            request_id=body.request_id,
            result=body.result.posted,
            snapshot=snapshot.packed or snapshot.value,
            revision=body.revision or "",
        )
    except NotFound as gone:
        return _gone(visit, gone)
    return Response(200, {"ok": True})


def _gone(visit: RequestContext, gone: NotFound) -> Response:
    """Instatic's browsers read `ok` in one generation and show `error` in the next (contract instatic.md §0.1)."""
    if visit.tenant.dialect != "instatic":
        raise gone
    return Response(404, {"ok": False, "error": BRIDGE_GONE_MESSAGE})


ROUTES = (surface.ANSWER_TOOL.to(answer_tool),)
handler = make_handler(ROUTES)
