"""Define the format of the files in which tenants define agents. The JSON Schema of the format follows from it."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from fermata.agents.definitions.agent_definition import AgentType
from fermata.domain.base import DomainModel
from fermata.domain.run_settings import RunHooks, RunSettings
from fermata.tools.schema.check_manifest_schema import find_schema_problem
from fermata.tools.schema.validate_manifest_value import MAX_SCHEMA_DEPTH, measure_schema_depth

MAX_INSTRUCTIONS_CHARS = 200_000
MAX_DESCRIPTION_CHARS = 4000
MAX_ENDPOINT_TOOLS = 128
MAX_MCP_SOURCES = 16
MAX_TOOLSETS = 16
MAX_SUB_AGENT_REFERENCES = 32
DISPLAY_BLOCKS = (
    "Alert",
    "Badge",
    "Card",
    "Descriptions",
    "Divider",
    "List",
    "Progress",
    "Result",
    "Statistic",
    "S3Table",
    "Tag",
    "Timeline",
)
"""The blocks in which a client shows the result of a tool."""


def _check_input_schema(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type", "object") != "object":
        raise ValueError("the schema has to describe an object")
    if measure_schema_depth(schema) > MAX_SCHEMA_DEPTH:
        raise ValueError(f"the schema is nested more than {MAX_SCHEMA_DEPTH} levels deep")
    if problem := find_schema_problem(schema):
        raise ValueError(f"the schema is no JSON Schema: {problem}")
    return schema


def _check_display(display: dict[str, Any]) -> dict[str, Any]:
    if display.get("type") not in DISPLAY_BLOCKS:
        raise ValueError(f"the type of a display has to be one of {', '.join(DISPLAY_BLOCKS)}")
    return display


_Text = Annotated[str, StringConstraints(min_length=1)]
_Description = Annotated[str, StringConstraints(max_length=MAX_DESCRIPTION_CHARS)]
_Schema = Annotated[dict[str, Any], AfterValidator(_check_input_schema)]
_Count = Annotated[int, Field(strict=True, ge=1)]
_Bool = Annotated[bool, Field(strict=True)]
Transport = Literal["http", "sse", "stdio"]


class _SourceModel(DomainModel):
    model_config = ConfigDict(defer_build=True)


class FileSystemSource(_SourceModel):
    """The folder whose files the agent reads, relative to the file that defines it."""

    base_path: _Text


class PropertiesSource(RunSettings):
    """The properties of an agent. Every value may be an operator: `{_payload: …}` or `{_user: …}`."""

    model: _Text
    instructions: Annotated[str, StringConstraints(max_length=MAX_INSTRUCTIONS_CHARS)] = ""
    file_system: FileSystemSource | None = None


class ClaudeProperties(PropertiesSource):
    """The properties of a ClaudeAgent."""

    thinking: dict[str, Any] | None = None
    effort: Literal["low", "medium", "high"] | None = None


class OpenAIProperties(PropertiesSource):
    """The properties of an OpenAIAgent."""

    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    reasoning_summary: Literal["auto", "detailed"] | None = None


class GeminiProperties(PropertiesSource):
    """The properties of a GeminiAgent."""

    thinking_config: dict[str, Any] | None = None
    safety_settings: list[dict[str, Any]] | None = None


class GatewayProperties(PropertiesSource):
    """The properties of an AIGatewayAgent. `fallbackModels` are tried in their order."""

    order: list[_Text] | None = None
    only: list[_Text] | None = None
    fallback_models: list[_Text] | None = None
    user: str | None = None
    tags: list[_Text] | None = None
    zero_data_retention: _Bool | None = None
    provider_timeouts: dict[str, Any] | None = None
    byok: dict[str, Any] | None = None


PROPERTIES_MODELS: dict[str, type[PropertiesSource]] = {
    "ClaudeAgent": ClaudeProperties,
    "OpenAIAgent": OpenAIProperties,
    "GeminiAgent": GeminiProperties,
    "AIGatewayAgent": GatewayProperties,
    "AISDKAgent": PropertiesSource,
}
PROVIDER_OPTIONS_KEYS = {
    "ClaudeAgent": "anthropic",
    "OpenAIAgent": "openai",
    "GeminiAgent": "google",
    "AIGatewayAgent": "gateway",
}
"""The member of `providerOptions` that the properties of one type of agent belong to."""


class ToolSource(_SourceModel):
    """A tool of an agent: an endpoint, under a name of its own. The bare id of the endpoint is short for it."""

    endpoint_id: _Text
    name: str | None = None
    confirm: _Bool = False
    display: Annotated[dict[str, Any], AfterValidator(_check_display)] | None = None


class ToolsetSource(_SourceModel):
    """The tools of a built-in agent, all or some. The bare id of the built-in agent is short for all."""

    toolset: _Text
    tools: Annotated[list[_Text], Field(min_length=1)] | None = None
    confirm: _Bool = False


class McpServerSource(_SourceModel):
    """An MCP server whose tools an agent has, by its connection or as it is reached. An id is short for the former."""

    connection_id: _Text | None = None
    url: _Text | None = None
    transport: Transport | None = None
    headers: dict[str, Any] = Field(default_factory=dict)
    command: _Text | None = None
    args: list[str] = Field(default_factory=list)
    env: dict[str, Any] = Field(default_factory=dict)
    confirm: _Bool = False


class SubAgentSource(_SourceModel):
    """Another agent that an agent may ask. Its bare id is short for it."""

    agent_id: _Text
    name: str | None = None
    description: _Description | None = None
    input_schema: _Schema | None = None


class AgentSource(_SourceModel):
    """An agent."""

    id: _Text
    type: AgentType
    connection_id: _Text
    title: Annotated[str, StringConstraints(max_length=200)] = ""
    description: _Description = ""
    properties: dict[str, Any]
    tools: list[_Text | ToolSource] = Field(default_factory=list, max_length=MAX_ENDPOINT_TOOLS)
    toolsets: list[_Text | ToolsetSource] = Field(default_factory=list, max_length=MAX_TOOLSETS)
    mcp: list[_Text | McpServerSource] = Field(default_factory=list, max_length=MAX_MCP_SOURCES)
    agents: list[_Text | SubAgentSource] = Field(default_factory=list, max_length=MAX_SUB_AGENT_REFERENCES)
    hooks: RunHooks = RunHooks.model_construct()


class ModelConnectionProperties(_SourceModel):
    """The properties of a connection to a provider: a stored credential, or a key that a secret holds."""

    credential: _Text | None = None
    api_key: dict[str, Any] | None = None
    base_url: Annotated[_Text | None, Field(alias="baseURL")] = None
    max_output_tokens: _Count | None = None
    timeout: _Count | None = None


class McpConnectionProperties(_SourceModel):
    """The properties of a connection to an MCP server."""

    url: _Text | None = None
    transport: Transport = "http"
    headers: dict[str, Any] = Field(default_factory=dict)
    command: _Text | None = None
    args: list[str] = Field(default_factory=list)
    env: dict[str, Any] = Field(default_factory=dict)


class ConnectionSource(_SourceModel):
    """A connection."""

    id: _Text
    type: Literal["Anthropic", "OpenAI", "OpenRouter", "Ollama", "OpenAICompatible", "Google", "AIGateway", "Mcp"]
    properties: dict[str, Any] = Field(default_factory=dict)


class EndpointSource(_SourceModel):
    """An HTTP endpoint of the tenant: a tool of agents, or a hook."""

    id: _Text
    description: _Description = ""
    payload_schema: _Schema | None = None
    output_schema: dict[str, Any] | None = None
    url: _Text
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    headers: dict[str, Any] = Field(default_factory=dict)
    timeout: _Count | None = None
    capability: Literal["read", "write"] = "read"
    idempotent: _Bool = False
    max_attempts: Annotated[int, Field(strict=True, ge=1, le=5)] = 1


class AgentRules(_SourceModel):
    """Who may ask which agents. Without rules everyone whom the service admits may ask all of them."""

    protected: Literal[True] | list[_Text] | None = None
    public: Literal[True] | list[_Text] | None = None
    roles: dict[_Text, list[_Text]] = Field(default_factory=dict)


class AuthSource(_SourceModel):
    """The rules of access."""

    agents: AgentRules = AgentRules.model_construct()


class AgentTestExpectation(_SourceModel):
    """What the answer to a prompt has to be: texts that it contains, and tools that were called."""

    contains: list[_Text] = Field(default_factory=list)
    tools: list[_Text] = Field(default_factory=list)


class AgentTestSource(_SourceModel):
    """A prompt with which `fermata agents test` tries an agent."""

    name: str = ""
    agent_id: _Text
    prompt: _Text
    expect: AgentTestExpectation = AgentTestExpectation.model_construct()


class DefinitionFile(_SourceModel):
    """A file that defines agents."""

    agents: list[AgentSource] | None = None
    connections: list[ConnectionSource] | None = None
    endpoints: list[EndpointSource] | None = None
    auth: AuthSource | None = None
    tests: list[AgentTestSource] | None = None
