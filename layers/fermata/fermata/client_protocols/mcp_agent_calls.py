"""Ask an agent for an MCP client: the last words of its turn are the result of the call (decision 0378)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fermata.aws.dynamodb_items_and_writes import Write
from fermata.aws.resources import Resources
from fermata.client_protocols.client_messages import ClientPrompt
from fermata.client_protocols.client_turns import ClientRequest, start_client_turn
from fermata.client_protocols.mcp_calls import (
    McpCall,
    SettledCall,
    build_call_counts,
    build_mcp_result,
    require_room_for_prompt,
)
from fermata.conversations.conversation_store import create_conversation
from fermata.conversations.discard_unused import discard_unused_conversation
from fermata.domain.approval_reasons import ApprovalReason
from fermata.domain.blocks import TextBlock
from fermata.domain.conversation import Conversation
from fermata.domain.errors import ApiError
from fermata.domain.events import (
    ApprovalDecidedEvent,
    ApprovalRequestedEvent,
    DoneEvent,
    ErrorEvent,
    Event,
    RoundRetractedEvent,
    SubAgentStartedEvent,
    TerminalEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
)
from fermata.domain.tools import ToolOutput
from fermata.limits.reader_leases import ReaderLease
from fermata.turns.start.plan_messages import PLANNED_SCOPE
from fermata.turns.start.turn_prompt import no_start_writes
from fermata.turns.turn import Turn, build_turn_pk
from fermata.turns.turn_log import read_entries_from
from fermata.wire.http.routing import RequestContext

WAITING_AGENT_MESSAGE = (
    "The agent waits until a person has decided about a call of its tools, in the workspace's list of approvals. Then "
    "it goes on by itself, and its answer will be in the conversation {}."
)
SLOW_AGENT_MESSAGE = (
    "The agent is still at work, and this call has reached its limit of time. Its answer will be in the "
    "conversation {}."
)
_UNAWAITED_REASONS = {ApprovalReason.DESTRUCTIVE_PLAN, ApprovalReason.PLAN_FIRST}
"""Of approvals for which no turn waits."""
SILENT_AGENT_MESSAGE = "The agent has finished without words."
MAX_PROMPT_CHARS = 100_000


def ask_agent(context: RequestContext, scope: str, arguments: Mapping[str, Any], space: str) -> McpCall:
    """Start a turn of an agent in a conversation of its own. Confirmed tools run unasked, as the client was asked.

    The conversation names the space, so that it counts for an agent that works in one, and for no other. A call that
    asks the studio's agent counts for the plan as a message to it, and not as a call besides (decision 0530).

    Args:
        context: The request of the client.
        scope: That of the agent.
        arguments: As the client sent them.
        space: The content space that the client or its connector names.
    """
    prompt = arguments.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip() or len(prompt) > MAX_PROMPT_CHARS:
        return SettledCall(ToolOutput.failure(f"'prompt' is a text of 1 to {MAX_PROMPT_CHARS:,} characters."))
    resources, caller = context.resources, context.caller
    counts = no_start_writes if scope == PLANNED_SCOPE else lambda _turn: build_call_counts(context)
    counts("")  # refuses before a conversation is there
    lease = ReaderLease.take(resources, caller, context.caller_limits)
    with lease.released_on_failure():
        require_room_for_prompt(context)
        conversation = create_conversation(resources, caller, scope, None, None, "", space=space)
        turn = _start_turn(context, conversation, prompt.strip(), counts)
    deadline = resources.clock.monotonic() + resources.settings.reader_seconds
    return AgentCall(resources, turn, lease, deadline)


def _start_turn(
    context: RequestContext, conversation: Conversation, prompt: str, build_counts: Callable[[str], Sequence[Write]]
) -> Turn:
    """Start the turn. A prompt that is refused leaves no conversation."""
    request = ClientRequest(
        protocol="mcp",
        conversation=conversation,
        prompt=ClientPrompt((TextBlock(text=prompt),)),
        client_tools=(),
        has_browser_tools=False,
        runs_confirmed_tools=True,
        build_start_writes=build_counts,
    )
    try:
        return start_client_turn(context, None, request).turn
    except ApiError:
        discard_unused_conversation(context.resources, conversation)
        raise


@dataclass
class AgentCall:
    """A turn of an agent whose last words are the result of the call.

    Attributes:
        deadline: When the call ends without them, on the monotonic clock.
        log: What was read of the turn.
    """

    resources: Resources
    turn: Turn
    lease: ReaderLease
    deadline: float
    text: str = ""
    end: TerminalEvent | None = None
    log: "_WatchedLog" = field(init=False)

    def __post_init__(self) -> None:
        self.log = _WatchedLog(self.turn.tenant, self.turn.id)

    def advance(self) -> dict[str, Any] | None:
        """Read the log on. Only the words after the last call of a tool are the answer."""
        self._read_on()
        if self.end is None and (note := self._find_reason_to_stop()):
            self.lease.release()
            return build_mcp_result(ToolOutput.success(note.format(self.turn.conversation)))
        if self.end is None:
            return None
        self.lease.release()
        if isinstance(self.end, DoneEvent):
            return build_mcp_result(ToolOutput.success(self.text.strip() or SILENT_AGENT_MESSAGE))
        words = self.end.message if isinstance(self.end, ErrorEvent) else "The turn of the agent was cancelled."
        return build_mcp_result(ToolOutput.failure(words))

    def _find_reason_to_stop(self) -> str:
        """Return what the client is told of a turn that it should not wait for; empty if it should."""
        if self.log.waits_for_person:
            return WAITING_AGENT_MESSAGE
        return SLOW_AGENT_MESSAGE if self.resources.clock.monotonic() >= self.deadline else ""

    def _read_on(self) -> None:
        for event in self.log.read_on(self.resources):
            match event:
                case TextEvent():
                    self.text += event.text
                case RoundRetractedEvent() | ToolCallEvent():
                    self.text = ""
                case TerminalEvent():
                    self.end = event

    def close(self) -> None:
        """Count the reader no more. The turn goes on by itself."""
        self.resources.clock.start_thread(self.lease.release, "release-reader")


@dataclass
class _WatchedLog:
    """What was read of a turn's log, and of those of its sub-agents while they work.

    Attributes:
        undecided: The approvals that the turn waits for.
        sub_agents: The logs of its sub-agents, by the calls that they answer.
    """

    tenant: str
    turn_id: str
    next_number: int = 1
    undecided: set[str] = field(default_factory=set)
    sub_agents: "dict[str, _WatchedLog]" = field(default_factory=dict)

    @property
    def waits_for_person(self) -> bool:
        """Whether it, or an agent that works for it, goes on only when a person has decided."""
        return bool(self.undecided) or any(one.waits_for_person for one in self.sub_agents.values())

    def read_on(self, resources: Resources) -> list[Event]:
        """Return the turn's next events."""
        events: list[Event] = []
        for entry in read_entries_from(resources, build_turn_pk(self.tenant, self.turn_id), self.next_number):
            events += entry.events
            self.next_number = entry.next_number
        for event in events:
            self._note(event)
        for one in self.sub_agents.values():
            one.read_on(resources)
        return events

    def _note(self, event: Event) -> None:
        match event:
            case ApprovalRequestedEvent() if not _UNAWAITED_REASONS & {*event.reasons}:
                self.undecided.add(event.approval_id)
            case ApprovalDecidedEvent():
                self.undecided.discard(event.approval_id)
            case SubAgentStartedEvent():
                self.sub_agents[event.tool_call_id] = _WatchedLog(self.tenant, event.bridge_id)
            case ToolResultEvent():
                self.sub_agents.pop(event.tool_call_id, None)
            case TerminalEvent():
                self.undecided.clear()
                self.sub_agents.clear()
