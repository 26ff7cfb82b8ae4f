"""The lines of a turn's stream (contract instatic.md §2), and the two that never leave the log."""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from fermata.words.base import Word


class BridgeReady(Word):
    type: Literal["bridgeReady"] = "bridgeReady"
    bridge_id: str


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
    """We ask the browser. `deadline` is an ISO instant; `effect_key` lets whoever acts act once."""

    type: Literal["toolRequest"] = "toolRequest"
    request_id: str
    tool_call_id: str
    tool_name: str
    input: Any = None
    effect_key: str
    deadline: str


class ToolResult(Word):
    type: Literal["toolResult"] = "toolResult"
    tool_call_id: str
    tool_name: str
    ok: bool
    error: str | None = None


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


class TurnError(Word):
    type: Literal["error"] = "error"
    message: str
    code: str | None = None
    retryable: bool | None = None


class Done(Word):
    type: Literal["done"] = "done"


class Cancelled(Word):
    type: Literal["cancelled"] = "cancelled"


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
