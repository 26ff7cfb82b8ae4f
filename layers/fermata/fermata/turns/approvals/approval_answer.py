"""Define what an approver sends, how a decision is refused, and who may decide."""

from dataclasses import dataclass
from typing import Any

from fermata.agents.agent import Agent
from fermata.aws.api_key_rows import read_live_api_key
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, Forbidden
from fermata.turns.turn import Turn

APPROVAL_NOT_FOUND_MESSAGE = "There is no such approval, or it has expired with its turn."
CLOSED_MESSAGES = {
    "approved": "This call has already been approved.",
    "denied": "This call has already been denied.",
    "expired": "Nobody decided about this call in time, so it counts as denied.",
    "stale": "The tool was changed while the call waited, so it counts as denied.",
    "cancelled": "The turn of this call has ended.",
}


class ApprovalClosed(Conflict):
    """The call waits for a decision no more, or it is not the call that the approver has seen."""


@dataclass(frozen=True)
class ApprovalAnswer:
    """What an approver sends.

    Attributes:
        input: The whole input that the call gets instead of the model's; None to leave it.
        input_hash: That of the input which the approver has seen; empty if it is not named.
    """

    is_approved: bool
    reason: str = ""
    input: dict[str, Any] | None = None
    input_hash: str = ""


def require_approver(resources: Resources, agent: Agent, turn: Turn, caller: Caller) -> None:
    """Check that the policies let this user decide about the calls of this turn.

    An API key that the user has made is not another person.

    Args:
        resources: Where API keys are.
        agent: The turn's.
        turn: The turn, with the policy of its tenant.
        caller: Who wants to decide.

    Raises:
        Forbidden: They want another person than the one who started the turn.
    """
    is_separate = turn.policy.separate_approver or agent.policy.separate_approver
    if is_separate and turn.user in (caller.user, _find_maker(resources, caller)):
        raise Forbidden("Another person has to decide about the calls of your own turns.", reason="own_call")


def _find_maker(resources: Resources, caller: Caller) -> str:
    """Return who has made the API key that calls; empty if a person does."""
    key = read_live_api_key(resources, caller.tenant, caller.api_key) if caller.api_key else None
    return str(key["created_by"]) if key else ""
