"""Open the agent of a turn: a built-in one, or the version of a tenant's agent that the turn has pinned."""

from functools import partial

from fermata.agents.agent import Agent
from fermata.agents.registry import open_agent
from fermata.aws.resources import Resources
from fermata.domain.agent_ids import read_agent_id
from fermata.turns.turn import Turn


def open_turn_agent(resources: Resources, turn: Turn) -> Agent:
    """Return the agent that a turn has pinned. For an agent of a tenant a warm process makes no AWS call.

    Raises:
        LookupError: There is no such agent.
    """
    if not read_agent_id(turn.scope) or not turn.agent:
        return open_agent(turn.agent or turn.scope)
    from fermata.agents.definitions.definition_store import load_definition  # most turns have a built-in agent

    return open_agent(
        turn.agent,
        tenant=turn.tenant,
        definitions=partial(load_definition, resources),
        resolved=turn.agent_properties or None,
    )
