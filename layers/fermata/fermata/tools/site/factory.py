"""Create the tools of the site toolset, and name the permissions they require."""

from fermata.tools.factories import ToolFactory

SITE_TOOLS = ToolFactory("site")

CAN_READ_SITE = frozenset({"site.read"})
CAN_EDIT_STRUCTURE = frozenset({"site.structure.edit"})
CAN_EDIT_STYLE = frozenset({"site.style.edit"})
CAN_EDIT_CONTENT = CAN_EDIT_STRUCTURE | {"site.content.edit"}
"""For tools that change words or names only."""
