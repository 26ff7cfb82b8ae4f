"""Create the tools of the site toolset."""

from fermata.tools.tool_factory import ToolFactory

SITE_TOOL_FACTORY = ToolFactory("site")
