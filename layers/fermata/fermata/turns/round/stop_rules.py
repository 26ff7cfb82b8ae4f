"""Decide whether a turn ends with the calls of a round, or because of them (decision 0364)."""

from collections.abc import Sequence

from fermata.domain.agent_ids import read_agent_id
from fermata.domain.blocks import ToolCallBlock
from fermata.domain.events import DoneEvent, ErrorEvent, TerminalEvent
from fermata.tools.calls.pipeline import INVALID_INPUT_CODE, parse_tool_input
from fermata.tools.schema.coercion import InvalidToolInput
from fermata.turns.end.end_turn import NO_FINAL_ROUND, FinalRound, end_turn
from fermata.turns.round.turn_context import TurnContext


def is_last_step(context: TurnContext, calls: Sequence[ToolCallBlock]) -> bool:
    """Return whether no round follows the results of these calls.

    Args:
        context: The invocation.
        calls: The calls of the current round.
    """
    stops = context.agent.settings.stop_on_tool_call
    is_stop_tool = any(call.tool_name in stops for call in calls)
    return is_stop_tool or context.log.state.round >= context.turn.max_rounds


def find_invalid_input(context: TurnContext, calls: Sequence[ToolCallBlock]) -> ErrorEvent | None:
    """Return the error of a call whose input does not match its tool, where the agent lets no model repair one.

    Built-in agents always let their model read what was wrong.

    Args:
        context: The invocation.
        calls: The calls of the current round, none of them cut off.
    """
    if context.agent.settings.repair_tool_call or not read_agent_id(context.turn.scope):
        return None
    for call in calls:
        tool = context.toolset.find_tool(call.tool_name)
        if tool is None:
            continue
        try:
            parse_tool_input(tool, call)
        except InvalidToolInput as error:
            return ErrorEvent(message=str(error), code=INVALID_INPUT_CODE, retryable=False)
    return None


def end_stopped_turn(context: TurnContext) -> None:
    """End a turn after the calls that stop it. What the model said before them is its answer.

    Raises:
        TurnEnded, Superseded, StaleState: Another writer was faster.
    """
    seen_state = context.log.state
    final_round = apply_finish_hooks(context, DoneEvent(), NO_FINAL_ROUND)
    resources, turn, log = context.resources, context.turn, context.log
    end_turn(resources, turn, log, DoneEvent(), final_round, is_expected=lambda now: now == seen_state)


def apply_finish_hooks(context: TurnContext, terminal: TerminalEvent, final_round: FinalRound) -> FinalRound:
    """Return the last round of a turn with what the endpoints at its end have returned.

    Args:
        context: The invocation that ends the turn.
        terminal: How it ends.
        final_round: What END would hold without them.

    Raises:
        TurnEnded, Superseded: Noticed while the endpoints worked.
    """
    if not context.agent.settings.hooks.on_finish or context.turn.parent:
        return final_round
    from fermata.turns.hooks.finish_hooks import run_finish_hooks  # few turns have hooks

    return run_finish_hooks(context, terminal, final_round)
