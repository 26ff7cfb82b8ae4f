"""Stop a turn from outside its rounds: cancel it, or end it with an error, and let its workflow execution finish."""

from typing import Any, Literal

from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import NotFound
from fermata.domain.events import CancelledEvent, TerminalEvent
from fermata.turns.end.end_turn import end_turn
from fermata.turns.end.listed_turn import delist_ended_turn
from fermata.turns.pause import load_pause
from fermata.turns.turn import TURN_NOT_FOUND_MESSAGE, Turn, find_turn_for_caller
from fermata.turns.turn_log import TurnEnded, TurnLog, read_end_type, read_last_entry


def cancel_turn(resources: Resources, caller: Caller, bridge_id: str) -> dict[str, Any]:
    """Cancel a turn for its user. Safe to repeat.

    Args:
        caller: The turn's user, or one with the capability `ai.turns.manage`.
        bridge_id: The turn's id, as the client sent it.

    Returns:
        The bridge's id and `status`: how the turn has ended, which may be otherwise than cancelled.

    Raises:
        NotFound: There is no such turn, or it is not the caller's.
        ServiceUnavailable: The turn has ended, but its workflow could not be resumed. Repeat the call.
    """
    turn = find_turn_for_caller(resources, caller, bridge_id)
    return {"bridgeId": turn.id, "status": stop_turn(resources, turn, CancelledEvent())}


def stop_turn(resources: Resources, turn: Turn, terminal: TerminalEvent) -> str:
    """End a turn unless it is over already, and resume its execution so that it finishes.

    Args:
        turn: The turn, as it was read at any time.
        terminal: The event to end it with.

    Returns:
        The type of the turn's terminal event, which is another writer's if that one came first.

    Raises:
        NotFound: The turn has no log.
        ServiceUnavailable: The turn has ended, but its workflow could not be resumed. Repeat the call.
    """
    last_entry = read_last_entry(resources, turn.pk)
    if last_entry is None:
        raise NotFound(TURN_NOT_FOUND_MESSAGE)
    log = TurnLog.from_last_entry(resources, turn.partition, last_entry)
    end_type: str = terminal.type
    try:
        end_turn(resources, turn, log, terminal, is_outside=True)
    except TurnEnded:
        end_type = read_end_type(resources, turn) or end_type
    finish_paused_execution(resources, turn, log.state.round)
    if turn.parent:
        from fermata.turns.sub_agents.continue_parent import resume_parent  # most turns are those of users

        resume_parent(resources, turn)
    return end_type


def finish_paused_execution(resources: Resources, turn: Turn, round_: int) -> None:
    """Let the execution of an ended turn finish, if it waits for the answer to a call, and stop its sub-agents.

    Args:
        turn: A turn that has ended.
        round_: The round whose pause may have a token; 0 for none.

    Raises:
        ServiceUnavailable: The workflow could not be resumed. Repeat the call.
    """
    pause = load_pause(resources, turn, round_) if round_ else None
    if pause and any(call.has_running_child for call in pause.calls):
        from fermata.turns.sub_agents.stop_children import stop_children  # most turns ask no other agent

        stop_children(resources, pause)
    if pause and pause.callback_token:
        resources.workflow.resume_execution(pause.callback_token, choose_last_state(turn))
        if pause.is_held and turn.is_listed:
            delist_ended_turn(resources, turn)


def choose_last_state(turn: Turn) -> Literal["round", "finish"]:
    """Return how the execution of an ended turn goes on: by a round that ends its MCP sessions, if it may have any.

    Only rounds open the secrets that their servers need.
    """
    return "round" if turn.mcp_pin else "finish"
