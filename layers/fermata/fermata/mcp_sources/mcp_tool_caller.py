"""Call tools of MCP servers for one turn."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fermata.agents.definitions.agent_definition import AgentDefinition
from fermata.agents.tool_sources.mcp_tools import MCP_CALL_SECONDS, MCP_PREFIX, McpPin, PinnedMcpSource
from fermata.aws.resources import Resources
from fermata.domain.errors import ApiError
from fermata.domain.tools import ToolOutput
from fermata.mcp_sources.end_sessions import end_session
from fermata.mcp_sources.mcp_server import McpServer, open_mcp_server

if TYPE_CHECKING:
    import mcp_types

    from fermata.mcp_sources.cancellable_run import CancellableRun
    from fermata.mcp_sources.mcp_session import KeptSession, McpFailure

EFFECT_KEY_META = "dev.fermata/effect-key"
"""The member of `_meta` by which a server recognises the repetition of a call."""
UNKNOWN_EFFECT_NOTE = "Whether it took effect is unknown: check before repeating it."
STOPPED_MESSAGE = "The call was stopped."


class McpToolCaller:
    """Calls tools for one turn, one call at a time. `abort` may be called from any thread."""

    def __init__(self, resources: Resources, tenant: str) -> None:
        self._resources = resources
        self._tenant = tenant
        self._run: CancellableRun | None = None

    def call(
        self, definition: AgentDefinition, pin: McpPin, called: str, arguments: Mapping[str, Any], effect_key: str
    ) -> ToolOutput:
        """Call a tool and return its outcome; nothing is raised.

        Args:
            definition: The agent of the turn.
            pin: What the turn has pinned.
            called: The source and the tool, as `mcp:<source>:<name>`.
            arguments: Valid input.
            effect_key: Identifies the call, the same for its repetitions.
        """
        index, _, name = called.removeprefix(MCP_PREFIX).partition(":")
        source = next(one for one in pin.sources if one.index == int(index))
        try:
            server = open_mcp_server(self._resources, self._tenant, definition.mcp[source.index])
        except ApiError as refusal:
            return ToolOutput.failure(f"{source.label}: {refusal.message}")
        return self._call_server(server, source, name, dict(arguments), effect_key)

    def abort(self) -> None:
        """End the call under way, because its result is no longer needed."""
        run = self._run
        if run is not None:
            run.abort()

    def _call_server(
        self, server: McpServer, source: PinnedMcpSource, name: str, arguments: dict[str, Any], effect_key: str
    ) -> ToolOutput:
        # imported here because most turns ask no MCP server, and the package is large
        from fermata.mcp_sources.cancellable_run import CancellableRun, RunAborted, RunTimedOut
        from fermata.mcp_sources.mcp_results import build_mcp_output
        from fermata.mcp_sources.mcp_session import MCP_ERRORS, KeptSession, describe_mcp_failure

        kept = KeptSession(id=source.session, agreement=source.agreement)
        self._run = run = CancellableRun(MCP_CALL_SECONDS)
        try:
            output = build_mcp_output(run.run(lambda: _call(server, kept, name, arguments, effect_key)))
            return output if output.ok else ToolOutput.failure(server.veil_secrets(output.error or ""))
        except RunAborted:
            return ToolOutput.failure(STOPPED_MESSAGE)
        except RunTimedOut:
            return ToolOutput.failure(f"{source.label} did not answer in time. {UNKNOWN_EFFECT_NOTE}")
        except MCP_ERRORS as error:
            return _build_failure(describe_mcp_failure(server, error, kept.failed_status))
        except BaseExceptionGroup as group:
            if group.split(MCP_ERRORS)[1] is not None:
                raise
            return _build_failure(describe_mcp_failure(server, group, kept.failed_status))
        finally:
            self._run = None
            if kept.id and kept.id != source.session:
                end_session(server, kept.id)


def _build_failure(failure: "McpFailure") -> ToolOutput:
    return ToolOutput.failure(str(failure) if failure.was_refused else f"{failure} {UNKNOWN_EFFECT_NOTE}")


async def _call(
    server: McpServer, kept: "KeptSession", name: str, arguments: dict[str, Any], effect_key: str
) -> "mcp_types.CallToolResult":
    """Call once; once more in a new session if the server no longer knows the kept one, and so has done nothing."""
    from mcp.shared.exceptions import MCPError

    try:
        return await _call_in_session(server, kept, name, arguments, effect_key)
    except (MCPError, BaseExceptionGroup):
        if not kept.is_lost:
            raise
    kept.id, kept.agreement, kept.is_lost = "", None, False
    return await _call_in_session(server, kept, name, arguments, effect_key)


async def _call_in_session(
    server: McpServer, kept: "KeptSession", name: str, arguments: dict[str, Any], effect_key: str
) -> "mcp_types.CallToolResult":
    import mcp_types

    from fermata.mcp_sources.mcp_session import open_mcp_session

    async with open_mcp_session(server, kept, MCP_CALL_SECONDS) as session:
        meta: Any = {EFFECT_KEY_META: effect_key}
        parameters = mcp_types.CallToolRequestParams(name=name, arguments=arguments, _meta=meta)
        # The result is checked by whoever reads it: `call_tool` would list the server's tools again first.
        return await session.send_request(mcp_types.CallToolRequest(params=parameters), mcp_types.CallToolResult)
