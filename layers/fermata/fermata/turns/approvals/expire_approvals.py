"""Deny the calls about which nobody has decided in time."""

from typing import TYPE_CHECKING

from fermata.turns.approvals.decision_commit import CallDecision, build_decision_commit
from fermata.turns.approvals.decision_trail import TrailHead, build_head_key
from fermata.turns.approvals.settle_call import Decision, iter_expired_calls
from fermata.turns.pause import Pause
from fermata.turns.round_commit import PauseChanged

if TYPE_CHECKING:
    from fermata.turns.round.turn_context import TurnContext

MAX_TRAIL_ATTEMPTS = 20
_ATTEMPT_WAIT_SECONDS = 0.05


def expire_approvals(context: "TurnContext", pause: Pause) -> bool:
    """Store that the approvals of a round have expired. Returns True: the turn goes on.

    Args:
        context: The invocation that has found them.
        pause: The round's pause as it was read.

    Raises:
        PauseChanged: Somebody has decided meanwhile.
        TurnEnded, Superseded: As `TurnLog.append`.
    """
    resources = context.resources
    expired = [CallDecision(call, Decision("expired")) for call in iter_expired_calls(pause, resources.clock.time())]
    head = _read_head(context)
    for _ in range(MAX_TRAIL_ATTEMPTS):
        try:
            context.commit(build_decision_commit(resources, pause, expired, head))
            return True
        except PauseChanged:
            seen, head = head, _read_head(context)
            if head == seen:  # it was not the trail that had grown
                raise
            resources.clock.sleep(_ATTEMPT_WAIT_SECONDS)
    raise PauseChanged


def _read_head(context: "TurnContext") -> TrailHead:
    resources = context.resources
    return TrailHead.from_item(resources.tables.get_item_by_key(build_head_key(resources, context.turn.tenant)))
