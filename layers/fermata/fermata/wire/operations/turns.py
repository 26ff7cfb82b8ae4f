"""Define operations on turns: start, follow, answer, cancel, undo."""

from fermata.domain.caller import Capability
from fermata.wire.bodies.turn_requests import ChatBody, ToolResultBody, UndoBody
from fermata.wire.operations.common import (
    API_PREFIX,
    CAN_CHAT,
    IDEMPOTENCY_KEY,
    NO_SUCH_TOOL_NAMES,
    OK_RESPONSES,
    STREAM_RESPONSE,
    TOOL_NAMES,
    UPLOAD_EXPIRED,
    make_integer_parameter,
)
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

DISCONNECTS = RequestParameter(
    "Fermata-Disconnects",
    "`cancel`: whoever forwards this request cancels the turn when its client has left. The turn's bridge is in the "
    "response header `Fermata-Bridge`. For pages of the dialect `instatic`.",
    {"type": "string", "enum": ["cancel"]},
    location="header",
)
_BRIDGE_PATH = f"{API_PREFIX}/bridges/{{bridgeId}}"
_CAN_READ_TURNS = (Capability.CHAT, Capability.TURNS)
_NO_TURN = {404: "There is no such turn, or it has expired."}
_CURSOR_PATTERN = "^([0-9]{6}-[0-9]{4})?$"

START_TURN = Operation(
    name="startTurn",
    function="stream_turns",
    method="POST",
    path=f"{API_PREFIX}/chat/{{scope}}",
    capabilities=CAN_CHAT,
    summary="Ask the agent something",
    description="Starts a turn and streams it. With `Accept: application/json` the turn is only started. The "
    "turn continues when the connection breaks; `bridges/{bridgeId}/events` streams it again from any event on.",
    parameters=(IDEMPOTENCY_KEY, TOOL_NAMES, DISCONNECTS),
    body=ChatBody,
    responses=(
        STREAM_RESPONSE,
        SuccessResponse(
            "The turn is started; follow it by its bridge. Or, with `whenBusy: enqueue`, the prompt waits.",
            "StartedTurnResponse",
            202,
        ),
    ),
    errors={
        400: "The body is not as described, or no credential and model are chosen.",
        402: "A budget has less left than the request or a recording may cost. The error says how much, and when the "
        "budget renews.",
        404: "There is no such scope, conversation or upload, or its credential is gone.",
        409: "The conversation is already generating a response, the provider's key has to be entered again, the "
        "Idempotency-Key was used for another request, or an upload differs from what was announced.",
        410: UPLOAD_EXPIRED,
        413: "The files of the prompt are too large.",
        422: "The model cannot do what is asked: see images, call tools, or hear. Or nobody speaks in a recording.",
        429: "The user or the workspace has reached a limit of prompts, turns or stored bytes. The error says which.",
        502: "The provider refused a recording, or could not be understood.",
        503: "The provider could not write down a recording now. Send the same request again.",
    },
)
FOLLOW_TURN = Operation(
    name="followTurn",
    function="stream_turns",
    method="GET",
    path=f"{_BRIDGE_PATH}/events",
    capabilities=_CAN_READ_TURNS,
    summary="Follow a turn",
    description="Streams the events after number `after`, then all further events until the turn ends. The log never "
    "gets shorter, except where a service was restored from an older copy of its tables. A client that has seen an "
    "event beyond the restored log is refused with `logRewound`, drops what it has seen of the turn, and follows it "
    "from `after=0`.",
    parameters=(
        make_integer_parameter("after", "The number (`seq`) of the last event that the client has.", 0, 999_999_999),
        TOOL_NAMES,
    ),
    responses=(STREAM_RESPONSE,),
    errors={
        400: "There is no event of that number (`code` is `logRewound`), or the tools have no such names.",
        429: "The user or the workspace follows turns with as many connections as it may. The error says which.",
    }
    | _NO_TURN,
)
SHOW_TURN = Operation(
    name="showTurn",
    function="api",
    method="GET",
    path=_BRIDGE_PATH,
    capabilities=_CAN_READ_TURNS,
    summary="See the state of a turn",
    parameters=(TOOL_NAMES,),
    responses=(SuccessResponse("The state, and the tool requests that wait for an answer.", "TurnStatusResponse"),),
    errors=NO_SUCH_TOOL_NAMES | _NO_TURN,
)
CANCEL_TURN = Operation(
    name="cancelTurn",
    function="api",
    method="POST",
    path=f"{_BRIDGE_PATH}/cancel",
    capabilities=_CAN_READ_TURNS,
    summary="End a turn",
    responses=(SuccessResponse("How the turn ended. The request may be repeated.", "TurnEndResponse"),),
    errors=_NO_TURN,
)
LIST_TURNS = Operation(
    name="listTurns",
    function="api",
    method="GET",
    path=f"{API_PREFIX}/turns",
    capabilities=(Capability.TURNS,),
    summary="List the turns of the workspace",
    description="The turns of all users, the latest first: those that run or wait, and those that have ended, with "
    "what they used. The list is a few seconds behind. It has no undos that have ended, because they use no model.",
    parameters=(
        RequestParameter(
            "cursor",
            "The `nextCursor` of the page before.",
            {"type": "string", "maxLength": 120},
        ),
        make_integer_parameter("limit", "The greatest number of turns that have sent a request.", 0, 50),
    ),
    responses=(SuccessResponse("A page of turns.", "TurnListResponse"),),
    errors={400: "`cursor` comes from no page."},
)
SHOW_TURN_REPORT = Operation(
    name="showTurnReport",
    function="api",
    method="GET",
    path=f"{_BRIDGE_PATH}/report",
    capabilities=_CAN_READ_TURNS,
    summary="See what a turn did, and when",
    description="The requests to the provider with their usage, and the log with the instant of each event. Pieces of "
    "text are told by their length, large members by their beginning.",
    parameters=(
        make_integer_parameter("after", "The `nextAfter` of the page before.", 0, 999_999_999),
        TOOL_NAMES,
    ),
    responses=(SuccessResponse("A page of the log; the first one has the requests too.", "TurnReportResponse"),),
    errors={400: "The tools have no such names, or `after` is no number."} | _NO_TURN,
)
SHOW_JOURNAL = Operation(
    name="showJournal",
    function="api",
    method="GET",
    path=f"{_BRIDGE_PATH}/journal",
    capabilities=_CAN_READ_TURNS,
    summary="List a turn's edits",
    description="The edits whose results had an inverse or a new revision, in order. The turn may still run.",
    parameters=(
        RequestParameter(
            "cursor", "The `nextCursor` of the page before.", {"type": "string", "pattern": _CURSOR_PATTERN}
        ),
        TOOL_NAMES,
    ),
    responses=(SuccessResponse("The edits, and what undos have changed about them.", "JournalResponse"),),
    errors={400: "The tools have no such names, or `cursor` comes from no page."} | _NO_TURN,
)
UNDO_TURN = Operation(
    name="undoTurn",
    function="stream_turns",
    method="POST",
    path=f"{_BRIDGE_PATH}/undo",
    capabilities=(Capability.WRITE,),
    summary="Undo a turn's edits",
    description="Starts a turn that asks the editor, and no model, for the inverse of each edit, the newest "
    "first, and streams it. With `Accept: application/json` the turn is only started. Edits with a conflict are "
    "skipped; the last event has a `report`.",
    parameters=(IDEMPOTENCY_KEY, TOOL_NAMES),
    body=UndoBody,
    requires_body=False,
    responses=(
        STREAM_RESPONSE,
        SuccessResponse("The undo is started; follow it by its own bridge.", "StartedTurnResponse", 202),
    ),
    errors=_NO_TURN
    | {
        400: "The body is not as described, or `through` is no edit of this turn.",
        409: "There is nothing to undo, the turn or another one of its conversation still runs, or the "
        "Idempotency-Key was used for another request.",
        429: "As many turns of the user or the workspace are running as may run at once. The error says which.",
    },
)
ANSWER_TOOL = Operation(
    name="answerTool",
    function="tool_result",
    method="POST",
    path=f"{API_PREFIX}/tool-result",
    capabilities=(Capability.CHAT, Capability.WRITE),
    summary="Answer a tool request",
    description="Posts the result of a `toolRequest`. The same answer may be sent again. `result` is a "
    "ToolOutputBody; any other is refused, and its request stays open. A tool that writes "
    f"needs {Capability.WRITE}, one that reads needs {Capability.CHAT}.",
    body=ToolResultBody,
    responses=OK_RESPONSES,
    errors={
        404: "No request waits for this answer: the turn has ended, the time is over, or there never was "
        "such a request. Or there is no such upload.",
        409: "The request was already answered differently, or an upload differs from what was announced.",
        410: UPLOAD_EXPIRED,
    },
)
