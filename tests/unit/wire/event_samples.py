"""Samples of every event that leaves the log, with and without optional members.

An event without one that is written here has a sample made from its class.
"""

from fermata.domain.events import (
    EVENT_CLASSES,
    ApprovalDecidedEvent,
    ApprovalRequestedEvent,
    BridgeReadyEvent,
    CancelledEvent,
    ContextEvent,
    DoneEvent,
    EditPlanEvent,
    ErrorEvent,
    Event,
    HeldEvent,
    PromptQueuedEvent,
    ReasoningEvent,
    RoundRetractedEvent,
    SkippedEdit,
    TextEvent,
    ToolAwaitedEvent,
    ToolCallEvent,
    ToolRequestEvent,
    ToolResultEvent,
    UndoReport,
    UsageEvent,
    WarningEvent,
)
from fermata.domain.tools import ToolExecution
from tests.json_schema_samples import make_sample

SOON = "2026-01-01T00:00:00Z"
REPORT = UndoReport(undone=("b/1/0",), skipped=(SkippedEdit(effect_key="b/1/1", reason="Conflict."),))
_WRITTEN_SAMPLES: tuple[Event, ...] = (
    BridgeReadyEvent(bridge_id="b"),
    BridgeReadyEvent(bridge_id="u", undoes="b"),
    TextEvent(text="Hello"),
    ReasoningEvent(text="Hm"),
    ToolCallEvent(tool_call_id="c", tool_name="insertHtml"),
    ToolRequestEvent(
        request_id="r",
        tool_call_id="c",
        tool_name="insertHtml",
        input={},
        effect_key="t/1/c",
        deadline="2026-01-01T00:00:00Z",
        revision="r1",
        undoes="b/1/0",
    ),
    ToolResultEvent(tool_call_id="c", tool_name="insertHtml", ok=True),
    ToolResultEvent(tool_call_id="c", tool_name="insertHtml", ok=False, error="There is no such node."),
    ApprovalRequestedEvent(
        approval_id="t.1.0.n",
        tool_call_id="c",
        tool_name="publishSite",
        input={},
        input_hash="0" * 64,
        description="Publishes the site. This tool always asks.",
        reasons=("tool",),
        timestamp=SOON,
        deadline=SOON,
    ),
    ApprovalDecidedEvent(
        approval_id="t.1.0.n",
        tool_call_id="c",
        tool_name="publishSite",
        outcome="approved",
        approved=True,
        reason="Go ahead.",
        input={},
        input_hash="0" * 64,
        reasons=("tool",),
    ),
    EditPlanEvent(outcome={"status": "applied", "summary": "Done."}, is_final=True),
    PromptQueuedEvent(prompt_id="q"),
    ContextEvent(prompt_tokens=1, context_tokens=2),
    ContextEvent(prompt_tokens=1, context_tokens=2, cache_read_tokens=1, cache_creation_tokens=0),
    UsageEvent(prompt_tokens=1, completion_tokens=1, cost_usd=0.5),
    RoundRetractedEvent(round=1),
    HeldEvent(until=SOON, retry_after=30),
    WarningEvent(message="The server cut the prompt."),
    ErrorEvent(message="The provider failed."),
    ErrorEvent(message="The provider failed.", code="provider_error", retryable=True),
    DoneEvent(),
    DoneEvent(report=REPORT),
    CancelledEvent(),
    CancelledEvent(report=REPORT),
    ErrorEvent(message="Nobody answered.", report=REPORT),
    ToolAwaitedEvent(tool_call_id="c", tool_name="pim_getProduct", until="2026-11-28T09:30:00.000Z"),
    ToolResultEvent(
        tool_call_id="c",
        tool_name="pim_getProduct",
        ok=False,
        error="pim.getProduct answered 503.",
        execution=ToolExecution(code="tool_execution_failed", retryable=True, latency_ms=12, attempts=2),
    ),
    ToolResultEvent(tool_call_id="c", tool_name="restore", ok=False, error="The node has changed.", conflict=True),
)


def make_event_sample(model: type[Event]) -> Event:
    """Make an event with a value for each member that it must have."""
    schema = model.model_json_schema(by_alias=True)
    required = {name: schema["properties"][name] for name in schema.get("required", ())}
    definitions = schema.get("$defs", {})
    return model.model_validate({name: make_sample(member, definitions) for name, member in required.items()})


EVENT_SAMPLES: tuple[Event, ...] = (
    *_WRITTEN_SAMPLES,
    *(
        make_event_sample(model)
        for model in EVENT_CLASSES.values()
        if model.visible_to and model not in {type(event) for event in _WRITTEN_SAMPLES}
    ),
)
