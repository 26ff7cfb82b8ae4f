"""Define one tool call of a round, and the approval that it may need."""

from typing import Any, Literal

from fermata.domain.base import StoredModel, StoredNames
from fermata.domain.tools import ToolOutput

CallState = Literal["approval", "waiting", "requested", "started", "answered", "expired"]
CallRunner = Literal["browser", "server", "agent", "settled"]
"""Who answers a call: the browser, the round function, another agent's turn, or nobody, because its output was known at
once."""

_STORED_CALL_NAMES = StoredNames(
    {"is_edit": "mutates", "known_output": "output", "request_revision": "revision", "input_summary": "summary"}
)


class CallApproval(StoredModel):
    """What a decision about a call is bound to: the call with this id, its input, its tool and its agent.

    `deadline` is in epoch seconds. When it has passed without a decision, the call is denied.
    """

    id: str
    tool: str
    """The canonical name."""
    input_hash: str
    tool_digest: str
    agent: str
    reasons: tuple[str, ...]
    deadline: float
    is_granted: bool = False
    changed_input: dict[str, Any] | None = None
    """The input that the approver has put in the place of the model's, which the model is told."""


class RoundCall(StoredModel, alias_generator=_STORED_CALL_NAMES, defer_build=False):
    """One tool call of a round, with its validated input."""

    tool_call_id: str
    tool_name: str
    runner: CallRunner
    is_edit: bool
    effect_key: str
    wait_seconds: float
    input: Any = None
    known_output: ToolOutput | None = None
    """Set for a call that was refused, malformed or truncated: becomes its result when the calls before it are done."""
    state: CallState = "waiting"
    request_id: str = ""
    deadline: float = 0
    answer_hash: str = ""
    request_revision: str = ""
    """The document's revision that the request named."""
    input_summary: str = ""
    """The beginning of the input, kept for the journal once the input is in the log only."""
    ignored_members: tuple[str, ...] = ()
    """Members of the model's input that the tool does not have."""
    child_turn: str = ""
    """The turn of the sub-agent that answers the call."""
    approval: CallApproval | None = None
    """Set for a call that a person has to approve before it runs."""

    @property
    def waits_until(self) -> float:
        """Epoch seconds until which the call waits for its editor or a person; 0 if it waits for neither."""
        if self.state == "approval" and self.approval:
            return self.approval.deadline
        return self.deadline if self.state == "requested" else 0

    @property
    def has_running_child(self) -> bool:
        """Whether a sub-agent works on the call."""
        return self.runner == "agent" and self.state == "requested"

    @property
    def has_early_result(self) -> bool:
        """Whether a remote tool has sent the result before the round knew that it has to wait for it."""
        return self.runner == "settled" and not self.is_done and bool(self.answer_hash)

    @property
    def is_done(self) -> bool:
        """Whether the call has its result, or a time-out in its place."""
        return self.state in ("answered", "expired")
