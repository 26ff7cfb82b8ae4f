"""End a turn whose answer is a plan: what the plan says is the last text of the turn."""

from collections.abc import Callable

from fermata.aws.resources import Resources
from fermata.domain.blocks import Block, TextBlock
from fermata.domain.events import DoneEvent, EditPlanEvent, TextEvent
from fermata.turns.end.end_turn import FinalRound, end_turn
from fermata.turns.turn import Turn
from fermata.turns.turn_log import TurnLog, read_entries_from
from fermata.turns.turn_state_from_log import TurnState


def end_plan_turn(resources: Resources, turn: Turn, log: TurnLog) -> None:
    """End a turn after the plan that answers it.

    Args:
        log: Its newest events are the plan and the results of the round.

    Raises:
        TurnEnded, Superseded: Another writer was faster.
    """
    text = _read_summary(resources, turn, log)
    content: tuple[Block, ...] = (TextBlock(text=text),) if text else ()
    events = (TextEvent(text=text),) if text else ()
    is_expected = _is_same_round(log.state.round)
    end_turn(resources, turn, log, DoneEvent(), FinalRound(events, content, ()), is_expected=is_expected)


def _is_same_round(round_number: int) -> Callable[[TurnState], bool]:
    return lambda now: now.round == round_number and now.is_answered


def _read_summary(resources: Resources, turn: Turn, log: TurnLog) -> str:
    entries = read_entries_from(resources, turn.pk, max(1, log.state.round_started_number))
    plans = [event for entry in entries for event in entry.events if isinstance(event, EditPlanEvent)]
    return str(plans[-1].outcome.get("summary", "")) if plans else ""
