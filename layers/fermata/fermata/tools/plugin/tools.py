"""The records of the plugin tools: seven are answered by the open editor, three by the site's content system."""

from pkgutil import resolve_name
from typing import Any

from fermata.tools.patience import AGAIN, BUILD_SECONDS, SECONDS
from fermata.tools.plugin import inputs
from fermata.tools.tool import Access, Affects, Execution, NoInput, Risk, Tool, ToolContext, ToolInput
from fermata.tools.toolset import Toolset

TOOLSET = "plugin"
READ = frozenset({"site.read", "plugins.read"})
EDIT = frozenset({"plugins.edit"})
INSTALL = frozenset({"plugins.install"})
EVERYONE: frozenset[str] = frozenset()

_SCOPES = frozenset({TOOLSET})
_CHANGES = Affects(snapshot=True)


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
    reads = capability is Access.READ
    return Tool(
        name=name,
        toolset=TOOLSET,
        description=description,
        execution=Execution.BROWSER,
        capability=capability,
        input=takes,
        permissions=permissions,
        scopes=_SCOPES,
        risk=Risk.SAFE if reads else risk,
        idempotent=reads,
        affects=Affects() if reads else _CHANGES,
    )


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
        Tool(
            name="plugin_list_plugins",
            toolset=TOOLSET,
            description="Lists the plugins of this site with their local ids, states, versions and the permissions "
            "they ask for and have.",
            execution=Execution.SERVER,
            capability=Access.READ,
            permissions=READ,
            scopes=_SCOPES,
            run=_handled("list_plugins"),
            idempotent=True,
            retry=AGAIN,
            timeout_seconds=SECONDS,
        ),
        Tool(
            name="plugin_validate",
            toolset=TOOLSET,
            description="Builds a plugin (the open one, unless `localId` names another) without activating it and "
            "returns what the build complains about.",
            execution=Execution.SERVER,
            capability=Access.READ,
            input=inputs.Plugin,
            permissions=READ,
            scopes=_SCOPES,
            run=_handled("validate"),
            idempotent=True,
            timeout_seconds=BUILD_SECONDS,
        ),
        Tool(
            name="plugin_activate",
            toolset=TOOLSET,
            description="Builds a plugin (the open one, unless `localId` names another) and makes it active on the "
            "site, as long as it asks for no permission it does not have yet; validate it first.",
            execution=Execution.SERVER,
            capability=Access.WRITE,
            input=inputs.Plugin,
            permissions=INSTALL,
            scopes=_SCOPES,
            run=_handled("activate"),
            risk=Risk.HIGH,
            affects=_CHANGES,
            timeout_seconds=BUILD_SECONDS,
        ),
    ),
)
