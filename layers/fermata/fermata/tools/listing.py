"""The tools of a scope as an editor reads them: what the model is told, and who carries them out with which rights."""

from typing import Any

from fermata.tools.registry import get_toolset
from fermata.tools.tool import Tool
from fermata.tools.tool_names import ToolNaming, get_wire_name


def list_tools(scope: str, capabilities: frozenset[str], naming: ToolNaming, tenant: str) -> list[dict[str, Any]]:
    """What this caller's model would be offered, in the same order. `permissions`: one of them is enough."""
    offered = get_toolset(scope).list_permitted_tools(capabilities, scope, tenant=tenant)
    return [_listed(tool, naming) for tool in offered]


def _listed(tool: Tool, names: ToolNaming) -> dict[str, Any]:
    return {
        "name": get_wire_name(tool, names),
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "execution": tool.execution.value,
        "capability": tool.capability.value,
        "permissions": sorted(tool.permissions),
    }
