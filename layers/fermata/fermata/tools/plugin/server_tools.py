"""Define the plugin tools that the server answers from the tenant's content system."""

from fermata.tools.host_timeouts import PLUGIN_BUILD_TIMEOUT_SECONDS
from fermata.tools.input_types import NonEmptyText
from fermata.tools.plugin.permissions import CAN_INSTALL_PLUGINS, CAN_READ_PLUGINS
from fermata.tools.plugin.tool_factory import PLUGIN_TOOL_FACTORY
from fermata.tools.tool import Access, Execution, Risk, Tool, ToolInput
from fermata.tools.tool_factory import SNAPSHOT_EFFECTS, DeferredHandler, SnapshotCheck, never


class PluginInput(ToolInput):
    local_id: NonEmptyText | None = None


PLUGIN_SERVER_TOOLS = (
    PLUGIN_TOOL_FACTORY.host_read(
        name="plugin_list_plugins",
        description="Lists the plugins of this site with their local ids, states, versions and the permissions they "
        "ask for and have.",
        permissions=CAN_READ_PLUGINS,
        handler=DeferredHandler("fermata.tools.plugin.handlers:list_plugins"),
        works_without_host=SnapshotCheck("fermata.tools.plugin.handlers:read_open_plugin"),
    ),
    Tool(
        name="plugin_validate",
        toolset=PLUGIN_TOOL_FACTORY.toolset,
        description="Builds a plugin (the open one, unless `localId` names another) without activating it and returns "
        "what the build complains about.",
        execution=Execution.SERVER,
        access=Access.READ,
        input_model=PluginInput,
        handler=DeferredHandler("fermata.tools.plugin.handlers:validate_plugin"),
        permissions=CAN_READ_PLUGINS,
        scopes=frozenset({PLUGIN_TOOL_FACTORY.toolset}),
        timeout_seconds=PLUGIN_BUILD_TIMEOUT_SECONDS,
        works_without_host=never,
        idempotent=True,
    ),
    Tool(
        name="plugin_activate",
        toolset=PLUGIN_TOOL_FACTORY.toolset,
        description="Builds a plugin and makes it active on the site: the open one, unless `localId` names another. It "
        "must not ask for a permission that it does not have yet. Validate it first.",
        execution=Execution.SERVER,
        access=Access.WRITE,
        input_model=PluginInput,
        handler=DeferredHandler("fermata.tools.plugin.handlers:activate_plugin"),
        permissions=CAN_INSTALL_PLUGINS,
        scopes=frozenset({PLUGIN_TOOL_FACTORY.toolset}),
        risk=Risk.HIGH,
        timeout_seconds=PLUGIN_BUILD_TIMEOUT_SECONDS,
        works_without_host=never,
        affects=SNAPSHOT_EFFECTS,
    ),
)
