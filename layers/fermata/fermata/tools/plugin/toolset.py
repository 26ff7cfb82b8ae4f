"""Assemble the toolset of the plugin editor, in the order in which it lists the tools."""

from fermata.tools.plugin.browser_tools import PLUGIN_BROWSER_TOOLS
from fermata.tools.plugin.server_tools import PLUGIN_SERVER_TOOLS
from fermata.tools.toolset import Toolset

PLUGIN_TOOLSET = Toolset("plugin", (*PLUGIN_BROWSER_TOOLS, *PLUGIN_SERVER_TOOLS))
