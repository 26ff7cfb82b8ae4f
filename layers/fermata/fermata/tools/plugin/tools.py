"""The records of the plugin tools: seven are answered by the open editor, three by the site's content system."""

from pkgutil import resolve_name
from typing import Any

from fermata.tools.patience import BUILD_SECONDS
from fermata.tools.plugin import inputs
from fermata.tools.shelf import CHANGES, Shelf
from fermata.tools.tool import Access, Execution, NoInput, Risk, Tool, ToolContext, ToolInput
from fermata.tools.toolset import Toolset

TOOLSET = "plugin"
READ = frozenset({"site.read", "plugins.read"})
EDIT = frozenset({"plugins.edit"})
INSTALL = frozenset({"plugins.install"})
EVERYONE: frozenset[str] = frozenset()

_SHELF = Shelf(TOOLSET)


def _handled(handler: str) -> Any:
    def run(given: ToolInput, context: ToolContext) -> Any:
        return resolve_name(f"fermata.tools.plugin.plugins:{handler}")(given, context)

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


PLUGIN = Toolset(
    TOOLSET,
    (
        _browser(
            "plugin_list_files",
            "Lists the files of the plugin the user has open, with id, path, size and hash, as they are in the editor.",
            NoInput,
            READ,
            Access.READ,
        ),
        _browser(
            "plugin_read_file",
            "Reads a file of the open plugin by `fileId` or `path`, long ones in parts (`part`, `maxChars`), with the "
            "hash of the whole file that a patch has to name.",
            inputs.ReadFile,
            READ,
            Access.READ,
        ),
        _browser(
            "plugin_write_file",
            "Creates a file of the open plugin or replaces all of its content; for a small change to a long file, "
            "patch it instead.",
            inputs.WriteFile,
            EDIT,
            Access.WRITE,
        ),
        _browser(
            "plugin_patch_file",
            "Replaces exact pieces of text in a file of the open plugin, provided that the file still has the hash you "
            "read it with (`expectedHash`); each `oldText` must occur once, or `replaceAll` be true.",
            inputs.PatchFile,
            EDIT,
            Access.WRITE,
        ),
        _browser(
            "plugin_rename_file",
            "Gives a file of the open plugin another path; references to it in other files stay as they are.",
            inputs.RenameFile,
            EDIT,
            Access.WRITE,
        ),
        _browser(
            "plugin_delete_file",
            "Deletes a file of the open plugin, which can never be its plugin.json.",
            inputs.File,
            EDIT,
            Access.WRITE,
            Risk.HIGH,
        ),
        _browser(
            "plugin_open_file",
            "Shows a file of the open plugin in the user's editor without changing it.",
            inputs.File,
            EVERYONE,
            Access.WRITE,
            Risk.SAFE,
        ),
        _SHELF.asked(
            "plugin_list_plugins",
            "Lists the plugins of this site with their local ids, states, versions and the permissions they ask for "
            "and have.",
            NoInput,
            READ,
            _handled("list_plugins"),
        ),
        _SHELF.tool(
            "plugin_validate",
            "Builds a plugin (the open one, unless `localId` names another) without activating it and returns what the "
            "build complains about.",
            inputs.Plugin,
            READ,
            execution=Execution.SERVER,
            capability=Access.READ,
            run=_handled("validate"),
            idempotent=True,
            timeout_seconds=BUILD_SECONDS,
        ),
        _SHELF.tool(
            "plugin_activate",
            "Builds a plugin (the open one, unless `localId` names another) and makes it active on the site, as long "
            "as it asks for no permission it does not have yet; validate it first.",
            inputs.Plugin,
            INSTALL,
            execution=Execution.SERVER,
            capability=Access.WRITE,
            run=_handled("activate"),
            risk=Risk.HIGH,
            affects=CHANGES,
            timeout_seconds=BUILD_SECONDS,
        ),
    ),
)
