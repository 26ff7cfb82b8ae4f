"""Where a turn stands after an entry of its log: the fold of all events so far, stored with every entry."""

from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import replace as replaced
from decimal import Decimal
from typing import Any, Literal

from fermata.domain.events import (
    Event,
    ReasoningEvent,
    RoundRetractedEvent,
    RoundStartedEvent,
    TerminalEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
)

TurnPhase = Literal["started", "asking", "calls", "ready", "ended"]
"""started: nothing done yet · asking: a provider is (or was) asked · calls: the round's calls are being answered ·
ready: the next round may begin · ended: nothing may follow."""

_SHORT = {
    "round": "r",
    "phase": "p",
    "epoch": "e",
    "owner": "w",
    "tries": "t",
    "begun": "b",
    "chars": "c",
    "thoughts": "q",
    "open_calls": "o",
    "position": "m",
    "snapshot": "s",
    "prompt": "up",
    "completion": "uc",
    "cache_read": "ur",
    "cache_creation": "uw",
    "cost": "u$",
    "context": "uk",
    "estimate": "ue",
    "until": "h",
    "revision": "v",
    "edit": "j",
}


@dataclass(frozen=True)
class TurnState:
    round: int = 0
    phase: TurnPhase = "started"
    epoch: str = ""
    owner: str = ""
    tries: int = 0
    """How often this round's provider request was begun without coming to its commit."""
    begun: int = 0
    """Number of this round's last roundStarted."""
    chars: int = 0
    """Characters of text shown in this round since it was begun."""
    thoughts: int = 0
    """Characters of reasoning shown since then."""
    open_calls: int = 0
    position: int = 0
    """Where the next message row goes."""
    snapshot: str = ""
    """Blob key of the newest snapshot."""
    prompt: int = 0
    completion: int = 0
    cache_read: int = 0
    cache_creation: int = 0
    cost: str = "0"
    context: int = 0
    estimate: int = 0
    """Prompt tokens the turn's first request was expected to have, from the length of what it says."""
    until: int = 0
    """Epoch seconds until which the turn is held without a clock of its own; 0 when it is not."""
    revision: str = ""
    """What the editor said last that its document is at."""
    edit: str = ""
    """In an undo: the edit that was seen to last, by its key in the journal."""

    def after_events(self, events: Iterable[Event]) -> "TurnState":
        standing = self
        for event in events:
            standing = standing._after(event)
        return standing

    def _after(self, event: Event) -> "TurnState":
        match event:
            case RoundStartedEvent():
                return self._begin(event)
            case TextEvent():
                return self.replace(chars=self.chars + len(event.text))
            case ReasoningEvent():
                return self.replace(thoughts=self.thoughts + len(event.text))
            case RoundRetractedEvent():
                return self.replace(chars=0, thoughts=0)
            case ToolCallEvent():
                return self.replace(phase="calls", open_calls=self.open_calls + 1, tries=0)
            case ToolResultEvent():
                left = self.open_calls - 1
                return self.replace(
                    open_calls=left, phase="calls" if left else "ready", until=0 if not left else self.until
                )
            case TerminalEvent():
                return self.replace(phase="ended", until=0)
            case _:
                return self

    def _begin(self, event: RoundStartedEvent) -> "TurnState":
        taken = self.replace(epoch=event.epoch, owner=event.owner)
        if self.phase == "calls" and event.round == self.round:
            return taken
        tries = self.tries + 1 if event.round == self.round and self.phase == "asking" else 1
        return taken.replace(round=event.round, phase="asking", tries=tries, chars=0, thoughts=0)

    def replace(self, **changes: Any) -> "TurnState":
        return replaced(self, **changes)

    @property
    def shown_chars(self) -> int:
        return self.chars + self.thoughts

    @property
    def expected_prompt_tokens(self) -> int:
        """Prompt tokens of the request under way: at least what the one before filled."""
        return self.context or self.estimate

    @property
    def cost_usd(self) -> Decimal:
        return Decimal(self.cost)

    def to_item(self) -> dict[str, Any]:
        """Short names, and only what differs from the beginning: most entries must stay under 1 KB."""
        return {_SHORT[name]: value for name, value in vars(self).items() if value != _FRESH[name]}

    @classmethod
    def from_item(cls, item: dict[str, Any]) -> "TurnState":
        return cls(**{name: item[short] for name, short in _SHORT.items() if short in item})


_FRESH = vars(TurnState())
