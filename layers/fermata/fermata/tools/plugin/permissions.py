"""Name the permissions that the tools of the plugin toolset require."""

CAN_READ_PLUGINS = frozenset({"site.read", "plugins.read"})
CAN_EDIT_PLUGINS = frozenset({"plugins.edit"})
CAN_INSTALL_PLUGINS = frozenset({"plugins.install"})
