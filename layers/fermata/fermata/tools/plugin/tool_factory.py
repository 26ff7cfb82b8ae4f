"""Create the tools of the plugin toolset."""

from fermata.tools.tool_factory import ToolFactory

PLUGIN_TOOL_FACTORY = ToolFactory("plugin")
