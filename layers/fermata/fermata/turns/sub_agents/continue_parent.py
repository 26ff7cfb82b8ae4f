"""Let the turn go on that has asked a sub-agent, after the end of the sub-agent's turn.

The function that has ended it goes on with the other turn itself, with the task token that waits there: no state of the
workflow is entered for that, and no function is invoked (decision 0372).
"""

from typing import NamedTuple

from fermata.aws import observability
from fermata.aws.clock import new_id
from fermata.aws.resources import Resources
from fermata.turns.answer.resume_turn import resume_turn
from fermata.turns.pause import Pause, build_pause_key, pause_from_item
from fermata.turns.round.invocation import Invocation
from fermata.turns.round.turn_context import TurnContext
from fermata.turns.turn import Turn, TurnParent, build_turn_pk, turn_from_item
from fermata.turns.turn_log import build_entry_key


class WaitingParent(NamedTuple):
    """A turn whose answered pause nobody has gone on with."""

    turn: Turn
    pause: Pause


def find_waiting_parent(resources: Resources, tenant: str, parent: TurnParent) -> WaitingParent | None:
    """Return the turn that has asked, if it has to be resumed; None if it still waits, has gone on, or is over.

    Args:
        resources: The table of turns.
        tenant: The tenant's name.
        parent: The call that was answered.
    """
    table, pk = resources.settings.bridges_table, build_turn_pk(tenant, parent.turn)
    keys = [(pk, "turn"), (pk, build_pause_key(parent.round))]
    items = resources.tables.batch_get_items(table, keys)
    turn = turn_from_item(items.get(keys[0]), resources.clock.time())
    pause_item = items.get(keys[1])
    if turn is None or turn.state != "open" or pause_item is None:
        return None
    pause = pause_from_item(resources, pause_item)
    call = pause.next_call
    if not pause.callback_token or (call is not None and call.has_running_child):
        return None
    has_gone_on = resources.tables.get_item(table, pk, build_entry_key(pause.next_number)) is not None
    return None if has_gone_on else WaitingParent(turn, pause)


def resume_parent(resources: Resources, turn: Turn) -> None:
    """Resume the execution of the turn that has asked a sub-agent, if nobody has.

    Args:
        resources: Tables and workflow.
        turn: The turn of the sub-agent, which is over; nothing is done for any other turn.

    Raises:
        ServiceUnavailable: The workflow could not be reached. Repeat the call.
    """
    waiting = find_waiting_parent(resources, turn.tenant, turn.parent) if turn.parent else None
    if waiting is not None and (waiting.pause.is_held or _needs_function(waiting.pause)):
        resume_turn(resources, waiting.pause)


def _needs_function(pause: Pause) -> bool:
    """Return whether a function has to go on, because no call waits for its browser or a person."""
    call = pause.next_call
    return call is None or call.state in ("waiting", "started")


def continue_parent(context: TurnContext, parent: TurnParent) -> Invocation | None:
    """Return the invocation with which this function goes on with the turn that has asked; None if it does not.

    A turn in Hold is resumed by its workflow. So is any turn if this function has ended nothing or has no time left.

    Args:
        context: The invocation whose turn is over.
        parent: The call that its turn has answered.
    """
    resources, invocation = context.resources, context.invocation
    waiting = find_waiting_parent(resources, invocation.tenant, parent)
    if waiting is None:
        return None
    turn, pause = waiting
    can_work = context.log.has_ended_turn and context.has_time_for_model_request and not pause.is_held
    if not _needs_function(pause) or not can_work:
        resume_turn(resources, pause)
        return None
    if not resources.workflow.send_heartbeat(pause.callback_token):
        return None  # the workflow has gone on without an answer, and reads it in its next state
    observability.add_log_keys(turn=turn.id)
    observability.log_event("sub_agent.answered", child=invocation.turn)
    return Invocation(
        tenant=turn.tenant,
        turn=turn.id,
        execution_number=turn.execution_number,
        token=pause.callback_token,
        epoch=pause.epoch,
        owner=f"{invocation.owner.partition('/')[0]}/{new_id(6)}",
        remaining_seconds=invocation.remaining_seconds,
        hint=pause.build_invocation_hint(resources.settings.bridges_table),
    )
