"""Define the response bodies of operations on turns."""

from typing import Any, Literal

from fermata.wire.bodies.responses.common import CountField, InstantField, ResponseModel, UsdField


class QueuedPromptView(ResponseModel):
    """A prompt that waits for its conversation, or did. `text` is its beginning. `bridgeId`: the turn it has started.

    `failed`: it could not start, for the reason in `error`.
    """

    prompt_id: str
    state: Literal["waiting", "started", "dropped", "failed"]
    text: str
    version: CountField
    created_at: InstantField
    bridge_id: str | None = None
    error: str | None = None


class QueuedPromptResponse(ResponseModel):
    prompt: QueuedPromptView


class QueuedPromptListResponse(ResponseModel):
    prompts: list[QueuedPromptView]


class StartedTurnResponse(ResponseModel):
    """A turn that was started. Follow it at `bridges/{bridgeId}/events?after=0`.

    A prompt that was sent with `whenBusy: enqueue`, and waits, has `queuedPrompt` in place of the other members.
    """

    bridge_id: str | None = None
    seq: CountField | None = None
    queued_prompt: QueuedPromptView | None = None


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


class WaitingApprovalView(ResponseModel):
    """A call of the turn that waits for a person. The turn's log has its input."""

    approval_id: str
    tool_call_id: str
    tool_name: str
    reasons: list[str]
    input_hash: str
    deadline: InstantField


class TurnStatusResponse(ResponseModel):
    """The state of a turn. While it is `paused`, the requests in `pending` wait for answers, and `approvals`
    for decisions.

    `seq` is the number of the last event. `undoes` is the bridge whose edits the turn takes back. `parentBridgeId` is
    that of the turn which has asked, if it is a sub-agent's.
    """

    bridge_id: str
    conversation_id: str
    status: Literal["running", "paused", "done", "error", "cancelled"]
    seq: CountField
    round: CountField
    pending: list[PendingToolRequestView]
    approvals: list[WaitingApprovalView] | None = None
    undoes: str | None = None
    parent_bridge_id: str | None = None


class TurnUsageView(ResponseModel):
    """What a turn, or one of its requests, has used so far."""

    prompt_tokens: CountField
    completion_tokens: CountField
    cache_read_tokens: CountField
    cache_creation_tokens: CountField
    cost_usd: UsdField


class TurnSummaryView(TurnUsageView):
    """A turn of the workspace. One whose rows have expired has no `startedAt`; it is `expired` if it never ended.

    A turn that undoes another one's edits has `undoes` and asks no model. That of a sub-agent has `parentBridgeId`.
    """

    bridge_id: str
    conversation_id: str
    user_id: str
    scope: str
    provider_id: str
    model_id: str
    status: Literal["running", "paused", "done", "error", "cancelled", "expired"]
    started_at: InstantField | None = None
    ended_at: InstantField | None = None
    error_code: str | None = None
    undoes: str | None = None
    parent_bridge_id: str | None = None
    rounds: CountField
    requests: CountField


class TurnListResponse(ResponseModel):
    """A page of turns. `nextCursor` is there when there may be more: send it as `cursor`."""

    turns: list[TurnSummaryView]
    next_cursor: str | None = None


class ModelRequestView(TurnUsageView):
    """A request to the provider, when it ended and how. Its usage is estimated when nobody has seen its end."""

    round: CountField
    at: InstantField
    model_id: str
    outcome: str
    is_estimated: bool


class TurnLogLineView(ResponseModel):
    """An event of the log: its number, its instant, its type, and `event` with its other members.

    A piece of text or reasoning has `characters` instead: its length.
    """

    seq: CountField
    at: InstantField
    type: str
    event: dict[str, Any] | None = None
    characters: CountField | None = None


class TurnReportResponse(ResponseModel):
    """A page of a turn's log. `nextAfter` is there when there may be more; the other members only on the first page."""

    bridge_id: str
    log: list[TurnLogLineView]
    next_after: CountField | None = None
    conversation_id: str | None = None
    user_id: str | None = None
    scope: str | None = None
    provider_id: str | None = None
    model_id: str | None = None
    started_at: InstantField | None = None
    rounds: CountField | None = None
    requests: CountField | None = None
    prompt_tokens: CountField | None = None
    completion_tokens: CountField | None = None
    cache_read_tokens: CountField | None = None
    cache_creation_tokens: CountField | None = None
    cost_usd: UsdField | None = None
    model_requests: list[ModelRequestView] | None = None


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
