"""Create the tools of the plugin toolset, and name the permissions they require."""

from fermata.tools.tool_factory import ToolFactory

PLUGIN_TOOL_FACTORY = ToolFactory("plugin")

CAN_READ_PLUGINS = frozenset({"site.read", "plugins.read"})
CAN_EDIT_PLUGINS = frozenset({"plugins.edit"})
CAN_INSTALL_PLUGINS = frozenset({"plugins.install"})
