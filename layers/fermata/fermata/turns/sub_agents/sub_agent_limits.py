"""Limit how many sub-agents a prompt leads to, and how deep they ask each other (decision 0371)."""

from fermata.domain.tools import ToolOutput
from fermata.turns.turn import Turn
from fermata.turns.turn_state_from_log import TurnState

MAX_DEPTH = 5
"""How many agents may ask each other in a row after the agent of the user's turn."""
MAX_SUB_AGENTS = 100
"""How many turns of sub-agents a prompt may lead to, in all depths."""
TOO_DEEP_OUTPUT = ToolOutput.failure(
    f"Agents may ask each other at most {MAX_DEPTH} times in a row, so nothing was done. Do it without another agent."
)
TOO_MANY_OUTPUT = ToolOutput.failure(
    f"This prompt has led to {MAX_SUB_AGENTS} sub-agents, which is the limit, so nothing was done. Go on without them."
)


def get_allowance(turn: Turn, state: TurnState) -> int:
    """Return how many turns of sub-agents a turn may still lead to.

    Args:
        turn: The turn that asks.
        state: Its state.
    """
    return (turn.parent.allowance if turn.parent else MAX_SUB_AGENTS) - state.sub_agent_count


def refuse_sub_agent(turn: Turn, state: TurnState, index: int) -> ToolOutput | None:
    """Return why a call may not ask a sub-agent, or None.

    Args:
        turn: The turn that asks.
        state: Its state.
        index: How many calls of the same round ask a sub-agent before it.
    """
    if turn.depth >= MAX_DEPTH:
        return TOO_DEEP_OUTPUT
    return TOO_MANY_OUTPUT if index >= get_allowance(turn, state) else None
