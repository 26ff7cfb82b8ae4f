"""Takes a browser's answer and wakes the round that waits for it."""

from fermata.turns import answering
from fermata.wire.bodies import ToolResultBody
from fermata.wire.edge import Route, Visit, door
from fermata.wire.http import Answer, read_body
from fermata.words.caller import Capability


def take_result(visit: Visit) -> Answer:
    """Whether this caller may answer this call depends on the tool; the verb decides it."""
    body = read_body(visit.request, ToolResultBody)
    answering.answer(
        visit.desk,
        visit.caller,
        bridge_id=body.bridge_id,
        request_id=body.request_id,
        result=body.result,
        snapshot=body.snapshot,
    )
    return Answer(200, {"ok": True})


ROUTES = (Route("POST", "/admin/api/ai/tool-result", take_result, (Capability.CHAT, Capability.WRITE)),)
handler = door(ROUTES)
