"""The lines of a turn's stream (contract instatic.md §2), and the two that never leave the log."""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from fermata.words.base import Word


class BridgeReady(Word):
    """`undoes`: the bridge whose edits this turn takes back."""

    type: Literal["bridgeReady"] = "bridgeReady"
    bridge_id: str
    undoes: str | None = None


class Text(Word):
    type: Literal["text"] = "text"
    text: str


class Reasoning(Word):
    """The model thinking aloud; clients that do not know it skip it."""

    type: Literal["reasoning"] = "reasoning"
    text: str


class ToolCall(Word):
    type: Literal["toolCall"] = "toolCall"
    tool_call_id: str
    tool_name: str
    input: Any = None
    status: Literal["pending"] = "pending"


class ToolRequest(Word):
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


class ToolResult(Word):
    """`conflict`: nothing was done, because somebody else has changed the document."""

    type: Literal["toolResult"] = "toolResult"
    tool_call_id: str
    tool_name: str
    ok: bool
    error: str | None = None
    conflict: bool | None = None


class Context(Word):
    """How full the model's window is after this round; never summed."""

    type: Literal["context"] = "context"
    prompt_tokens: int
    context_tokens: int
    cache_read_tokens: int | None = None
    cache_creation_tokens: int | None = None


class UsageReport(Word):
    """What the whole turn used; `cost_usd` is always there, a number."""

    type: Literal["usage"] = "usage"
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float
    cache_read_tokens: int | None = None
    cache_creation_tokens: int | None = None


class RoundRetracted(Word):
    """Forget the text and reasoning of this round: its provider call died and starts again."""

    type: Literal["roundRetracted"] = "roundRetracted"
    round: int


class Held(Word):
    """Nothing will come before somebody acts: stop reading, ask again after `retry_after` seconds."""

    type: Literal["held"] = "held"
    until: str
    retry_after: int


class Warned(Word):
    """Something the user should know although the turn goes on (a server that silently cut the prompt, say)."""

    type: Literal["warning"] = "warning"
    message: str


class Skipped(Word):
    """An edit that was not taken back, and why."""

    effect_key: str
    reason: str


class UndoReport(Word):
    """What an undo came to, by the effect keys of the edits, the newest first."""

    undone: tuple[str, ...]
    skipped: tuple[Skipped, ...]


class TurnError(Word):
    type: Literal["error"] = "error"
    message: str
    code: str | None = None
    retryable: bool | None = None
    report: UndoReport | None = None


class Done(Word):
    type: Literal["done"] = "done"
    report: UndoReport | None = None


class Cancelled(Word):
    type: Literal["cancelled"] = "cancelled"
    report: UndoReport | None = None


class RoundStarted(Word):
    """Internal: who works on the round now. A later one supersedes its writer."""

    type: Literal["roundStarted"] = "roundStarted"
    round: int
    epoch: str
    owner: str


class ToolStarted(Word):
    """Internal: a call with side effects is about to run; without a result it is never run again."""

    type: Literal["toolStarted"] = "toolStarted"
    effect_key: str


Event = Annotated[
    BridgeReady
    | Text
    | Reasoning
    | ToolCall
    | ToolRequest
    | ToolResult
    | Context
    | UsageReport
    | RoundRetracted
    | Held
    | Warned
    | TurnError
    | Done
    | Cancelled
    | RoundStarted
    | ToolStarted,
    Field(discriminator="type"),
]

events_adapter: TypeAdapter[list[Event]] = TypeAdapter(list[Event])
INTERNAL = (RoundStarted, ToolStarted)
TERMINAL = (TurnError, Done, Cancelled)
End = TurnError | Done | Cancelled
