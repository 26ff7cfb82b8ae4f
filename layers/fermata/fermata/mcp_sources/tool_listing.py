"""List the tools of MCP servers when a turn starts, and pin them with the turn (decision 0375)."""

import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from fermata.agents.approval_policy import fold_tool_name
from fermata.agents.definitions.agent_definition import AgentDefinition, McpSource
from fermata.agents.definitions.definition_names import PLATFORM_TOOL_NAMES, find_tool_name_problem
from fermata.agents.tool_sources.mcp_tools import McpPin, PinnedMcpSource, PinnedMcpTool, clean_tool_schema
from fermata.aws.resources import Resources
from fermata.domain.errors import ApiError
from fermata.domain.surrogates_and_infinities import to_storable_json
from fermata.domain.value_dataclass import value_dataclass
from fermata.mcp_sources.mcp_server import McpServer, make_source_label, open_mcp_server
from fermata.remote_tools.provider_alias import make_provider_alias
from fermata.tools.schema.check_manifest_schema import find_schema_problem
from fermata.tools.schema.validate_manifest_value import MAX_SCHEMA_DEPTH, measure_schema_depth

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

LIST_SECONDS = 10.0
"""How long all servers together may take: the start of the turn waits for them."""
PROGRAM_LIST_SECONDS = 30.0
"""The same for a program, which has to start first."""
MAX_LISTED_PAGES = 20
MAX_TOOLS_PER_SOURCE = 128
MAX_SCHEMA_CHARS = 16_000
MAX_WARNINGS = 20
MAX_SOURCES_AT_ONCE = 16


@value_dataclass(frozen=True)
class ListedSources:
    """The tools that a turn gets, and what its user should know about those that it does not get."""

    pin: McpPin
    warnings: tuple[str, ...] = ()


def list_sources(
    resources: Resources, tenant: str, definition: AgentDefinition, *, keeps_sessions: bool
) -> ListedSources:
    """Ask all MCP servers of an agent at the same time. One that cannot be asked is a warning, and has no tools.

    Args:
        resources: The secrets of the tenant.
        tenant: Whose agent it is.
        definition: The agent.
        keeps_sessions: Whether the turn goes on with the sessions that are opened now, and ends them.
    """

    def list_one(index: int) -> "_Listing":
        return _list_source(resources, tenant, index, definition.mcp[index], keeps_sessions=keeps_sessions)

    listings = resources.clock.map_in_threads(list_one, range(len(definition.mcp)), MAX_SOURCES_AT_ONCE)
    named = [*(reference.name for reference in definition.tools), *(one.name for one in definition.agents)]
    used = set(map(fold_tool_name, named))
    sources, warnings = list[PinnedMcpSource](), list[str]()
    for listing in listings:
        source, problems = _name_tools(listing, used)
        used |= {fold_tool_name(tool.alias) for tool in source.tools}
        sources.append(source)
        warnings += problems
    return ListedSources(McpPin(sources=tuple(sources)), tuple(warnings[:MAX_WARNINGS]))


@value_dataclass(frozen=True)
class _Listing:
    source: PinnedMcpSource
    listed: Sequence[Any] = ()
    failure: str = ""
    is_cut: bool = False


def _list_source(resources: Resources, tenant: str, index: int, source: McpSource, *, keeps_sessions: bool) -> _Listing:
    pinned = PinnedMcpSource(index=index, label=make_source_label(source))
    try:
        server = open_mcp_server(resources, tenant, source)
    except ApiError as refusal:
        return _Listing(pinned, failure=f"{pinned.label}: {refusal.message}")
    # imported here because most turns ask no MCP server, and the package is large
    from fermata.mcp_sources.cancellable_run import CancellableRun, RunTimedOut
    from fermata.mcp_sources.mcp_session import MCP_ERRORS, KeptSession, describe_mcp_failure

    kept = KeptSession()
    try:
        listed, is_cut = CancellableRun(_get_limit(server)).run(lambda: _ask_for_tools(server, kept))
    except RunTimedOut:
        return _Listing(pinned, failure=f"{pinned.label} did not answer in time.")
    except MCP_ERRORS as error:
        return _Listing(pinned, failure=str(describe_mcp_failure(server, error, kept.failed_status)))
    except BaseExceptionGroup as group:
        if group.split(MCP_ERRORS)[1] is not None:
            raise
        return _Listing(pinned, failure=str(describe_mcp_failure(server, group, kept.failed_status)))
    if server.transport == "http" and (keeps_sessions or not kept.id):
        pinned = pinned.model_copy(update={"session": kept.id, "agreement": kept.agreement})
    elif kept.id:
        from fermata.mcp_sources.end_sessions import end_session

        end_session(server, kept.id)
    return _Listing(pinned, listed, is_cut=is_cut)


def _get_limit(server: McpServer) -> float:
    return PROGRAM_LIST_SECONDS if server.transport == "stdio" else LIST_SECONDS


async def _ask_for_tools(server: McpServer, kept: Any) -> tuple[list[Any], bool]:
    """Return the tools of all pages, and whether there are more than a turn may have."""
    from fermata.mcp_sources.mcp_session import open_mcp_session

    async with open_mcp_session(server, kept, _get_limit(server)) as session:
        return await _read_pages(session)


async def _read_pages(session: "ClientSession") -> tuple[list[Any], bool]:
    import mcp_types

    tools: list[Any] = []
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MAX_LISTED_PAGES):
        page = await session.list_tools(params=mcp_types.PaginatedRequestParams(cursor=cursor) if cursor else None)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor or cursor in seen or len(tools) > MAX_TOOLS_PER_SOURCE:
            break
        seen.add(cursor)
    return tools[:MAX_TOOLS_PER_SOURCE], bool(cursor) or len(tools) > MAX_TOOLS_PER_SOURCE


def _name_tools(listing: _Listing, used: Collection[str]) -> tuple[PinnedMcpSource, list[str]]:
    """Return a source with the tools that can be offered, and a warning for each of the others."""
    label, warnings = listing.source.label, list[str]()
    if listing.failure:
        warnings.append(f"Tools are missing in this turn: {listing.failure}")
    if listing.is_cut:
        warnings.append(f"{label} has more than {MAX_TOOLS_PER_SOURCE} tools; the others are left out.")
    tools: dict[str, PinnedMcpTool] = {}
    for listed in listing.listed:
        alias = make_provider_alias(listed.name, ())
        if problem := _find_problem(listed, alias, used, tools):
            warnings.append(f"The tool {listed.name[:64]!r} of {label} is left out: {problem}")
            continue
        tools[fold_tool_name(alias)] = _pin_tool(listed, alias)
    return listing.source.model_copy(update={"tools": tuple(tools.values())}), warnings


def _find_problem(listed: Any, alias: str, *used: Collection[str]) -> str:
    folded = fold_tool_name(alias)
    if folded in PLATFORM_TOOL_NAMES or fold_tool_name(listed.name) in PLATFORM_TOOL_NAMES:
        return "its name is reserved, a tool of the platform has it."
    if any(folded in names for names in used):
        return f"another tool is called {alias}, in this or another case."
    if find_tool_name_problem(alias) and alias != "toString":
        return "its name is reserved."
    schema = listed.input_schema
    if measure_schema_depth(schema) > MAX_SCHEMA_DEPTH or len(json.dumps(schema)) > MAX_SCHEMA_CHARS:
        return "its input schema is too large."
    if schema.get("type", "object") != "object":
        return "its input is no object."
    if problem := find_schema_problem(schema):
        return f"its input schema is none: {problem}."
    return ""


def _pin_tool(listed: Any, alias: str) -> PinnedMcpTool:
    hints = listed.annotations
    return PinnedMcpTool(
        name=listed.name,
        alias=alias,
        description=listed.description or listed.title or "",
        input_schema=clean_tool_schema(to_storable_json(listed.input_schema)),
        is_read_only=bool(hints and hints.read_only_hint),
        is_idempotent=bool(hints and hints.idempotent_hint),
    )
