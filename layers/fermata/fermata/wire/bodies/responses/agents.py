"""Define the response bodies of operations on agents."""

from typing import Annotated

from pydantic import Field

from fermata.wire.bodies.responses.common import ResponseModel
from fermata.wire.bodies.responses.editor import ToolView


class AgentSummary(ResponseModel):
    """An agent. Its version changes with its definition; a turn keeps the version with which it has started."""

    id: str
    version: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    title: str
    description: str


class AgentListResponse(ResponseModel):
    agents: list[AgentSummary]


class AgentView(AgentSummary):
    """An agent with its settings and tools. `maxRounds` is there if the agent limits the rounds of its turns."""

    max_rounds: Annotated[int, Field(ge=1)] | None = None
    tools: list[ToolView]


class AgentResponse(ResponseModel):
    agent: AgentView
