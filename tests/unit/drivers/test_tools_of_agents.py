"""Every provider takes the tools of every built-in agent: its strict server refuses schemas as the provider does."""

import pytest

from fermata.agents.registry import get_toolset, list_scopes_with_tools
from fermata.domain.blocks import TextBlock
from fermata.domain.tools import ToolSpec
from fermata.drivers.transport.http_connection import HttpConnection
from fermata.tools.tool_names import ToolNaming, get_wire_name
from tests.unit.drivers.conversation_builders import user_message
from tests.unit.drivers.strict_providers import StartServer, StrictProvider, build_request, get_response
from tests.unit.drivers.test_remember_history_repairs import PROVIDERS

ALTERNATIVES = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "slug": {"type": "string"}},
    "anyOf": [{"required": ["id"]}, {"required": ["slug"]}],
}
each_provider = pytest.mark.parametrize("peer", PROVIDERS, ids=lambda peer: peer.provider)


@each_provider
@pytest.mark.parametrize("scope", list_scopes_with_tools())
def test_a_provider_takes_the_tools_of_an_agent(
    peer: StrictProvider, scope: str, running: StartServer, connection: HttpConnection
) -> None:
    tools = tuple(
        ToolSpec(
            name=get_wire_name(tool, ToolNaming.PREFIXED), description=tool.description, input_schema=tool.input_schema
        )
        for tool in get_toolset(scope).tools
    )
    ask_with_tools(peer, tools, running, connection)


@each_provider
@pytest.mark.parametrize("schema", [{"type": "object"}, ALTERNATIVES], ids=["nothing", "alternatives"])
def test_a_provider_takes_a_tool_that_takes_either_of_two_members_or_nothing(
    peer: StrictProvider, schema: dict[str, object], running: StartServer, connection: HttpConnection
) -> None:
    ask_with_tools(peer, (ToolSpec(name="find_page", description="", input_schema=schema),), running, connection)


def ask_with_tools(
    peer: StrictProvider, tools: tuple[ToolSpec, ...], running: StartServer, connection: HttpConnection
) -> None:
    server = running(peer)
    server.script_chunks(peer.text_response("Fine."))
    response = get_response(peer, build_request(peer, user_message("Hello"), tools=tools), connection, server)
    assert [block.text for block in response.blocks if isinstance(block, TextBlock)] == ["Fine."]
