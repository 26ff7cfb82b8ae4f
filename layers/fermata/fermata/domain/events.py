"""Define the events of a turn: the entries of its log, and the lines of its stream.

An event is one class. A subclass of `Event` with a default for `type` is registered: the log reads it, the OpenAPI
document describes it, and each renderer writes it for the dialects in `visible_to`.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, get_args

from pydantic import Field, ValidationError
from pydantic_core import InitErrorDetails

from fermata.domain.base import DomainModel
from fermata.domain.dialect import Dialect
from fermata.domain.tools import ToolExecution

EVENT_CLASSES: dict[str, type["Event"]] = {}
"""Every registered event class by its `type`, in the order of definition."""


class Event(DomainModel):
    """Base class of all events. The class of an event that does not occur is never built (decision 0169)."""

    visible_to: ClassVar[Sequence[Dialect]] = get_args(Dialect)
    """Dialects whose clients receive the event. An event that is visible to none never leaves the log."""
    members_kept_when_null: ClassVar[Sequence[str]] = ()
    """Members that a stream line has even when they are null. All other members are left out when they are null."""

    type: str

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        event_type = cls.model_fields["type"].default
        if not isinstance(event_type, str):
            return  # a base class: its subclasses have a type
        if event_type in EVENT_CLASSES:
            raise TypeError(f"There are two events of type {event_type!r}.")
        EVENT_CLASSES[event_type] = cls


def parse_events(value: Any) -> tuple[Event, ...]:
    """Parse a list of events as the log stores them. Only the classes of these events are built (decision 0169).

    Raises:
        ValidationError: An event has no registered type, or a member of it is wrong.
    """
    return tuple(_find_event_class(event).model_validate(event) for event in value)


def _find_event_class(event: Any) -> type[Event]:
    event_type = event.get("type") if isinstance(event, dict) else None
    if event_type not in EVENT_CLASSES:
        problem = {"discriminator": "'type'", "tag": str(event_type), "expected_tags": ", ".join(EVENT_CLASSES)}
        details = InitErrorDetails(type="union_tag_invalid", input=event, ctx=problem)
        raise ValidationError.from_exception_data("Event", [details])
    return EVENT_CLASSES[event_type]


class BridgeReadyEvent(Event):
    """The turn has started. `undoes` is the bridge whose edits the turn takes back."""

    type: Literal["bridgeReady"] = "bridgeReady"
    bridge_id: str
    undoes: str | None = None


class TextEvent(Event):
    """A piece of the answer's text."""

    type: Literal["text"] = "text"
    text: str


class ReasoningEvent(Event):
    """A piece of the model's reasoning. Clients that do not know it skip it."""

    visible_to = ("fermata",)

    type: Literal["reasoning"] = "reasoning"
    text: str


class ToolCallEvent(Event):
    """A tool call of the model."""

    members_kept_when_null = ("input",)

    type: Literal["toolCall"] = "toolCall"
    tool_call_id: str
    tool_name: str
    input: Any = None
    status: Literal["pending"] = "pending"


class ToolRequestEvent(Event):
    """A request to the editor to run a tool.

    `deadline` is an ISO instant. `effect_key` lets the editor run the call once. `revision` is the document's revision
    when the call was planned. `undoes` is the effect key of the edit that the call takes back.
    """

    members_kept_when_null = ("input",)

    type: Literal["toolRequest"] = "toolRequest"
    request_id: str
    tool_call_id: str
    tool_name: str
    input: Any = None
    effect_key: str
    deadline: str
    revision: str | None = None
    undoes: str | None = None


class ToolResultEvent(Event):
    """The outcome of a tool call. `conflict`: nothing was done, because the document has changed meanwhile.

    `execution` is there for tools with a manifest: how the call went. `output` is what the model reads of it,
    shortened, in turns of clients that show it (decision 0379); of some tools it is more than the model reads.
    """

    type: Literal["toolResult"] = "toolResult"
    tool_call_id: str
    tool_name: str
    ok: bool
    error: str | None = None
    conflict: bool | None = None
    execution: ToolExecution | None = None
    output: Any = None


class ToolAwaitedEvent(Event):
    """A remote tool has accepted a call, and sends the result until the instant `until`."""

    visible_to = ("fermata",)

    type: Literal["toolAwaited"] = "toolAwaited"
    tool_call_id: str
    tool_name: str
    until: str


class SubAgentStartedEvent(Event):
    """Another agent works on a tool call, in a turn of its own whose bridge is `bridge_id`."""

    visible_to = ("fermata",)

    type: Literal["subAgentStarted"] = "subAgentStarted"
    tool_call_id: str
    tool_name: str
    agent: str
    bridge_id: str


class ApprovalRequestedEvent(Event):
    """A tool call waits until a person approves or denies it, at the longest until `deadline`.

    `reasons` say why: `tool`, `rule`, `outsideContent`, `newTool`, `turnCost`; of an edit plan, which its turn does not
    wait for, `destructivePlan` or `planFirst`. `description` says it in words. A decision that names `input_hash` is
    about no other input.
    """

    visible_to = ("fermata",)
    members_kept_when_null = ("input",)

    type: Literal["approvalRequested"] = "approvalRequested"
    approval_id: str
    tool_call_id: str
    tool_name: str
    input: Any = None
    input_hash: str
    description: str
    reasons: tuple[str, ...]
    timestamp: str
    deadline: str


ApprovalOutcome = Literal["approved", "denied", "expired", "stale"]
"""`expired`: nobody decided in time. `stale`: the tool or its agent had changed. Both count as denied."""


class ApprovalDecidedEvent(Event):
    """What became of an approval. `input` is the one that the approver has put in the place of the model's."""

    visible_to = ("fermata",)

    type: Literal["approvalDecided"] = "approvalDecided"
    approval_id: str
    tool_call_id: str
    tool_name: str
    outcome: ApprovalOutcome
    approved: bool
    reason: str | None = None
    input: Any = None
    input_hash: str
    reasons: tuple[str, ...] = ()


class EditPlanEvent(Event):
    """What became of a plan that the model has submitted (docs/edit-plans.md).

    `outcome` has its status, the operations as they were normalized, and what was changed about them. `is_final`: the
    turn ends with it.
    """

    visible_to = ("fermata",)

    type: Literal["editPlan"] = "editPlan"
    outcome: dict[str, Any]
    is_final: bool


class PromptQueuedEvent(Event):
    """A prompt waits for this turn to end, and is then started."""

    visible_to = ("fermata",)

    type: Literal["promptQueued"] = "promptQueued"
    prompt_id: str


class ContextEvent(Event):
    """How full the model's context window is after a round. It is never summed."""

    type: Literal["context"] = "context"
    prompt_tokens: int
    context_tokens: int
    cache_read_tokens: int | None = None
    cache_creation_tokens: int | None = None


class UsageEvent(Event):
    """What the whole turn used. `cost_usd` is always there and a number."""

    type: Literal["usage"] = "usage"
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float
    cache_read_tokens: int | None = None
    cache_creation_tokens: int | None = None


class RoundRetractedEvent(Event):
    """The text and reasoning of this round are void: its provider request failed and starts again."""

    visible_to = ("fermata",)

    type: Literal["roundRetracted"] = "roundRetracted"
    round: int


class HeldEvent(Event):
    """No event comes until a person acts: stop reading, and ask again after `retry_after` seconds."""

    visible_to = ("fermata",)

    type: Literal["held"] = "held"
    until: str
    retry_after: int


class WarningEvent(Event):
    """A problem that the user should know about although the turn continues, for example a prompt that a server cut."""

    type: Literal["warning"] = "warning"
    message: str
    code: Literal["roundLimit", "repeatedCall", "repeatedFailures", "turnCost", "promptCut"] | None = None
    """Why the model had to answer without tools; or that its server cut the prompt, which a turn tells once."""


class DataPartEvent(Event):
    """A part of the response that an endpoint of the agent has written, or the service: `name` begins with `data-`.

    A part with the same name and `part_id` replaces an earlier one. A transient part is not kept with the message.
    """

    visible_to = ("fermata",)
    members_kept_when_null = ("data",)

    type: Literal["dataPart"] = "dataPart"
    name: str
    data: Any = None
    part_id: str | None = None
    transient: bool | None = None


class FinishHooksRunEvent(Event):
    """The endpoints at the end of the turn were called before it ended."""

    visible_to = ()

    type: Literal["finishHooksRun"] = "finishHooksRun"


class SkippedEdit(DomainModel):
    """An edit that an undo did not take back, and why. An editor's own reason has no code."""

    effect_key: str
    reason: str
    code: str | None = None


class UndoReport(DomainModel):
    """The result of an undo, by the effect keys of the edits, the newest first."""

    undone: tuple[str, ...]
    skipped: tuple[SkippedEdit, ...]


class TerminalEvent(Event):
    """Base class of the events that end a turn. `report` is there when the turn was an undo."""

    type: Literal["error", "done", "cancelled"]
    report: UndoReport | None = None


class ErrorEvent(TerminalEvent):
    """The turn has failed."""

    type: Literal["error"] = "error"
    message: str
    code: str | None = None
    retryable: bool | None = None


class DoneEvent(TerminalEvent):
    """The turn has finished."""

    type: Literal["done"] = "done"


class CancelledEvent(TerminalEvent):
    """The turn was cancelled: by its user, or for a `reason` that its readers have to be told."""

    type: Literal["cancelled"] = "cancelled"
    reason: str | None = None


class RoundStartedEvent(Event):
    """A worker has taken the round. It supersedes the worker before.

    The round's model request is sent right after it, or after `requestStarted` if `awaits_budget_hold` (decision 0146).
    """

    visible_to = ()

    type: Literal["roundStarted"] = "roundStarted"
    round: int
    epoch: str
    owner: str
    awaits_budget_hold: bool | None = Field(default=None, alias="awaitsHold")


NOT_SENT_CODE = "not_sent"
"""Code of a request that was announced and not sent."""


class RequestFailedEvent(Event):
    """The round's model request failed before anything was streamed, or was announced and not sent (decision 0185).

    It is sent again after `requestStarted`, or after another `roundStarted` if it was not sent: that attempt does not
    count (decision 0186).
    """

    visible_to = ()

    type: Literal["requestFailed"] = "requestFailed"
    code: str


class RequestStartedEvent(Event):
    """The round's model request is sent right after this."""

    visible_to = ()

    type: Literal["requestStarted"] = "requestStarted"


class ToolStartedEvent(Event):
    """A call with side effects is about to run. Without a result it is never run again."""

    visible_to = ()

    type: Literal["toolStarted"] = "toolStarted"
    effect_key: str
