"""Define a compiled agent: everything that its turns need, with what it refers to, in one immutable value."""

import hashlib
import json
from functools import cached_property
from typing import Any, Literal, NamedTuple

from pydantic import Field

from fermata.domain.base import DomainModel
from fermata.domain.run_settings import RunSettings

AgentType = Literal["ClaudeAgent", "OpenAIAgent", "GeminiAgent", "AIGatewayAgent", "AISDKAgent"]
VERSION_CHARS = 16
"""Hexadecimal characters of a version: 64 bits of the SHA-256 of the definition, as of built-in agents."""
PROPERTIES_BESIDES_SETTINGS = frozenset({"model", "instructions", "fileSystem"})


class ConnectionDefinition(DomainModel):
    """A connection that an agent uses. Members of `properties` may be references `{_secret: NAME}`.

    Attributes:
        credential: The id or the label of a stored credential of the tenant; empty if the connection has a key.
    """

    id: str
    type: str
    credential: str = ""
    properties: dict[str, Any] = Field(default_factory=dict)


class EndpointDefinition(DomainModel):
    """An HTTP endpoint of the tenant. Members of `headers` may be references `{_secret: NAME}`."""

    id: str
    description: str = ""
    payload_schema: dict[str, Any] | None = None
    output_schema: dict[str, Any] | None = None
    url: str
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    headers: dict[str, Any] = Field(default_factory=dict)
    timeout: int | None = None
    """In milliseconds."""
    capability: Literal["read", "write"] = "read"
    idempotent: bool = False
    max_attempts: int = 1
    roles: tuple[str, ...] = ()


class EndpointToolReference(DomainModel):
    """An endpoint that an agent's model may call, under this name."""

    endpoint_id: str
    name: str
    confirm: bool = False
    display: dict[str, Any] | None = None


class ToolsetReference(DomainModel):
    """The tools of a built-in agent, which an agent of a tenant may have as well.

    Attributes:
        toolset: The id of the built-in agent.
        tools: The canonical names of those that it has; None for all.
        confirm: Whether a person decides about each of its writes.
    """

    toolset: str
    tools: tuple[str, ...] | None = None
    confirm: bool = False


class McpSource(DomainModel):
    """An MCP server whose tools an agent has. A source that names a connection has the members of that connection."""

    connection_id: str = ""
    transport: Literal["http", "sse", "stdio"] = "http"
    url: str = ""
    headers: dict[str, Any] = Field(default_factory=dict)
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, Any] = Field(default_factory=dict)
    confirm: bool = False


class SubAgentReference(DomainModel):
    """Another agent of the tenant that an agent may ask, in the version with which it was compiled."""

    agent_id: str
    version: str = ""
    name: str
    description: str
    input_schema: dict[str, Any]


class BundledFiles(DomainModel):
    """The files that an agent's file tools read: the folder as it was named, and the key of its bundle."""

    base_path: str
    bundle: str


class AgentAccess(DomainModel):
    """Who may ask an agent. Without roles everyone whom the service admits may.

    Attributes:
        is_public: Whether no rule of the tenant protects it.
        roles: A caller needs one of them as a capability; empty for none.
    """

    is_public: bool = True
    roles: tuple[str, ...] = ()


class AgentProperties(NamedTuple):
    """The properties of an agent for one turn, with every operator resolved."""

    model: str
    instructions: str
    settings: RunSettings


class AgentDefinition(DomainModel):
    """A compiled agent.

    Attributes:
        properties: As they were written, with defaults filled in. Values may be operators.
        dynamic_properties: The names of the properties that contain operators. They are resolved when a turn starts.
        toolsets: The toolsets of built-in agents that it has; None without any, so that its version is the one that
            it had before toolsets could be named.
        endpoints: The endpoints that its tools and hooks name, by id.
        connections: The further connections that it names, by id: those of MCP sources and of the transcription.
        stored_version: The version under which it was stored; empty for one that was compiled now.
    """

    id: str
    type: AgentType
    title: str = ""
    description: str = ""
    access: AgentAccess = AgentAccess()
    connection: ConnectionDefinition
    properties: dict[str, Any]
    dynamic_properties: tuple[str, ...] = ()
    tools: tuple[EndpointToolReference, ...] = ()
    toolsets: tuple[ToolsetReference, ...] | None = None
    mcp: tuple[McpSource, ...] = ()
    agents: tuple[SubAgentReference, ...] = ()
    hooks: dict[str, Any] = Field(default_factory=dict)
    files: BundledFiles | None = None
    endpoints: dict[str, EndpointDefinition] = Field(default_factory=dict)
    connections: dict[str, ConnectionDefinition] = Field(default_factory=dict)
    stored_version: str = Field(default="", exclude=True)

    @cached_property
    def canonical_json(self) -> bytes:
        """The JSON from which the version is computed, and which is stored."""
        return json.dumps(self.to_wire(), sort_keys=True, separators=(",", ":")).encode()

    @cached_property
    def version(self) -> str:
        """The beginning of the SHA-256 of the definition, as it was when it was stored.

        A later release may know more members, and would compute another one.
        """
        return self.stored_version or hashlib.sha256(self.canonical_json).hexdigest()[:VERSION_CHARS]

    @property
    def reference(self) -> str:
        """The id and version, which a turn pins."""
        return f"{self.id}@{self.version}"

    def parse_properties(self, resolved: dict[str, Any] | None = None) -> AgentProperties:
        """Return the properties of a turn.

        Args:
            resolved: The values of the dynamic properties; None leaves these properties out.

        Raises:
            pydantic.ValidationError: A resolved value is not allowed.
        """
        known = {name: value for name, value in self.properties.items() if name not in self.dynamic_properties}
        properties = known | (resolved or {})
        settings = {name: value for name, value in properties.items() if name not in PROPERTIES_BESIDES_SETTINGS}
        return AgentProperties(
            model=str(properties.get("model") or ""),
            instructions=str(properties.get("instructions") or ""),
            settings=RunSettings.from_wire(settings | {"hooks": self.hooks}),
        )
