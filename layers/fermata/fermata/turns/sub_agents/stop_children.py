"""Stop the sub-agents that work for a turn which is over."""

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.domain.errors import ApiError
from fermata.domain.events import CancelledEvent
from fermata.turns.end.stop_turn import stop_turn
from fermata.turns.pause import Pause
from fermata.turns.turn import Turn, load_turn


def stop_children(resources: Resources, pause: Pause) -> None:
    """Cancel the turns of the sub-agents that a round has asked. What fails is logged: they stop by themselves later.

    Args:
        resources: Tables and workflow.
        pause: The last pause of a turn that is over.
    """
    for call in pause.calls:
        if not call.has_running_child:
            continue
        try:
            child = load_turn(resources, pause.tenant, call.child_turn)
            if child is not None:
                stop_turn(resources, child, CancelledEvent())
        except (ApiError, *AWS_ERRORS):
            observability.log_exception("sub_agent.stop_failed", turn=call.child_turn)


def has_lost_parent(resources: Resources, turn: Turn) -> bool:
    """Return whether nobody waits for the answer of a sub-agent's turn, because the turn that asked is over."""
    if turn.parent is None:
        return False
    asking = load_turn(resources, turn.tenant, turn.parent.turn)
    return asking is None or asking.state != "open"
