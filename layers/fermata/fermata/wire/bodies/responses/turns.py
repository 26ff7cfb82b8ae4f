"""Define the response bodies of operations on turns."""

from typing import Any, Literal

from fermata.wire.bodies.responses.common import CountField, InstantField, ResponseModel


class StartedTurnResponse(ResponseModel):
    """A turn that was started. Follow it at `bridges/{bridgeId}/events?after=0`."""

    bridge_id: str
    seq: CountField


class PendingToolRequestView(ResponseModel):
    """A tool request that waits for the browser's answer."""

    request_id: str
    tool_call_id: str
    tool_name: str
    input: Any = None
    effect_key: str
    deadline: InstantField
    revision: str | None = None
    undoes: str | None = None


class TurnStatusResponse(ResponseModel):
    """The state of a turn. While it is `paused`, the requests in `pending` wait for answers.

    `seq` is the number of the last event. `undoes` is the bridge whose edits the turn takes back.
    """

    bridge_id: str
    conversation_id: str
    status: Literal["running", "paused", "done", "error", "cancelled"]
    seq: CountField
    round: CountField
    pending: list[PendingToolRequestView]
    undoes: str | None = None


class JournalEntryView(ResponseModel):
    """An edit. `input` is the beginning of the call's input, `inverse` names the tools that take the edit back.

    `state`: `applied`, `undone`, `partly` undone, or `stuck` without an inverse; `problem` then says why. `undoneBy`
    is the last undo that tried the edit, `reason` why it skipped the edit. `redoneBy` is the undo of an undo that
    restored the edit.
    """

    effect_key: str
    seq: CountField
    round: CountField
    call: CountField
    tool_call_id: str
    tool_name: str
    input: str
    inverse: list[str]
    state: Literal["applied", "undone", "partly", "stuck"]
    at: InstantField
    revision_before: str | None = None
    revision_after: str | None = None
    problem: str | None = None
    undone_by: str | None = None
    redone_by: str | None = None
    reason: str | None = None


class JournalResponse(ResponseModel):
    """A page of edits. `nextCursor` is there when there are more: send it as `cursor`."""

    bridge_id: str
    entries: list[JournalEntryView]
    next_cursor: str | None = None


class TurnEndResponse(ResponseModel):
    """How the turn ended: not as `cancelled` when it had ended before."""

    bridge_id: str
    status: Literal["done", "error", "cancelled"]
