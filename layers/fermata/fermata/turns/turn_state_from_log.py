"""Compute the state of a turn: the fold of all events of its log, stored with every entry (decision 0001)."""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any, Literal

from fermata.domain.approval_reasons import ApprovalReason
from fermata.domain.events import (
    NOT_SENT_CODE,
    ApprovalDecidedEvent,
    EditPlanEvent,
    Event,
    PromptQueuedEvent,
    ReasoningEvent,
    RequestFailedEvent,
    RequestStartedEvent,
    RoundRetractedEvent,
    RoundStartedEvent,
    TerminalEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    WarningEvent,
)
from fermata.domain.messages import UsageSoFar
from fermata.domain.value_dataclass import value_dataclass

TurnPhase = Literal["started", "asking", "calls", "ready", "ended"]
"""started: nothing done yet · asking: a model request is (or was) under way · calls: the round's tool calls are being
answered · ready: the next round may begin · ended: nothing may follow."""

MAX_DENIED_INPUTS = 20

_STORED_NAMES = {
    "round": "r",
    "phase": "p",
    "epoch": "e",
    "owner": "w",
    "request_attempts": "t",
    "is_request_unsent": "n",
    "round_started_number": "b",
    "text_chars": "c",
    "reasoning_chars": "q",
    "open_calls": "o",
    "next_position": "m",
    "snapshot_key": "s",
    "prompt_tokens": "up",
    "completion_tokens": "uc",
    "cache_read_tokens": "ur",
    "cache_creation_tokens": "uw",
    "cost": "u$",
    "context_tokens": "uk",
    "estimated_prompt_tokens": "ue",
    "held_until": "h",
    "revision": "v",
    "last_edit_key": "j",
    "forced_answer_reason": "x",
    "has_webhooks": "k",
    "denied_inputs": "d",
    "approved_new_tools": "a",
    "approved_cost": "u+",
    "is_cost_denied": "u-",
    "has_queued_prompts": "y",
    "refused_plans": "pr",
    "is_answered": "pf",
    "is_stopping": "sp",
    "hook_flags": "hf",
    "sub_agent_count": "sa",
    "is_prompt_cut_told": "pc",
}


@value_dataclass(frozen=True)
class TurnState:
    round: int = 0
    phase: TurnPhase = "started"
    epoch: str = ""
    """Epoch of the invocation that has taken the round."""
    owner: str = ""
    """Id of that invocation."""
    request_attempts: int = 0
    """How often this round's model request was begun without being committed or withdrawn (decision 0186)."""
    is_request_unsent: bool = False
    """While asking: no request is under way. It waits for its budget hold, or the last one failed (decision 0146)."""
    round_started_number: int = 0
    """Number of this round's last roundStarted event."""
    text_chars: int = 0
    """Characters of text streamed since then."""
    reasoning_chars: int = 0
    """Characters of reasoning streamed since then."""
    open_calls: int = 0
    next_position: int = 0
    """Position of the conversation's next message."""
    snapshot_key: str = ""
    """Blob key of the newest snapshot."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    cost: str = "0"
    """USD, as a decimal number."""
    context_tokens: int = 0
    estimated_prompt_tokens: int = 0
    """Prompt tokens expected for the turn's first request, estimated from the length of the conversation."""
    held_until: int = 0
    """Epoch seconds until which the workflow waits in Hold; 0 when it does not."""
    revision: str = ""
    """The document's revision, as the editor reported it last (decision 0115)."""
    last_edit_key: str = ""
    """In an undo: journal key of the last edit that was processed."""
    forced_answer_reason: str = ""
    """Why the model had to answer without tools: the code of the warning (decision 0202)."""
    denied_inputs: tuple[str, ...] = ()
    """Hashes of the calls that were denied, which are not asked for again."""
    approved_new_tools: tuple[str, ...] = ()
    """Tools that were approved in this turn because they were new."""
    approved_cost: str = "0"
    """The cost of the turn, in USD, when a person let it go on for the last time."""
    is_cost_denied: bool = False
    """Whether a person has not let the turn go on because of its cost."""
    refused_plans: int = 0
    """How many plans of the turn were refused."""
    is_answered: bool = False
    """Whether the turn ends with the round's calls, because a plan is its answer."""
    is_stopping: bool = False
    """Whether the turn ends with the round's calls, because its agent says so."""
    sub_agent_count: int = 0
    """How many turns of sub-agents the turn has started, with those that these may start."""
    is_prompt_cut_told: bool = False
    """Whether the user was told that the model's server cut a prompt of the turn."""
    has_queued_prompts: bool = False
    """Whether prompts wait for the turn to end."""
    has_webhooks: bool = False
    """Whether the tenant had webhooks when the turn started, so that they are told about its events."""
    hook_flags: str = ""
    """At which points endpoints of the agent are called, as letters (`turns/hooks/hook_points.py`)."""
    unknown_members: tuple[tuple[str, Any], ...] = ()
    """Stored names and values that a newer version wrote. They are written again as they are (decision 0253)."""

    def after_events(self, events: Iterable[Event]) -> "TurnState":
        state = self
        for event in events:
            state = state._after_event(event)
        return state

    def _after_event(self, event: Event) -> "TurnState":
        match event:
            case RoundStartedEvent():
                return self._after_round_started(event)
            case RequestFailedEvent():
                withdrawn_count = int(event.code == NOT_SENT_CODE)
                attempts = max(self.request_attempts - withdrawn_count, 0)
                return replace(self, is_request_unsent=True, request_attempts=attempts)
            case RequestStartedEvent():
                return replace(self, is_request_unsent=False)
            case TextEvent():
                return replace(self, text_chars=self.text_chars + len(event.text))
            case ReasoningEvent():
                return replace(self, reasoning_chars=self.reasoning_chars + len(event.text))
            case RoundRetractedEvent():
                return replace(self, text_chars=0, reasoning_chars=0)
            case ToolCallEvent():
                return replace(self, phase="calls", open_calls=self.open_calls + 1, request_attempts=0)
            case ToolResultEvent():
                return self._after_tool_result()
            case PromptQueuedEvent():
                return replace(self, has_queued_prompts=True)
            case ApprovalDecidedEvent():
                return self._after_approval_decided(event)
            case EditPlanEvent():
                return replace(self, refused_plans=self.refused_plans + 1, is_answered=event.is_final)
            case WarningEvent(code="promptCut"):
                return replace(self, is_prompt_cut_told=True)
            case WarningEvent() if event.code:
                return replace(self, forced_answer_reason=event.code)
            case TerminalEvent():
                return replace(self, phase="ended", held_until=0)
            case _:
                return self

    def _after_round_started(self, event: RoundStartedEvent) -> "TurnState":
        owned = replace(self, epoch=event.epoch, owner=event.owner)
        if self.phase == "calls" and event.round == self.round:
            return owned
        is_repeated = event.round == self.round and self.phase == "asking"
        return replace(
            owned,
            round=event.round,
            phase="asking",
            request_attempts=self.request_attempts + 1 if is_repeated else 1,
            is_request_unsent=bool(event.awaits_budget_hold),
            text_chars=0,
            reasoning_chars=0,
        )

    def _after_approval_decided(self, event: ApprovalDecidedEvent) -> "TurnState":
        is_about_cost = ApprovalReason.TURN_COST in event.reasons
        if not event.approved:
            denied = (*self.denied_inputs, event.input_hash)[-MAX_DENIED_INPUTS:]
            return replace(self, denied_inputs=denied, is_cost_denied=self.is_cost_denied or is_about_cost)
        approved = (*self.approved_new_tools, event.tool_name) if ApprovalReason.NEW_TOOL in event.reasons else ()
        return replace(
            self,
            approved_new_tools=approved or self.approved_new_tools,
            approved_cost=self.cost if is_about_cost else self.approved_cost,
        )

    def _after_tool_result(self) -> "TurnState":
        if self.open_calls == 1:
            return replace(self, open_calls=0, phase="ready", held_until=0)
        return replace(self, open_calls=self.open_calls - 1, phase="calls")

    @property
    def has_open_request(self) -> bool:
        """Whether a model request was sent and not accounted for."""
        return self.phase == "asking" and not self.is_request_unsent

    @property
    def streamed_chars(self) -> int:
        """Characters of text and reasoning that clients have been shown in this round."""
        return self.text_chars + self.reasoning_chars

    @property
    def expected_prompt_tokens(self) -> int:
        """Prompt tokens of the request under way: at least the context of the request before it."""
        return self.context_tokens or self.estimated_prompt_tokens

    @property
    def cost_usd(self) -> Decimal:
        """The cost of the turn's requests so far, in USD. The state stores it as text, so that no digit is lost."""
        return Decimal(self.cost)

    @property
    def usage_so_far(self) -> UsageSoFar:
        """What the turn's requests have used so far, as messages store it."""
        return UsageSoFar(
            prompt_tokens=self.prompt_tokens, completion_tokens=self.completion_tokens, cost_usd=self.cost_usd
        )

    def to_item(self) -> dict[str, Any]:
        """Return the stored form: short names, defaults left out. Most entries must stay under 1 KB, one write unit."""
        known = {stored: getattr(self, name) for name, stored in _STORED_NAMES.items()}
        changed = {stored: value for stored, value in known.items() if value != _STORED_DEFAULTS[stored]}
        return changed | dict(self.unknown_members)

    @classmethod
    def from_item(cls, item: dict[str, Any]) -> "TurnState":
        known = {name: item[stored] for name, stored in _STORED_NAMES.items() if stored in item}
        known |= {name: tuple(known[name]) for name in ("denied_inputs", "approved_new_tools") if name in known}
        unknown = tuple((stored, value) for stored, value in item.items() if stored not in _STORED_DEFAULTS)
        return cls(**known, unknown_members=unknown)


_STORED_DEFAULTS = {stored: getattr(TurnState(), name) for name, stored in _STORED_NAMES.items()}
