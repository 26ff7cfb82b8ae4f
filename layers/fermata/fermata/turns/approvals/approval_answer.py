"""Define what an approver sends, how a decision is refused, and who may decide."""

from typing import Any

from fermata.agents.agent import Agent
from fermata.aws.api_key_rows import find_person
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, Forbidden
from fermata.domain.value_dataclass import value_dataclass
from fermata.turns.turn import Turn
from fermata.webhooks.webhook import digest_owner, read_webhook_id, read_webhooks

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


@value_dataclass(frozen=True)
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

    A person is the same one with an API key of theirs, and with a webhook whose address they have set.

    Args:
        resources: Where API keys and webhooks are.
        agent: The turn's.
        turn: The turn, with the policy of its tenant.
        caller: Who wants to decide.

    Raises:
        Forbidden: They want another person than the one who started the turn.
    """
    is_separate = turn.policy.separate_approver or agent.policy.separate_approver
    if is_separate and _is_asker(resources, turn, caller):
        raise Forbidden("Another person has to decide about the calls of your own turns.", reason="own_call")


def _is_asker(resources: Resources, turn: Turn, caller: Caller) -> bool:
    """Return whether the one who decides is the one who asked. A webhook of nobody knows whom counts as theirs."""
    asker = find_person(resources, turn.tenant, turn.user)
    if not (webhook_id := read_webhook_id(caller.user)):
        return find_person(resources, caller.tenant, caller.user) == asker
    webhook = read_webhooks(resources, turn.tenant).find(webhook_id)
    return webhook is None or webhook.owner_digest in ("", digest_owner(webhook_id, asker))
