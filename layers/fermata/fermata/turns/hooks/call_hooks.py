"""Call the endpoints of an agent's hooks (decision 0368)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from fermata.agents.definitions.configured_agent import ConfiguredAgent
from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.domain.events import Event
from fermata.domain.tools import ToolOutput
from fermata.remote_tools.call_http_endpoint import EndpointCaller, build_endpoint_manifest
from fermata.remote_tools.http_endpoint_attempt import CallingAgent
from fermata.turns.hooks.hook_payload import build_context_fields
from fermata.turns.hooks.hook_points import HookPoint, is_hooked, iter_hook_points
from fermata.turns.turn import Turn
from fermata.turns.turn_agent import open_turn_agent
from fermata.turns.turn_state_from_log import TurnState


class HookCaller:
    """Calls the endpoints of one turn's hooks. `abort` may be called from any thread."""

    def __init__(self, resources: Resources, turn: Turn, agent: ConfiguredAgent) -> None:
        self._turn = turn
        self._agent = agent
        self._caller = EndpointCaller(resources, turn.tenant, CallingAgent(agent.id, turn.conversation, turn.user))

    def list_endpoint_ids(self, name: str) -> Sequence[str]:
        """Return the ids of the endpoints of a point."""
        return [str(endpoint_id) for endpoint_id in getattr(self._agent.settings.hooks, name)]

    def count_seconds(self, endpoint_id: str) -> float:
        """Return how long a call of an endpoint may take, with its repetitions."""
        endpoint = self._agent.definition.endpoints.get(endpoint_id)
        if endpoint is None:
            return 0
        manifest = build_endpoint_manifest(endpoint)
        return manifest.timeout_seconds * manifest.retry_policy.max_attempts

    def call_endpoint(self, name: str, key: str, endpoint_id: str, payload: Mapping[str, Any]) -> ToolOutput | None:
        """Call one endpoint of a point, and return its output; None if the agent has no such endpoint.

        A failure is logged.

        Args:
            name: Of the member of `RunHooks`.
            key: Identifies the point within the turn.
            endpoint_id: One of those of the point.
            payload: What it is told.
        """
        endpoint = self._agent.definition.endpoints.get(endpoint_id)
        if endpoint is None:
            return None
        output = self._caller.call(endpoint, payload, f"{self._turn.id}/{key}/{endpoint_id}")
        if not output.ok:
            facts = {"turn": self._turn.id, "hook": name, "endpoint": endpoint_id}
            observability.log_warning("hooks.failed", tenant=self._turn.tenant, **facts, error=output.error)
        return output

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


def list_hooked_endpoints(
    resources: Resources, turn: Turn, events: Iterable[Event], state: TurnState
) -> Iterator[tuple[HookPoint, str]]:
    """Yield the points that a log entry shows, each with the id of an endpoint that is called there.

    Args:
        resources: Of the process.
        turn: The turn.
        events: Of the entry.
        state: After them.
    """
    caller = open_hook_caller(resources, turn)
    if caller is None:
        return
    for point in iter_hook_points(events, state):
        if is_hooked(point, state):
            yield from ((point, endpoint_id) for endpoint_id in caller.list_endpoint_ids(point.name))


def call_hooked_endpoint(
    resources: Resources, turn: Turn, point: HookPoint, endpoint_id: str, build_finish: Callable[[], Mapping[str, Any]]
) -> None:
    """Call an endpoint of a point. Nobody waits for what it returns.

    Args:
        resources: Of the process.
        turn: The turn.
        point: The point.
        endpoint_id: One of its endpoints.
        build_finish: Returns what is told at the end of a turn.
    """
    caller = open_hook_caller(resources, turn)
    if caller is None or endpoint_id not in caller.list_endpoint_ids(point.name):
        return
    facts = build_finish() if point.name == "on_finish" else build_context_fields(turn) | point.facts
    caller.call_endpoint(point.name, point.key, endpoint_id, facts)
