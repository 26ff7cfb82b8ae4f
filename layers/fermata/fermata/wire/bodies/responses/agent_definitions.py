"""Define the response bodies of operations on the agents and secrets of a tenant."""

from typing import Annotated, Any, Literal

from pydantic import Field

from fermata.wire.bodies.responses.common import InstantField, ResponseModel


class AgentDefinitionSummary(ResponseModel):
    """An agent of the workspace. Without roles everyone may ask it."""

    id: str
    version: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    title: str
    description: str
    public: bool
    roles: list[str]
    updated_at: InstantField


class AgentDefinitionListResponse(ResponseModel):
    """The agents by their ids. `version` counts the changes of the list, `updatedBy` has made the last one."""

    agents: list[AgentDefinitionSummary]
    version: int
    updated_by: str


class AgentDefinitionResponse(ResponseModel):
    """An agent with its compiled definition. Secrets are named in it and never shown."""

    agent: AgentDefinitionSummary
    definition: dict[str, Any]


class AgentProblemView(ResponseModel):
    """What is wrong with a file, or probably not meant."""

    severity: Literal["error", "warning"]
    file: str
    line: int
    path: str
    message: str


class AgentDifferenceView(ResponseModel):
    """A member of a definition that changes."""

    path: str
    before: Any = None
    after: Any = None


class PushedAgentsResponse(ResponseModel):
    """The ids of the agents that were added, changed, removed and left as they are."""

    added: list[str]
    changed: list[str]
    removed: list[str]
    unchanged: list[str]
    version: int
    warnings: list[AgentProblemView]
    differences: dict[str, list[AgentDifferenceView]]


class SecretView(ResponseModel):
    """A secret without its value."""

    name: str
    updated_at: InstantField
    updated_by: str


class SecretListResponse(ResponseModel):
    secrets: list[SecretView]


class SecretResponse(ResponseModel):
    secret: SecretView
