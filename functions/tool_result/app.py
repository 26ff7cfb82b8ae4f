"""Takes a browser's answer and wakes the round that waits for it."""

from fermata.turns import answering
from fermata.wire import surface
from fermata.wire.bodies import ToolResultBody
from fermata.wire.edge import Visit, door
from fermata.wire.http import Answer
from fermata.wire.uploaded import snapshot_of
from fermata.words.errors import NotFound

BRIDGE_GONE = "The AI tool bridge is no longer active. The server may have restarted; send the message again."


def take_result(visit: Visit) -> Answer:
    """Whether this caller may answer this call depends on the tool; the verb decides it."""
    body = visit.body(ToolResultBody)
    snapshot = snapshot_of(visit.desk, visit.caller, body)
    try:
        answering.answer(
            visit.desk,
            visit.caller,
            bridge_id=body.bridge_id,
            request_id=body.request_id,
            result=body.result.posted,
            snapshot=snapshot.packed or snapshot.value,
            revision=body.revision or "",
        )
    except NotFound as gone:
        return _gone(visit, gone)
    return Answer(200, {"ok": True})


def _gone(visit: Visit, gone: NotFound) -> Answer:
    """Instatic's browsers read `ok` in one generation and show `error` in the next (contract instatic.md §0.1)."""
    if visit.tenant.dialect != "instatic":
        raise gone
    return Answer(404, {"ok": False, "error": BRIDGE_GONE})


ROUTES = (surface.ANSWER_TOOL.to(take_result),)
handler = door(ROUTES)
