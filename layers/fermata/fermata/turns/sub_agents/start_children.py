"""Start the sub-agents that a round asks: all that come next, at the same time."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fermata.aws.dynamodb_items_and_writes import Write
from fermata.domain.events import SubAgentStartedEvent, WarningEvent
from fermata.domain.tools import ToolOutput
from fermata.domain.value_dataclass import value_dataclass
from fermata.turns.call_transitions import Transition
from fermata.turns.pause import Pause
from fermata.turns.round.tool_calls import admit_stored_call
from fermata.turns.round.turn_context import TurnContext
from fermata.turns.round_call import RoundCall
from fermata.turns.round_commit import RoundCommit
from fermata.turns.start.commit_start import start_workflow
from fermata.turns.sub_agents.child_start import ChildStart, SubAgentRefused, build_child_start
from fermata.turns.sub_agents.sub_agent_limits import get_allowance
from fermata.turns.turn import Turn
from fermata.turns.turn_state_from_log import TurnState

if TYPE_CHECKING:
    from fermata.mcp_sources.tool_listing import ListedSources

MAX_STARTS_PER_COMMIT = 10
"""Each start is four rows of a transaction that has others, too."""
MAX_STARTS_AT_ONCE = 8


@value_dataclass(frozen=True)
class StartedChildren:
    """A transition with the sub-agents that it starts."""

    transition: Transition
    turns: tuple[Turn, ...] = ()
    writes: tuple[Write, ...] = ()
    count: int = 0
    """How much of the turn's allowance they take."""

    def update_state(self, state: TurnState) -> TurnState:
        """Count the sub-agents, with those that they may start."""
        return replace(state, sub_agent_count=state.sub_agent_count + self.count)

    def start_workflows(self, context: TurnContext) -> None:
        """Start the executions, after the commit. What fails here is started by the sweep."""

        def start_child(turn: Turn) -> None:
            start_workflow(context.resources, turn)

        if len(self.turns) == 1:
            start_child(self.turns[0])
        elif self.turns:
            context.resources.clock.map_in_threads(start_child, self.turns, MAX_STARTS_AT_ONCE)


def start_children(context: TurnContext, transition: Transition) -> StartedChildren:
    """Add to a transition the sub-agents that come next in its round.

    Those that cannot be asked are answered when they are reached.

    Args:
        context: The invocation that commits the transition.
        transition: What follows from the outputs that are there.
    """
    calls = _list_next_calls(transition.pause)
    if not calls:
        return StartedChildren(transition)
    remaining = get_allowance(context.turn, context.log.state)
    allowance = max(0, remaining - len(calls)) // (2 * len(calls))
    pause, events, children = transition.pause, list(transition.events), list[ChildStart]()
    known_tools: dict[str, ListedSources] = {}  # servers that are slow are asked once for all that start together
    for call in calls:
        try:
            child = _build_child(context, call, allowance, known_tools)
        except SubAgentRefused as refusal:
            pause = pause.with_call(_settle(call, ToolOutput.failure(str(refusal))))
            continue
        children.append(child)
        requested = {"state": "requested", "child_turn": child.turn.id, "deadline": pause.deadline_limit, "input": None}
        pause = pause.with_call(call.model_copy(update=requested))
        events.append(_build_event(call, child.turn))
        events += [warning for warning in _list_warnings(child.turn) if warning not in events]
    pause = pause.with_token(context.invocation.token, context.invocation.epoch)
    return StartedChildren(
        replace(transition, pause=pause, events=tuple(events)),
        tuple(child.turn for child in children),
        tuple(write for child in children for write in child.writes),
        len(children) * (1 + allowance),
    )


def _list_next_calls(pause: Pause) -> list[RoundCall]:
    calls: list[RoundCall] = []
    for call in pause.calls:
        if call.is_done or call.has_running_child or call.runner == "settled":
            continue
        if call.runner != "agent" or call.state != "waiting" or len(calls) == MAX_STARTS_PER_COMMIT:
            break
        calls.append(call)
    return calls


def _build_child(
    context: TurnContext, call: RoundCall, allowance: int, known_tools: "dict[str, ListedSources]"
) -> ChildStart:
    """Build the start of a call, which is checked once more: it may have waited for a person."""
    admitted = admit_stored_call(context, call)
    if isinstance(admitted, ToolOutput):
        raise SubAgentRefused(admitted.error or "")
    if not admitted.tool.sub_agent:
        raise SubAgentRefused(f"There is no agent behind {call.tool_name} any more, so nothing was done.")
    return build_child_start(context, call, admitted.tool, allowance, known_tools)


def _settle(call: RoundCall, output: ToolOutput) -> RoundCall:
    return call.model_copy(update={"runner": "settled", "known_output": output, "input": None})


def _build_event(call: RoundCall, turn: Turn) -> SubAgentStartedEvent:
    return SubAgentStartedEvent(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        agent=turn.agent.partition("@")[0],
        bridge_id=turn.id,
    )


def _list_warnings(turn: Turn) -> list[WarningEvent]:
    """Return which tools a sub-agent goes without. Whoever asked follows the log of the turn that asks only."""
    agent = turn.agent.partition("@")[0]
    return [WarningEvent(message=f"{agent}: {message}") for message in turn.mcp_warnings]


def commit_children(context: TurnContext, pause: Pause) -> bool:
    """Start the sub-agents that come next in a round whose calls are stored. Returns True: the turn goes on.

    Args:
        context: The invocation.
        pause: The round's pause as it is stored.

    Raises:
        PauseChanged: Another writer was faster.
    """
    children = start_children(context, Transition(pause.model_copy(update={"version": pause.version + 1})))
    writes: Sequence[Write] = children.writes
    commit = RoundCommit.for_pause(
        pause,
        children.transition,
        build_extra_writes=lambda _entry: writes,
        update_state=children.update_state,
    )
    context.commit(commit)
    children.start_workflows(context)
    return True
