"""The tools of a scope as an editor reads them: what the model is told, and who carries them out with which rights."""

from typing import Any

from fermata.tools.catalogue import toolset_for
from fermata.tools.names import Names, wire_name
from fermata.tools.tool import Tool


def list_tools(scope: str, capabilities: frozenset[str], names: Names, tenant: str) -> list[dict[str, Any]]:
    """What this caller's model would be offered, in the same order. `permissions`: one of them is enough."""
    offered = toolset_for(scope).open_to(capabilities, scope, tenant=tenant)
    return [_listed(tool, names) for tool in offered]


def _listed(tool: Tool, names: Names) -> dict[str, Any]:
    return {
        "name": wire_name(tool, names),
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "execution": tool.execution.value,
        "capability": tool.capability.value,
        "permissions": sorted(tool.permissions),
    }
