"""Open the tools of a turn: those of its agent, and the remote tools that it has pinned."""

from fermata.aws.resources import Resources
from fermata.tools.toolset import Toolset
from fermata.turns.turn import Turn
from fermata.turns.turn_agent import open_turn_agent

_TOOLSET_CACHE_SECONDS = 3600


def open_turn_toolset(resources: Resources, turn: Turn) -> Toolset:
    """Return the tools of a turn. With remote tools, a process builds them once for the same versions.

    Args:
        resources: The settings table, and the cache of the process.
        turn: The turn.
    """
    toolset = open_turn_agent(resources, turn).get_toolset(turn.generation)
    if not turn.remote_tools:
        return toolset
    from fermata.remote_tools.pinned_tools import add_remote_tools, load_definitions  # few turns have remote tools

    def build() -> Toolset:
        return add_remote_tools(toolset, load_definitions(resources, turn.tenant, turn.remote_tools))

    key = ("toolset", turn.tenant, turn.agent, turn.scope, turn.generation, turn.remote_tools)
    return resources.cache.get_or_load(key, _TOOLSET_CACHE_SECONDS, build)
