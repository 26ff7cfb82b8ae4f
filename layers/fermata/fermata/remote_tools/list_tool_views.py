"""List all remote tools of a tenant for its administrators: its own, and those of the deployment."""

from typing import Any

from fermata.aws.resources import Resources
from fermata.remote_tools.deployment_tools import get_deployment_tools, list_deployment_lines
from fermata.remote_tools.tool_definition import to_tool_view
from fermata.remote_tools.tool_manifest import normalize_tool_name
from fermata.remote_tools.tool_registry import list_registered_tools


def list_tool_views(resources: Resources, tenant: str) -> list[dict[str, Any]]:
    """Return the views of all tools, by name. A tool of the tenant hides one of the deployment with its name.

    Args:
        resources: The settings table and the deployment's file.
        tenant: The tenant's name.
    """
    own = {normalize_tool_name(view["manifest"]["name"]): view for view in list_registered_tools(resources, tenant)}
    deployed = get_deployment_tools(resources)
    others = {
        name: to_tool_view(line, deployed[line.definition].definition, "deployment")
        for name, line in list_deployment_lines(resources).items()
    }
    return [view for _, view in sorted((others | own).items())]
