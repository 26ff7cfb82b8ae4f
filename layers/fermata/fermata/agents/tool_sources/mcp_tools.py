"""Offer the tools of MCP servers, as a turn has pinned them at its start (decision 0375).

What a server says of its tools is content from outside: it is framed, shortened and escaped before a model reads it.
"""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from fermata.domain.base import DomainModel
from fermata.domain.json_shortening import shorten_text
from fermata.domain.tools import ToolOutput
from fermata.domain.untrusted_text import escape_frames_in_text, frame_text
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.tool import Access, Approval, Execution, JsonInput, Risk, Tool, ToolContext

MCP_TOOLSET = "mcp"
MCP_PREFIX = "mcp:"
"""With which the name begins under which a tool of an MCP server is called: `mcp:<source>:<name>`."""
MCP_CALL_SECONDS = 60.0
MAX_TOOL_DESCRIPTION_CHARS = 2000
MAX_SCHEMA_TEXT_CHARS = 500


class PinnedMcpTool(DomainModel):
    """A tool as its server has listed it.

    Attributes:
        name: The server's own name.
        alias: The name that the model knows.
        is_read_only: Whether the server says that it changes nothing.
        is_idempotent: Whether the server says that a repetition changes nothing.
    """

    name: str
    alias: str
    description: str = ""
    input_schema: dict[str, Any] = Field(default_factory=dict)
    is_read_only: bool = False
    is_idempotent: bool = False


class McpAgreement(DomainModel):
    """What a client and a server have agreed on: the result of `initialize` or of `server/discover`."""

    kind: Literal["initialize", "discover"]
    result: dict[str, Any]


class PinnedMcpSource(DomainModel):
    """An MCP source of a turn.

    Attributes:
        index: Its place in the agent's definition.
        label: What people and models call it.
        session: The id of the session that the turn keeps; empty if it keeps none.
        agreement: What later requests of the turn rely on; None for servers that are asked anew each time.
    """

    index: int
    label: str
    session: str = ""
    agreement: McpAgreement | None = None
    tools: tuple[PinnedMcpTool, ...] = ()


class McpPin(DomainModel):
    """The tools of all MCP sources of a turn."""

    sources: tuple[PinnedMcpSource, ...] = ()


@value_dataclass(frozen=True)
class McpToolHandler:
    """Calls a tool of an MCP server through the turn that runs it."""

    source: int
    tool_name: str

    def __call__(self, tool_input: JsonInput, context: ToolContext, /) -> ToolOutput:
        called = f"{MCP_PREFIX}{self.source}:{self.tool_name}"
        return context.call_remote_tool(called, tool_input.arguments, context.effect_key)


def list_mcp_tools(pin: McpPin, confirmed: Sequence[bool], tenant: str) -> tuple[Tool, ...]:
    """Return the tools of a turn's MCP servers, in the order of its agent's definition.

    Args:
        pin: As the turn has pinned them.
        confirmed: For each source of the definition, whether a person decides about each of its calls.
        tenant: Whose tools they are.
    """
    return tuple(
        _build_mcp_tool(source, tool, is_confirmed=confirmed[source.index], tenant=tenant)
        for source in pin.sources
        for tool in source.tools
    )


def _build_mcp_tool(source: PinnedMcpSource, tool: PinnedMcpTool, *, is_confirmed: bool, tenant: str) -> Tool:
    """Return the record. A tool of which its server does not say that it only reads counts as a write."""
    return Tool(
        name=tool.alias,
        toolset=MCP_TOOLSET,
        description=describe_mcp_tool(source.label, tool.description),
        execution=Execution.MCP,
        access=Access.READ if tool.is_read_only else Access.WRITE,
        input_model=JsonInput,
        declared_schema={"type": "object", "properties": {}} | tool.input_schema,
        handler=McpToolHandler(source.index, tool.name),
        tenant=tenant,
        risk=Risk.SAFE if tool.is_read_only else Risk.HIGH,
        approval=Approval.ALWAYS if is_confirmed else Approval.NEVER,
        timeout_seconds=MCP_CALL_SECONDS,
        idempotent=tool.is_read_only or tool.is_idempotent,
        reads_outside_content=True,
    )


def describe_mcp_tool(label: str, description: str) -> str:
    """Return what a model reads of a tool: whose it is, and the server's own words as data."""
    lead = f"A tool of the MCP server {label}."
    words = escape_frames_in_text(shorten_text(description.strip(), MAX_TOOL_DESCRIPTION_CHARS))
    return f"{lead} Its server describes it so:\n{frame_text('context', words)}" if words else lead


def clean_tool_schema(schema: Any) -> Any:
    """Return a schema whose texts are short and cannot close a frame. Names and values stay as they are."""
    if isinstance(schema, list):
        return [clean_tool_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: escape_frames_in_text(shorten_text(member, MAX_SCHEMA_TEXT_CHARS))
        if name in ("description", "title", "$comment") and isinstance(member, str)
        else clean_tool_schema(member)
        for name, member in schema.items()
    }
