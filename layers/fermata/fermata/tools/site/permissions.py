"""Create the tools of the site toolset, and name the permissions they require."""

from fermata.tools.tool_factory import ToolFactory

SITE_TOOL_FACTORY = ToolFactory("site")

CAN_READ_SITE = frozenset({"site.read"})
CAN_EDIT_STRUCTURE = frozenset({"site.structure.edit"})
CAN_EDIT_STYLE = frozenset({"site.style.edit"})
CAN_EDIT_CONTENT = CAN_EDIT_STRUCTURE | {"site.content.edit"}
"""For tools that change words or names only."""
