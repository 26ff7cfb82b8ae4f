"""Look after the sub-agents of a round that has waited for a while, and give them up when their time is over."""

from fermata.aws.resources import Resources
from fermata.domain.events import ErrorEvent
from fermata.domain.tools import ToolOutput
from fermata.turns.call_transitions import apply_outputs
from fermata.turns.end.stop_turn import stop_turn
from fermata.turns.pause import Pause
from fermata.turns.round.turn_context import TurnContext
from fermata.turns.round_call import RoundCall
from fermata.turns.round_commit import RoundCommit
from fermata.turns.start.commit_start import start_workflow
from fermata.turns.turn import load_turn
from fermata.turns.turn_log import StaleState, read_last_entry

LOST_OUTPUT = ToolOutput.failure("The agent was lost by an error of the service, so its work may be incomplete.")
TOO_LATE_ERROR = ErrorEvent(message="It did not answer in time.", code="no_answer", retryable=True)


def look_after_children(context: TurnContext, pause: Pause) -> bool:
    """Start sub-agents that have not started, and answer the calls of those that are gone.

    Args:
        context: The invocation that has to wait on.
        pause: The round's pause as it was read.

    Returns:
        Whether a call was answered.

    Raises:
        PauseChanged: A sub-agent has answered meanwhile.
    """
    lost = [call for call in pause.calls if call.has_running_child and not _is_working(context.resources, pause, call)]
    if not lost:
        return False
    outputs = {call.effect_key: (LOST_OUTPUT, "") for call in lost}
    transition = apply_outputs(pause, outputs, now=context.resources.clock.time(), nonce=context.new_nonce())
    context.commit(RoundCommit.for_pause(pause, transition))
    return True


def _is_working(resources: Resources, pause: Pause, call: RoundCall) -> bool:
    child = load_turn(resources, pause.tenant, call.child_turn)
    last_entry = read_last_entry(resources, child.pk) if child else None
    if child is None or last_entry is None or last_entry.state.phase == "ended":
        return False
    if last_entry.state.phase == "started":
        start_workflow(resources, child)
    return True


def expire_children(context: TurnContext, pause: Pause) -> bool:
    """End the sub-agents of a round whose time is over. Their ends answer their calls. Returns True.

    Args:
        context: The invocation that has found them.
        pause: The round's pause as it was read.

    Raises:
        StaleState: The calls are answered: read the turn again.
    """
    if look_after_children(context, pause):
        return True
    for call in pause.calls:
        child = load_turn(context.resources, pause.tenant, call.child_turn) if call.has_running_child else None
        if child is not None:
            stop_turn(context.resources, child, TOO_LATE_ERROR)
    raise StaleState
