"""Tell the next invocation where the log ends, as far as this writer knows (decisions 0004, 0178 and 0185)."""

import hashlib
from typing import Any, Self

from fermata.domain.value_dataclass import value_dataclass
from fermata.turns.turn_state_from_log import TurnState


@value_dataclass(frozen=True)
class InvocationHint:
    """What the workflow hands on. It decides nothing: what is read shows whether it holds, or an append at `next`."""

    round: int = 0
    entry: int = 1
    """Number of the last entry's first event."""
    next: int = 2
    conversation: str = ""
    """The conversation whose newest messages are needed; empty for an undo, which needs none."""
    state: TurnState | None = None
    """The turn's state after that entry, from which the next round can be started."""
    expires: int = 0
    has_budget: bool = False
    table: str = ""
    """Digest of the name of the log's table. A table that was restored has another name (decision 0398)."""

    def to_json(self) -> dict[str, Any]:
        """Return the form that the workflow carries, which must stay small."""
        hint: dict[str, Any] = {"round": self.round, "entry": self.entry, "next": self.next}
        if self.conversation:
            hint["conversation"] = self.conversation
        if self.state is not None:
            hint |= {"state": self.state.to_item(), "expires": self.expires, "budgeted": self.has_budget}
        if self.table:
            hint["table"] = self.table
        return hint

    @classmethod
    def from_json(cls, hint: dict[str, Any] | None) -> Self:
        """Read a hint of any version of the service. What it does not say has its default."""
        names = ("round", "entry", "next", "conversation", "table")
        known: dict[str, Any] = {name: hint[name] for name in names if name in hint} if hint else {}
        if hint and "state" in hint:
            state = TurnState.from_item(hint["state"])
            known |= {"state": state, "expires": hint["expires"], "has_budget": hint["budgeted"]}
        return cls(**known)


def hash_table_name(name: str) -> str:
    """Return what a hint says of the table in which the log is."""
    return hashlib.sha256(name.encode()).hexdigest()[:8]
