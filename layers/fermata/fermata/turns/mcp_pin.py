"""Pin the tools of MCP servers with a turn, and read them again in its rounds (decision 0375).

What agents of tenants are made of is imported where it is needed, because most turns are those of other agents.
"""

from typing import TYPE_CHECKING

from fermata.agents.agent import Agent
from fermata.aws.blob_store import turn_folder
from fermata.aws.resources import Resources
from fermata.turns.turn import Turn
from fermata.turns.turn_agent import open_turn_agent

if TYPE_CHECKING:
    from fermata.agents.tool_sources.mcp_tools import McpPin
    from fermata.mcp_sources.tool_listing import ListedSources

_PIN_CACHE_SECONDS = 3600
"""A pin never changes; the limit only bounds the memory."""


def pin_mcp_tools(
    resources: Resources,
    turn: Turn,
    agent: Agent,
    *,
    keeps_sessions: bool = True,
    known: "dict[str, ListedSources] | None" = None,
) -> Turn:
    """Return a turn with the tools of its agent's MCP servers, which are asked now.

    Args:
        resources: Of the process.
        turn: The turn, before it is stored.
        agent: Its agent.
        keeps_sessions: Whether its rounds go on with the sessions that are opened now.
        known: What was listed for turns that start together with it, by their agents; what is listed now is added.
    """
    from fermata.agents.definitions.configured_agent import ConfiguredAgent

    if not isinstance(agent, ConfiguredAgent) or not agent.definition.mcp:
        return turn
    from fermata.mcp_sources.tool_listing import list_sources  # most agents have no MCP server

    listed = known.get(agent.reference) if known else None
    if listed is None:
        listed = list_sources(resources, turn.tenant, agent.definition, keeps_sessions=keeps_sessions)
    if known is not None:
        known[agent.reference] = listed
    key = resources.blobs.put_json(turn_folder(turn.tenant, turn.id), listed.pin.to_wire())
    return turn.model_copy(update={"mcp_pin": key, "mcp_warnings": listed.warnings})


def load_mcp_pin(resources: Resources, turn: Turn) -> "McpPin":
    """Return what a turn has pinned. A warm process makes no AWS call."""
    from fermata.agents.tool_sources.mcp_tools import McpPin

    if not turn.mcp_pin:
        return McpPin()
    return resources.cache.get_or_load(
        ("mcp pin", turn.mcp_pin),
        _PIN_CACHE_SECONDS,
        lambda: McpPin.from_wire(resources.blobs.get_json(turn.mcp_pin)),
    )


def end_mcp_sessions(resources: Resources, turn: Turn) -> None:
    """End the sessions that a turn has kept. Safe to repeat."""
    if not turn.mcp_pin:
        return
    from fermata.agents.definitions.configured_agent import ConfiguredAgent
    from fermata.mcp_sources.end_sessions import end_sessions  # most turns have asked no MCP server

    agent = open_turn_agent(resources, turn)
    assert isinstance(agent, ConfiguredAgent), "only agents of tenants have MCP servers"
    end_sessions(resources, turn.tenant, agent.definition, load_mcp_pin(resources, turn))
