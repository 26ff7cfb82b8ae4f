"""Plugins as the content system knows them: which there are, whether one would build, and making one active."""

from typing import Any

from pydantic import ValidationError

from fermata.domain.tools import ToolOutput
from fermata.tools.host_queries import HostItemNotFound, missing_host_failure, query_host
from fermata.tools.plugin import inputs
from fermata.tools.site.snapshot import LenientModel
from fermata.tools.tool import NoInput, ToolContext, ToolFailure

ONLY_OPEN_PLUGIN_NOTE = "Only the plugin that is open is known here: no content system is set up for this site."


class SitePlugin(LenientModel):
    local_id: str
    plugin_id: str = ""
    name: str = ""
    state: str = ""
    version: str | None = None
    active_version: str | None = None
    declared_permissions: tuple[str, ...] = ()
    granted_permissions: tuple[str, ...] = ()


class SitePluginList(LenientModel):
    plugins: tuple[SitePlugin, ...]


class PluginValidation(LenientModel):
    ok: bool
    diagnostics: tuple[Any, ...] = ()


class PluginActivation(LenientModel):
    activated: bool
    skipped: bool = False
    plugin_id: str
    version: str | None = None
    upgrade: Any = None
    warning: str | None = None


def list_plugins(given: NoInput, context: ToolContext) -> dict[str, Any]:
    if context.host() is None:
        seen = read_open_plugin(context.snapshot)
        if seen is None:
            raise missing_host_failure(context, "The plugins of this site")
        return {"sitePlugins": [seen.model_dump(by_alias=True)], "note": ONLY_OPEN_PLUGIN_NOTE}
    found = query_host(context, "The plugins of this site", lambda host: host.list_plugins(), SitePluginList)
    return {"sitePlugins": [plugin.model_dump(by_alias=True) for plugin in found.plugins]}


def validate_plugin(given: inputs.PluginInput, context: ToolContext) -> ToolOutput:
    """A plugin that would not build is no failure of the tool: the diagnostics are what was asked for."""
    plugin = _meant(given, context)
    try:
        found = query_host(
            context, "Whether a plugin builds", lambda host: host.validate_plugin(plugin), PluginValidation
        )
    except HostItemNotFound:
        raise _not_found(plugin) from None
    return ToolOutput.success(found.model_dump(by_alias=True))


def activate_plugin(given: inputs.PluginInput, context: ToolContext) -> dict[str, Any]:
    plugin, key = _meant(given, context), context.effect_key
    try:
        done = query_host(
            context, "A plugin", lambda host: host.activate_plugin(plugin, effect_key=key), PluginActivation
        )
    except HostItemNotFound:
        raise _not_found(plugin) from None
    told = done.model_dump(by_alias=True)
    return {name: value for name, value in told.items() if value is not None or name == "version"}


def read_open_plugin(snapshot: Any) -> SitePlugin | None:
    try:
        return SitePlugin.from_wire(snapshot)
    except ValidationError:
        return None


def _meant(given: inputs.PluginInput, context: ToolContext) -> str:
    seen = read_open_plugin(context.snapshot)
    if given.local_id is None and seen is None:
        raise ToolFailure("No plugin is open. Say which one is meant with `localId`; the list of plugins has them.")
    return given.local_id or (seen.local_id if seen else "")


def _not_found(plugin: str) -> ToolFailure:
    return ToolFailure(f"Plugin {plugin} not found.")
