"""The records of the plugin tools: seven are answered by the open editor, three by the site's content system."""

from pkgutil import resolve_name
from typing import Any

from fermata.tools.factories import SNAPSHOT_EFFECTS, ToolFactory
from fermata.tools.host_timeouts import PLUGIN_BUILD_TIMEOUT_SECONDS
from fermata.tools.plugin import inputs
from fermata.tools.tool import Access, Execution, NoInput, Risk, Tool, ToolContext, ToolInput
from fermata.tools.toolset import Toolset

TOOLSET_NAME = "plugin"
CAN_READ_PLUGINS = frozenset({"site.read", "plugins.read"})
CAN_EDIT_PLUGINS = frozenset({"plugins.edit"})
CAN_INSTALL_PLUGINS = frozenset({"plugins.install"})
_EVERYONE: frozenset[str] = frozenset()

_SHELF = ToolFactory(TOOLSET_NAME)


def _handled(handler: str) -> Any:
    def run(given: ToolInput, context: ToolContext) -> Any:
        return resolve_name(f"fermata.tools.plugin.handlers:{handler}")(given, context)

    return run


def _browser(
    name: str,
    description: str,
    takes: type[ToolInput],
    permissions: frozenset[str],
    capability: Access,
    risk: Risk = Risk.MODERATE,
) -> Tool:
    if capability is Access.READ:
        return _SHELF.browser_read(name, description, takes, permissions)
    return _SHELF.browser_write(name, description, takes, permissions, risk=risk)


PLUGIN_TOOLSET = Toolset(
    TOOLSET_NAME,
    (
        _browser(
            "plugin_list_files",
            "Lists the files of the plugin the user has open, with id, path, size and hash, as they are in the editor.",
            NoInput,
            CAN_READ_PLUGINS,
            Access.READ,
        ),
        _browser(
            "plugin_read_file",
            "Reads a file of the open plugin by `fileId` or `path`, long ones in parts (`part`, `maxChars`), with the "
            "hash of the whole file that a patch has to name.",
            inputs.ReadFileInput,
            CAN_READ_PLUGINS,
            Access.READ,
        ),
        _browser(
            "plugin_write_file",
            "Creates a file of the open plugin or replaces all of its content; for a small change to a long file, "
            "patch it instead.",
            inputs.WriteFileInput,
            CAN_EDIT_PLUGINS,
            Access.WRITE,
        ),
        _browser(
            "plugin_patch_file",
            "Replaces exact pieces of text in a file of the open plugin, provided that the file still has the hash you "
            "read it with (`expectedHash`); each `oldText` must occur once, or `replaceAll` be true.",
            inputs.PatchFileInput,
            CAN_EDIT_PLUGINS,
            Access.WRITE,
        ),
        _browser(
            "plugin_rename_file",
            "Gives a file of the open plugin another path; references to it in other files stay as they are.",
            inputs.RenameFileInput,
            CAN_EDIT_PLUGINS,
            Access.WRITE,
        ),
        _browser(
            "plugin_delete_file",
            "Deletes a file of the open plugin, which can never be its plugin.json.",
            inputs.FileInput,
            CAN_EDIT_PLUGINS,
            Access.WRITE,
            Risk.HIGH,
        ),
        _browser(
            "plugin_open_file",
            "Shows a file of the open plugin in the user's editor without changing it.",
            inputs.FileInput,
            _EVERYONE,
            Access.WRITE,
            Risk.SAFE,
        ),
        _SHELF.host_read(
            "plugin_list_plugins",
            "Lists the plugins of this site with their local ids, states, versions and the permissions they ask for "
            "and have.",
            NoInput,
            CAN_READ_PLUGINS,
            _handled("list_plugins"),
        ),
        _SHELF.tool(
            "plugin_validate",
            "Builds a plugin (the open one, unless `localId` names another) without activating it and returns what the "
            "build complains about.",
            inputs.PluginInput,
            CAN_READ_PLUGINS,
            execution=Execution.SERVER,
            capability=Access.READ,
            run=_handled("validate_plugin"),
            idempotent=True,
            timeout_seconds=PLUGIN_BUILD_TIMEOUT_SECONDS,
        ),
        _SHELF.tool(
            "plugin_activate",
            "Builds a plugin (the open one, unless `localId` names another) and makes it active on the site, as long "
            "as it asks for no permission it does not have yet; validate it first.",
            inputs.PluginInput,
            CAN_INSTALL_PLUGINS,
            execution=Execution.SERVER,
            capability=Access.WRITE,
            run=_handled("activate_plugin"),
            risk=Risk.HIGH,
            affects=SNAPSHOT_EFFECTS,
            timeout_seconds=PLUGIN_BUILD_TIMEOUT_SECONDS,
        ),
    ),
)
