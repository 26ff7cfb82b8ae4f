"""Handle the tools that list, validate and activate plugins in the content system."""

from typing import Any

from pydantic import ValidationError

from fermata.domain.tools import ToolOutput
from fermata.tools.host_queries import HostItemNotFound, missing_host_failure, query_host
from fermata.tools.lenient_models import LenientModel
from fermata.tools.plugin.server_tools import PluginInput
from fermata.tools.tool import NoInput, ToolContext, ToolFailure

ONLY_OPEN_PLUGIN_NOTE = "Only the plugin that is open is known here: no content system is set up for this site."


class SitePlugin(LenientModel):
    """A plugin of the site."""

    local_id: str
    plugin_id: str = ""
    name: str = ""
    state: str = ""
    version: str | None = None
    active_version: str | None = None
    declared_permissions: tuple[str, ...] = ()
    granted_permissions: tuple[str, ...] = ()


class SitePluginList(LenientModel):
    """The content system's answer to a request for its plugins."""

    plugins: tuple[SitePlugin, ...]


class PluginValidation(LenientModel):
    """The outcome of building a plugin."""

    ok: bool
    diagnostics: tuple[Any, ...] = ()


class PluginActivation(LenientModel):
    """The outcome of building and activating a plugin."""

    activated: bool
    skipped: bool = False
    plugin_id: str
    version: str | None = None
    upgrade: Any = None
    warning: str | None = None


def list_plugins(_tool_input: NoInput, context: ToolContext) -> dict[str, Any]:
    """List the plugins of the site; without a content system, only the one that is open.

    Raises:
        ToolFailure: There is neither a content system nor an open plugin, or the content system refused the query.
    """
    if context.open_host() is None:
        open_plugin = read_open_plugin(context.snapshot)
        if open_plugin is None:
            raise missing_host_failure(context, "The plugins of this site")
        return {"sitePlugins": [open_plugin.model_dump(by_alias=True)], "note": ONLY_OPEN_PLUGIN_NOTE}
    answer = query_host(context, "The plugins of this site", lambda host: host.list_plugins(), SitePluginList)
    return {"sitePlugins": [plugin.model_dump(by_alias=True) for plugin in answer.plugins]}


def validate_plugin(tool_input: PluginInput, context: ToolContext) -> ToolOutput:
    """Build a plugin. A failed build is a success of the tool, whose data are the diagnostics.

    Raises:
        ToolFailure: No plugin is named or open, it does not exist, or the content system refused the query.
    """
    plugin_id = _resolve_plugin_id(tool_input, context)
    try:
        validation = query_host(
            context, "Whether a plugin builds", lambda host: host.validate_plugin(plugin_id), PluginValidation
        )
    except HostItemNotFound:
        raise _plugin_not_found(plugin_id) from None
    return ToolOutput.success(validation.model_dump(by_alias=True))


def activate_plugin(tool_input: PluginInput, context: ToolContext) -> dict[str, Any]:
    """Build a plugin and make it active. The content system acts once per effect key.

    Raises:
        ToolFailure: No plugin is named or open, it does not exist, or the content system refused the query.
    """
    plugin_id = _resolve_plugin_id(tool_input, context)
    try:
        activation = query_host(
            context,
            "A plugin",
            lambda host: host.activate_plugin(plugin_id, effect_key=context.effect_key),
            PluginActivation,
        )
    except HostItemNotFound:
        raise _plugin_not_found(plugin_id) from None
    members = activation.model_dump(by_alias=True)
    return {name: value for name, value in members.items() if value is not None or name == "version"}


def read_open_plugin(snapshot: Any) -> SitePlugin | None:
    """Read the plugin that the user has open; None if the snapshot has none."""
    try:
        return SitePlugin.from_wire(snapshot)
    except ValidationError:
        return None


def _resolve_plugin_id(tool_input: PluginInput, context: ToolContext) -> str:
    """Return the local id of the named plugin or, without a name, of the open one."""
    open_plugin = read_open_plugin(context.snapshot)
    if tool_input.local_id is None and open_plugin is None:
        raise ToolFailure("No plugin is open. Say which one is meant with `localId`; the list of plugins has them.")
    return tool_input.local_id or (open_plugin.local_id if open_plugin else "")


def _plugin_not_found(plugin_id: str) -> ToolFailure:
    return ToolFailure(f"Plugin {plugin_id} not found.")
