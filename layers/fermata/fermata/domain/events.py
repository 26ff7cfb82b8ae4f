"""The lines of a turn's stream (contract instatic.md §2), and the two that never leave the log."""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from fermata.domain.base import DomainModel


class BridgeReadyEvent(DomainModel):
    """`undoes`: the bridge whose edits this turn takes back."""

    type: Literal["bridgeReady"] = "bridgeReady"
    bridge_id: str
    undoes: str | None = None


class TextEvent(DomainModel):
    type: Literal["text"] = "text"
    text: str


class ReasoningEvent(DomainModel):
    """The model thinking aloud; clients that do not know it skip it."""

    type: Literal["reasoning"] = "reasoning"
    text: str


class ToolCallEvent(DomainModel):
    type: Literal["toolCall"] = "toolCall"
    tool_call_id: str
    tool_name: str
    input: Any = None
    status: Literal["pending"] = "pending"


class ToolRequestEvent(DomainModel):
    """We ask the browser. `deadline` is an ISO instant; `effect_key` lets whoever acts act once.

    `revision`: what the document was at when the call was planned. `undoes`: the effect key of the edit it takes back.
    """

    type: Literal["toolRequest"] = "toolRequest"
    request_id: str
    tool_call_id: str
    tool_name: str
    input: Any = None
    effect_key: str
    deadline: str
    revision: str | None = None
    undoes: str | None = None


class ToolResultEvent(DomainModel):
    """`conflict`: nothing was done, because somebody else has changed the document."""

    type: Literal["toolResult"] = "toolResult"
    tool_call_id: str
    tool_name: str
    ok: bool
    error: str | None = None
    conflict: bool | None = None


class ContextEvent(DomainModel):
    """How full the model's window is after this round; never summed."""

    type: Literal["context"] = "context"
    prompt_tokens: int
    context_tokens: int
    cache_read_tokens: int | None = None
    cache_creation_tokens: int | None = None


class UsageEvent(DomainModel):
    """What the whole turn used; `cost_usd` is always there, a number."""

    type: Literal["usage"] = "usage"
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float
    cache_read_tokens: int | None = None
    cache_creation_tokens: int | None = None


class RoundRetractedEvent(DomainModel):
    """Forget the text and reasoning of this round: its provider call died and starts again."""

    type: Literal["roundRetracted"] = "roundRetracted"
    round: int


class HeldEvent(DomainModel):
    """Nothing will come before somebody acts: stop reading, ask again after `retry_after` seconds."""

    type: Literal["held"] = "held"
    until: str
    retry_after: int


class WarningEvent(DomainModel):
    """Something the user should know although the turn goes on (a server that silently cut the prompt, say)."""

    type: Literal["warning"] = "warning"
    message: str


class SkippedEdit(DomainModel):
    """An edit that was not taken back, and why."""

    effect_key: str
    reason: str


class UndoReport(DomainModel):
    """What an undo came to, by the effect keys of the edits, the newest first."""

    undone: tuple[str, ...]
    skipped: tuple[SkippedEdit, ...]


class ErrorEvent(DomainModel):
    type: Literal["error"] = "error"
    message: str
    code: str | None = None
    retryable: bool | None = None
    report: UndoReport | None = None


class DoneEvent(DomainModel):
    type: Literal["done"] = "done"
    report: UndoReport | None = None


class CancelledEvent(DomainModel):
    type: Literal["cancelled"] = "cancelled"
    report: UndoReport | None = None


class RoundStartedEvent(DomainModel):
    """Internal: who works on the round now. A later one supersedes its writer."""

    type: Literal["roundStarted"] = "roundStarted"
    round: int
    epoch: str
    owner: str


class ToolStartedEvent(DomainModel):
    """Internal: a call with side effects is about to run; without a result it is never run again."""

    type: Literal["toolStarted"] = "toolStarted"
    effect_key: str


Event = Annotated[
    BridgeReadyEvent
    | TextEvent
    | ReasoningEvent
    | ToolCallEvent
    | ToolRequestEvent
    | ToolResultEvent
    | ContextEvent
    | UsageEvent
    | RoundRetractedEvent
    | HeldEvent
    | WarningEvent
    | ErrorEvent
    | DoneEvent
    | CancelledEvent
    | RoundStartedEvent
    | ToolStartedEvent,
    Field(discriminator="type"),
]

events_adapter: TypeAdapter[list[Event]] = TypeAdapter(list[Event])
INTERNAL_EVENTS = (RoundStartedEvent, ToolStartedEvent)
TERMINAL_EVENTS = (ErrorEvent, DoneEvent, CancelledEvent)
TerminalEvent = ErrorEvent | DoneEvent | CancelledEvent
