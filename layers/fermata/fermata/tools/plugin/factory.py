"""Create the tools of the plugin toolset, and name the permissions they require."""

from fermata.tools.factories import ToolFactory

PLUGIN_TOOLS = ToolFactory("plugin")

CAN_READ_PLUGINS = frozenset({"site.read", "plugins.read"})
CAN_EDIT_PLUGINS = frozenset({"plugins.edit"})
CAN_INSTALL_PLUGINS = frozenset({"plugins.install"})
