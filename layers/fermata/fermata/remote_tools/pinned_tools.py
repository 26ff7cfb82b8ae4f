"""Choose the remote tools that a turn is offered when it starts, and build their records in its rounds."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fermata.aws.dynamodb_items_and_writes import ReadItem
from fermata.aws.resources import Resources
from fermata.domain.tools import ToolOutput
from fermata.domain.value_dataclass import value_dataclass
from fermata.remote_tools.built_in.built_in_tools import BUILT_IN_TOOLS_BY_NAME
from fermata.remote_tools.built_in.host_names import may_reach_any_host
from fermata.remote_tools.deployment_tools import DEPLOYMENT_ID_PREFIX, get_deployment_tools, list_deployment_lines
from fermata.remote_tools.manifest_tool_executor import MAX_TOTAL_SECONDS
from fermata.remote_tools.provider_alias import RESERVED_ALIASES, make_provider_alias
from fermata.remote_tools.stored_tools import read_definitions
from fermata.remote_tools.tool_definition import (
    RegisteredTool,
    RegisteredTools,
    ToolDefinition,
    ToolSecrets,
    build_tools_key,
    open_tool_secrets,
)
from fermata.remote_tools.tool_manifest import ToolManifest, normalize_tool_name
from fermata.tools.tool import Access, Approval, Execution, JsonInput, Risk, Tool, ToolContext
from fermata.tools.toolset import Toolset, list_tool_names

REMOTE_TOOLSET = "remote"
_DEFINITION_CACHE_SECONDS = 3600
"""A version never changes; the limit only bounds the memory."""


def pin_remote_tools(resources: Resources, tenant: str, scope: str, read_item: ReadItem) -> tuple[str, ...]:
    """Return the ids of the versions that a turn of this scope starts with.

    Args:
        resources: Of the process.
        tenant: The tenant's name.
        scope: The turn's scope.
        read_item: As for `list_tools_of_scope`.
    """
    return tuple(tool.definition for tool in list_tools_of_scope(resources, tenant, scope, read_item))


def list_tools_of_scope(resources: Resources, tenant: str, scope: str, read_item: ReadItem) -> list[RegisteredTool]:
    """Return the tools that a turn of this scope is offered.

    Args:
        tenant: The tenant's name.
        scope: The turn's scope.
        read_item: Reads the tenant's list of tools, or returns it as it was read with other rows.
    """
    registered = RegisteredTools.from_item(read_item(build_tools_key(resources, tenant)))
    lines = list_deployment_lines(resources) | registered.tools
    return [tool for _, tool in sorted(lines.items()) if tool.enabled and (not tool.scopes or scope in tool.scopes)]


def load_definitions(resources: Resources, tenant: str, ids: Sequence[str]) -> dict[str, ToolDefinition]:
    """Return the versions with these ids, which a process reads once; those that are gone are missing.

    Args:
        resources: The settings table, and the cache of the process.
        tenant: The tenant's name.
        ids: As a turn has pinned them.
    """
    cached = {one: _get_known(resources, tenant, one) for one in ids}
    missing = [one for one, version in cached.items() if version is None and not one.startswith(DEPLOYMENT_ID_PREFIX)]
    read = read_definitions(resources, tenant, missing)
    for one, version in read.items():
        resources.cache.put_value(("tool", tenant, one), _DEFINITION_CACHE_SECONDS, version)
    found = {one: cached[one] or read.get(one) for one in ids}
    return {one: definition for one, definition in found.items() if definition is not None}


def _get_known(resources: Resources, tenant: str, definition_id: str) -> ToolDefinition | None:
    """Return a version that needs no read: one of the deployment's file, or one that the process has read before."""
    if definition_id.startswith(DEPLOYMENT_ID_PREFIX):
        tool = get_deployment_tools(resources).get(definition_id)
        return tool.definition.model_copy(update={"tenant": tenant}) if tool else None
    known: ToolDefinition | None = resources.cache.get_value(("tool", tenant, definition_id))
    return known


def add_remote_tools(toolset: Toolset, definitions: Mapping[str, ToolDefinition]) -> Toolset:
    """Return the toolset of a turn with its remote tools, each under an alias that no other tool has.

    Nor is any other tool registered under that alias: a rule of a policy that names one tool is about no other.

    Args:
        toolset: The tools of the turn's agent.
        definitions: The versions that the turn has pinned, in their order.
    """
    if not definitions:
        return toolset
    used = set(RESERVED_ALIASES).union(*map(list_tool_names, toolset.tools))
    own_names = {definition.parsed_manifest.name for definition in definitions.values()}
    remote_tools = []
    for definition in definitions.values():
        taken = used | (own_names - {definition.parsed_manifest.name})
        alias = make_provider_alias(definition.parsed_manifest.name, taken)
        remote_tools.append(build_remote_tool(definition, alias, taken))
        used |= list_tool_names(remote_tools[-1])
    return Toolset(toolset.name, (*toolset.tools, *remote_tools))


@value_dataclass(frozen=True)
class RemoteToolHandler:
    """Calls one version of a remote tool through the turn that runs it."""

    definition: str

    def __call__(self, tool_input: JsonInput, context: ToolContext, /) -> ToolOutput:
        return context.call_remote_tool(self.definition, tool_input.arguments, context.effect_key)


def build_remote_tool(definition: ToolDefinition, alias: str, used: Collection[str] = ()) -> Tool:
    """Return the record of a remote tool.

    Args:
        definition: The version.
        alias: The name that models and clients know.
        used: The names of other tools, none of which becomes an alias of this one.
    """
    manifest = definition.parsed_manifest
    is_write = manifest.capability == "write"
    # A page that the model has read can make it put what it knows into the address of a server of any name.
    built_in = BUILT_IN_TOOLS_BY_NAME.get(manifest.name) if definition.is_built_in else None
    leaves_site = is_write and not (built_in and built_in.writes_to_site)
    is_asked_for = leaves_site or (definition.is_built_in and may_reach_any_host(definition.options))
    is_own_name = normalize_tool_name(manifest.name) not in map(normalize_tool_name, used)
    other_names = {manifest.name} - {alias} if is_own_name else ()
    return Tool(
        name=alias,
        toolset=REMOTE_TOOLSET,
        description=manifest.description,
        execution=Execution.REMOTE,
        access=Access.WRITE if is_write else Access.READ,
        input_model=JsonInput,
        declared_schema=_complete_schema(manifest.input_schema),
        handler=RemoteToolHandler(definition.id),
        aliases=tuple(other_names),
        tenant=definition.tenant,
        risk=Risk.HIGH if leaves_site else Risk.MODERATE if is_write else Risk.SAFE,
        approval=Approval.UNLESS_NAMED if is_asked_for else Approval.NEVER,
        timeout_seconds=compute_total_seconds(manifest),
        idempotent=manifest.idempotent,
        reads_outside_content=True,
        enabled=manifest.enabled,
    )


def _complete_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Add what providers require of an input schema."""
    return {"type": "object", "properties": {}} | dict(schema)


def compute_total_seconds(manifest: ToolManifest) -> float:
    """Return how long all attempts of a call may take, with the waits between them."""
    attempts = manifest.retry_policy.max_attempts
    waits = sum(2 * manifest.retry_policy.backoff_ms / 1000 * attempt + 1 for attempt in range(1, attempts))
    all_attempts = manifest.timeout_seconds * attempts + waits
    return min(all_attempts, MAX_TOTAL_SECONDS + manifest.timeout_seconds) + 1


def read_tool_secrets(resources: Resources, definition: ToolDefinition) -> ToolSecrets | None:
    """Return the secrets of a version, from its row or from the deployment's file; None if they cannot be opened.

    Args:
        resources: The vault.
        definition: The version.
    """
    if definition.id.startswith(DEPLOYMENT_ID_PREFIX):
        tool = get_deployment_tools(resources).get(definition.id)
        return tool.secrets if tool else None
    return open_tool_secrets(resources, definition)
