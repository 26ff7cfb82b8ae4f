"""List the tools of a scope for an editor: what the model receives, who runs each tool, and the rights it requires."""

from typing import Any

from fermata.agents.registry import get_toolset
from fermata.domain.dialect import OLDEST_GENERATION, EditorGeneration
from fermata.tools.tool import Tool
from fermata.tools.tool_names import ToolNaming, get_wire_name
from fermata.tools.toolset import Toolset


def list_tools(
    scope: str,
    capabilities: frozenset[str],
    naming: ToolNaming,
    tenant: str,
    generation: EditorGeneration = OLDEST_GENERATION,
) -> list[dict[str, Any]]:
    """List the tools that a model is offered on behalf of this caller, in the same order.

    A caller needs one of the `permissions` of a tool.

    Args:
        scope: The scope whose tools are listed.
        capabilities: Those of the caller.
        naming: The variant of the names.
        tenant: The caller's tenant, which may have registered tools of its own.
        generation: The generation of editors whose schemas the tools have.
    """
    return describe_tools(get_toolset(scope, generation), scope, capabilities, naming, tenant)


def describe_tools(
    toolset: Toolset, scope: str, capabilities: frozenset[str], naming: ToolNaming, tenant: str
) -> list[dict[str, Any]]:
    """Describe the tools of a toolset that a caller may use, as `list_tools`."""
    permitted_tools = toolset.list_permitted_tools(capabilities, scope, tenant=tenant)
    return [_describe_tool(tool, naming) for tool in permitted_tools]


def _describe_tool(tool: Tool, naming: ToolNaming) -> dict[str, Any]:
    return {
        "name": get_wire_name(tool, naming),
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "execution": tool.execution.value,
        "capability": tool.access.value,
        "permissions": sorted(tool.permissions),
    }
