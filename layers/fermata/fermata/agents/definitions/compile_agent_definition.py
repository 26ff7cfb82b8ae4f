"""Compile one agent: check it by itself and against the connections and endpoints, and normalize its short forms."""

from collections.abc import Callable, Mapping
from typing import Any

from fermata.agents.definitions.agent_definition import (
    AgentAccess,
    AgentDefinition,
    BundledFiles,
    ConnectionDefinition,
    EndpointDefinition,
    EndpointToolReference,
    McpSource,
    SubAgentReference,
)
from fermata.agents.definitions.compile_agent_settings import (
    add_defaults,
    compile_properties,
    list_dynamic_properties,
)
from fermata.agents.definitions.compile_connection_definitions import check_mcp_server, check_secret_references
from fermata.agents.definitions.compile_toolsets import compile_toolsets, list_shared_tool_names
from fermata.agents.definitions.connection_types import AGENT_CONNECTION_TYPES, CONNECTION_TYPES
from fermata.agents.definitions.definition_names import (
    find_agent_id_problem,
    find_tool_name_problem,
    make_tool_name,
)
from fermata.agents.definitions.definition_problems import Place, ProblemList
from fermata.agents.definitions.resolve_operators import iter_operators
from fermata.agents.definitions.source_models import AgentSource, McpServerSource, SubAgentSource, ToolSource
from fermata.domain.run_settings import RunHooks
from fermata.domain.value_dataclass import value_dataclass

DEFAULT_SUB_AGENT_SCHEMA = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "What is to be done, with all that has to be known."}},
    "required": ["task"],
}
FindBundle = Callable[[str], str]
"""Returns the key of the stored files of a folder, given its `basePath`; raises ValueError where there is none."""


@value_dataclass(frozen=True)
class CompileScope:
    """What an agent can refer to. Items that are broken themselves are in `broken` and are not reported again."""

    connections: Mapping[str, ConnectionDefinition]
    endpoints: Mapping[str, EndpointDefinition]
    broken: frozenset[str]
    find_bundle: FindBundle


class AgentCompiler:
    """Compiles one agent of a file."""

    def __init__(self, place: Place, scope: CompileScope, problems: ProblemList) -> None:
        self._place, self._scope, self._problems = place, scope, problems
        self._shared_names: Mapping[str, str] = {}

    def compile(self, value: Any, access: AgentAccess) -> AgentDefinition | None:
        """Return the agent, whose sub-agents have no version yet; None after its mistakes were added.

        Args:
            value: The item of the list.
            access: Who may ask it.
        """
        count = self._problems.error_count
        source = self._check_source(value)
        if source is None:
            return None
        connection = self._find_model_connection(source)
        place = self._place.inside("properties")
        properties = compile_properties(place, source.id, source.type, source.properties, self._problems)
        toolsets = compile_toolsets(self._place.inside("toolsets"), source.id, source.toolsets, self._problems)
        self._shared_names = list_shared_tool_names(toolsets)
        tools = self._list_tools(source)
        mcp = self._list_mcp(source)
        agents = self._list_agents(source)
        self._check_hooks(source.hooks)
        files = self._find_files(source)
        if self._problems.error_count > count or connection is None or properties is None:
            return None
        complete = add_defaults({name: one for name, one in properties.items() if name != "fileSystem"}, connection)
        endpoint_ids = [*(tool.endpoint_id for tool in tools), *source.hooks.endpoint_ids]
        return AgentDefinition(
            id=source.id,
            type=source.type,
            title=source.title,
            description=source.description,
            access=access,
            connection=connection,
            properties=complete,
            dynamic_properties=list_dynamic_properties(complete),
            tools=tuple(tools),
            toolsets=toolsets,
            mcp=tuple(mcp),
            agents=tuple(agents),
            hooks={name: ids for name, ids in source.hooks.to_wire().items() if ids},
            files=files,
            endpoints={one: self._scope.endpoints[one] for one in endpoint_ids if one in self._scope.endpoints},
            connections=self._list_further_connections(source, complete),
        )

    def _check_source(self, value: Any) -> AgentSource | None:
        """Return the agent as it is written, with an id that can be used."""
        if isinstance(value, Mapping) and isinstance(value.get("id"), str):
            if problem := find_agent_id_problem(value["id"]):
                self._problems.add_error(self._place.inside("id"), problem)
                return None
            if value.get("properties") is None:
                value = {**value, "properties": {}}
        source: AgentSource | None = self._problems.check_model(self._place, AgentSource, value)
        return source

    def _find_model_connection(self, source: AgentSource) -> ConnectionDefinition | None:
        place = self._place.inside("connectionId")
        connection = self._find_connection(place, source.id, source.connection_id)
        if connection is None:
            return None
        allowed = AGENT_CONNECTION_TYPES[source.type]
        if connection.type not in allowed:
            message = f"The connection {connection.id!r} is of type {connection.type}; {source.type} needs one of type"
            self._problems.add_error(place, f"{message} {' or '.join(sorted(allowed))}.")
        return connection

    def _find_connection(self, place: Place, agent_id: str, connection_id: str) -> ConnectionDefinition | None:
        connection = self._scope.connections.get(connection_id)
        if connection is None and connection_id not in self._scope.broken:
            message = f"The agent {agent_id!r} names the connection {connection_id!r}, which does not exist."
            self._problems.add_error(
                place, message + self._problems.suggest_name(connection_id, list(self._scope.connections))
            )
        return connection

    def _list_tools(self, source: AgentSource) -> list[EndpointToolReference]:
        tools: dict[str, EndpointToolReference] = {}
        for index, written in enumerate(source.tools):
            place = self._place.inside("tools", index)
            one = ToolSource(endpoint_id=written) if isinstance(written, str) else written
            name = make_tool_name(one.endpoint_id) if one.name is None else one.name
            problem = find_tool_name_problem(name) or self._find_shared_name_problem(name)
            if not problem and name in tools:
                problem = f"The tool name {name!r} is a duplicate: another tool of the agent {source.id!r} has it."
            if problem:
                self._problems.add_error(place, problem)
            elif self._check_tool_endpoint(place, source.id, one.endpoint_id):
                tools[name] = EndpointToolReference(
                    endpoint_id=one.endpoint_id, name=name, confirm=one.confirm, display=one.display
                )
        return list(tools.values())

    def _find_shared_name_problem(self, name: str) -> str:
        owner = self._shared_names.get(name)
        return f"The tool name {name!r} is a duplicate: a tool of the toolset {owner!r} has it." if owner else ""

    def _check_tool_endpoint(self, place: Place, agent_id: str, endpoint_id: str) -> bool:
        endpoint = self._find_endpoint(place, agent_id, endpoint_id)
        if endpoint is None:
            return endpoint_id in self._scope.broken
        missing = [
            name
            for name, value in (("description", endpoint.description), ("payloadSchema", endpoint.payload_schema))
            if not value and value != {}
        ]
        for name in missing:
            message = f"The endpoint {endpoint_id!r} is used as a tool of the agent {agent_id!r} without {name!r}."
            self._problems.add_error(place, message)
        return not missing

    def _find_endpoint(self, place: Place, agent_id: str, endpoint_id: str) -> EndpointDefinition | None:
        endpoint = self._scope.endpoints.get(endpoint_id)
        if endpoint is None and endpoint_id not in self._scope.broken:
            message = f"The agent {agent_id!r} names the endpoint {endpoint_id!r}, which does not exist."
            self._problems.add_error(
                place, message + self._problems.suggest_name(endpoint_id, list(self._scope.endpoints))
            )
        return endpoint

    def _list_mcp(self, source: AgentSource) -> list[McpSource]:
        return [
            one for index, written in enumerate(source.mcp) if (one := self._compile_mcp(source.id, index, written))
        ]

    def _compile_mcp(self, agent_id: str, index: int, written: str | McpServerSource) -> McpSource | None:
        place = self._place.inside("mcp", index)
        one = McpServerSource(connection_id=written) if isinstance(written, str) else written
        if one.connection_id is None:
            members = one.to_wire()
            name = f"The MCP source at index {index} of the agent {agent_id!r}"
            is_valid = check_mcp_server(place, members, self._problems, name)
            is_valid &= check_secret_references(place, members, self._problems)
            return McpSource.from_wire(members) if is_valid else None
        connection = self._find_connection(place, agent_id, one.connection_id)
        if connection is None:
            return None
        if connection.type != "Mcp":
            message = f"The connection {connection.id!r} is of type {connection.type}, not Mcp."
            self._problems.add_error(place, message)
            return None
        own = {"connectionId": connection.id, "confirm": one.confirm}
        return McpSource.from_wire(connection.properties | own)

    def _list_agents(self, source: AgentSource) -> list[SubAgentReference]:
        agents: dict[str, SubAgentReference] = {}
        for index, written in enumerate(source.agents):
            place = self._place.inside("agents", index)
            one = SubAgentSource(agent_id=written) if isinstance(written, str) else written
            name = one.agent_id if one.name is None else one.name
            problem = find_tool_name_problem(name) or self._find_shared_name_problem(name)
            if not problem and name in agents:
                problem = f"The name {name!r} is a duplicate: another sub-agent of {source.id!r} has it."
            if problem:
                self._problems.add_error(place, problem)
                continue
            agents[name] = SubAgentReference(
                agent_id=one.agent_id,
                name=name,
                description=one.description or f"Delegate task to the {one.agent_id} agent",
                input_schema=one.input_schema or DEFAULT_SUB_AGENT_SCHEMA,
            )
        return list(agents.values())

    def _check_hooks(self, hooks: RunHooks) -> None:
        for name, endpoint_ids in hooks.to_wire().items():
            for index, endpoint_id in enumerate(endpoint_ids):
                if endpoint_id in self._scope.endpoints or endpoint_id in self._scope.broken:
                    continue
                message = f"The hook {name} names the endpoint {endpoint_id!r}, which does not exist."
                place = self._place.inside("hooks", name, index)
                self._problems.add_error(
                    place, message + self._problems.suggest_name(endpoint_id, list(self._scope.endpoints))
                )

    def _find_files(self, source: AgentSource) -> BundledFiles | None:
        written = source.properties.get("fileSystem")
        base_path = written.get("basePath") if isinstance(written, Mapping) else None
        if any(iter_operators(written)):
            place = self._place.inside("properties", "fileSystem")
            self._problems.add_error(place, "A folder is pushed with its agent: write out its basePath, no operator.")
        if not isinstance(base_path, str) or not base_path:
            return None
        try:
            return BundledFiles(base_path=base_path, bundle=self._scope.find_bundle(base_path))
        except ValueError as error:
            place = self._place.inside("properties", "fileSystem", "basePath")
            self._problems.add_error(place, f"The basePath {base_path!r} of the agent {source.id!r} {error}.")
            return None

    def _list_further_connections(
        self, source: AgentSource, properties: Mapping[str, Any]
    ) -> dict[str, ConnectionDefinition]:
        transcription = properties.get("transcription")
        connection_id = transcription.get("connectionId") if isinstance(transcription, Mapping) else None
        if not isinstance(connection_id, str):
            return {}
        place = self._place.inside("properties", "transcription", "connectionId")
        connection = self._find_connection(place, source.id, connection_id)
        if connection is not None and not CONNECTION_TYPES[connection.type].hears:
            message = f"The connection {connection_id!r} has no models for recordings: {connection.type} has none."
            self._problems.add_error(place, message)
        return {connection_id: connection} if connection else {}
