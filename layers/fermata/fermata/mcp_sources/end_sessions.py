"""End the sessions that a turn has kept with MCP servers. What fails here, the server ends by itself later."""

from fermata.agents.definitions.agent_definition import AgentDefinition
from fermata.agents.tool_sources.mcp_tools import McpPin
from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.domain.errors import ApiError, ProviderError
from fermata.mcp_sources.mcp_server import McpServer, open_mcp_server
from fermata.signed_requests.signed_post import open_guarded_connection

END_SECONDS = 3.0


def end_sessions(resources: Resources, tenant: str, definition: AgentDefinition, pin: McpPin) -> None:
    """End the sessions of a turn. Safe to repeat.

    Args:
        resources: The secrets of the tenant.
        tenant: Whose turn it is.
        definition: The agent of the turn.
        pin: What the turn has pinned.
    """
    kept = [source for source in pin.sources if source.session]

    def end_one(index: int) -> None:
        source = kept[index]
        try:
            server = open_mcp_server(resources, tenant, definition.mcp[source.index])
        except ApiError as refusal:
            observability.log_warning("mcp.session_left", source=source.label, reason=refusal.message)
            return
        end_session(server, source.session)

    if kept:
        resources.clock.map_in_threads(end_one, range(len(kept)), len(kept))


def end_session(server: McpServer, session: str) -> None:
    """End one session by the request that the protocol has for it.

    Args:
        server: The server.
        session: The id that it has given.
    """
    headers = {**server.headers, "mcp-session-id": session, "accept": "application/json"}
    try:
        with (
            open_guarded_connection(loopback=server.is_local, seconds=END_SECONDS) as connection,
            connection.request(server.label, "DELETE", server.url, headers) as response,
        ):
            connection.drain_response(response)
    except ProviderError as error:
        observability.log_warning("mcp.session_left", source=server.label, reason=error.code)
