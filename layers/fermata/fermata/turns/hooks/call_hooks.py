"""Call the endpoints of an agent's hooks (decision 0368)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fermata.agents.definitions.configured_agent import ConfiguredAgent
from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.domain.tools import ToolOutput
from fermata.remote_tools.endpoint_call import CallingAgent
from fermata.remote_tools.endpoint_caller import EndpointCaller
from fermata.turns.hooks.hook_payload import build_context_fields
from fermata.turns.hooks.hook_points import HookPoint
from fermata.turns.turn import Turn
from fermata.turns.turn_agent import open_turn_agent


class HookCaller:
    """Calls the endpoints of one turn's hooks. `abort` may be called from any thread."""

    def __init__(self, resources: Resources, turn: Turn, agent: ConfiguredAgent) -> None:
        self._turn = turn
        self._agent = agent
        self._caller = EndpointCaller(resources, turn.tenant, CallingAgent(agent.id, turn.conversation, turn.user))

    def call_point(self, name: str, key: str, payload: Mapping[str, Any]) -> Iterable[ToolOutput]:
        """Call the endpoints of a point, one after the other, and yield their outputs. A failure is logged.

        Args:
            name: Of the member of `RunHooks`.
            key: Identifies the point within the turn.
            payload: What they are told.
        """
        for endpoint_id in getattr(self._agent.settings.hooks, name):
            endpoint = self._agent.definition.endpoints.get(endpoint_id)
            if endpoint is None:
                continue
            output = self._caller.call(endpoint, payload, f"{self._turn.id}/{key}/{endpoint_id}")
            if not output.ok:
                facts = {"turn": self._turn.id, "hook": name, "endpoint": endpoint_id}
                observability.log_warning("hooks.failed", tenant=self._turn.tenant, **facts, error=output.error)
            yield output

    def abort(self) -> None:
        """End the call under way, because its result is no longer needed."""
        self._caller.abort()


def open_hook_caller(resources: Resources, turn: Turn) -> HookCaller | None:
    """Return the caller of a turn's hooks; None for a turn whose agent has none.

    Args:
        resources: Of the process.
        turn: The turn.
    """
    agent = open_turn_agent(resources, turn)
    if not isinstance(agent, ConfiguredAgent) or not agent.settings.hooks.endpoint_ids:
        return None
    return HookCaller(resources, turn, agent)


def call_hooks_of_points(
    resources: Resources,
    turn: Turn,
    points: Iterable[HookPoint],
    build_finish: Callable[[], Mapping[str, Any]],
) -> None:
    """Call the endpoints of points that a log entry shows. Nobody waits for what they return.

    Args:
        resources: Of the process.
        turn: The turn.
        points: In their order.
        build_finish: Returns what is told at the end of a turn.
    """
    caller = open_hook_caller(resources, turn)
    if caller is None:
        return
    for point in points:
        facts = build_finish() if point.name == "on_finish" else build_context_fields(turn) | point.facts
        for _ in caller.call_point(point.name, point.key, facts):
            pass
