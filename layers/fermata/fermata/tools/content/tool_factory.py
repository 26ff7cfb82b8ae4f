"""Create the tools of the content toolset."""

from fermata.tools.tool_factory import ToolFactory

CONTENT_TOOL_FACTORY = ToolFactory("content")
