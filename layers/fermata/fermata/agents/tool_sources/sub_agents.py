"""Offer the other agents that an agent may ask (decision 0371)."""

from collections.abc import Mapping
from typing import Any

from fermata.agents.definitions.agent_definition import AgentDefinition
from fermata.domain.agent_ids import make_agent_scope
from fermata.tools.tool import Access, Execution, JsonInput, Tool

SUB_AGENT_TOOLSET = "agents"
DEFAULT_INPUT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "What the agent has to do, and what it has to know."}},
    "required": ["task"],
}


def list_sub_agent_tools(definition: AgentDefinition) -> tuple[Tool, ...]:
    """Return the tools by which an agent of a tenant asks others, in the versions with which it was compiled."""
    return tuple(
        build_sub_agent_tool(
            reference.agent_id,
            make_agent_scope(reference.agent_id),
            reference.version,
            name=reference.name,
            description=reference.description,
            input_schema=reference.input_schema,
        )
        for reference in definition.agents
    )


def describe_sub_agent(agent_id: str) -> str:
    """Return the description of a tool that asks an agent, where none is given."""
    return f"Delegate task to the {agent_id} agent"


def build_sub_agent_tool(
    agent_id: str,
    scope: str,
    version: str = "",
    *,
    name: str = "",
    description: str = "",
    input_schema: Mapping[str, Any] | None = None,
) -> Tool:
    """Return the tool that asks another agent. It counts as a read: what the agent does is judged call by call.

    Args:
        agent_id: The id of the agent.
        scope: Its scope: its id for a built-in agent, or that of an agent of the tenant.
        version: The version of an agent of the tenant.
        name: The name of the tool; by default the agent's id.
        description: For the model; by default a sentence with the agent's id.
        input_schema: Of the call; by default an object with a text `task`.
    """
    return Tool(
        name=name or agent_id,
        toolset=SUB_AGENT_TOOLSET,
        description=description or describe_sub_agent(agent_id),
        execution=Execution.AGENT,
        access=Access.READ,
        input_model=JsonInput,
        declared_schema=dict(input_schema) if input_schema else dict(DEFAULT_INPUT_SCHEMA),
        sub_agent=f"{scope}@{version}" if version else scope,
    )
