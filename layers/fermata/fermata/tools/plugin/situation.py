"""A few lines about the plugin the user has open."""

import json
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from fermata.tools.prompt_text import join_first_items, to_single_line
from fermata.tools.site.snapshot import LenientModel
from fermata.tools.tool_names import ToolNaming

_MAX_FILES, _MAX_PERMISSIONS, _MAX_DIAGNOSTICS_CHARS = 100, 40, 1000


class PluginFile(LenientModel):
    id: str
    path: str = ""


class PluginEditorView(LenientModel):
    """What the plugin editor shows right now."""

    local_id: str = ""
    plugin_id: str = ""
    files: tuple[PluginFile, ...] = ()
    active_file: Any = None
    state: str = ""
    active_version: str | None = None
    declared_permissions: tuple[str, ...] = ()
    granted_permissions: tuple[str, ...] = ()
    latest_diagnostics: Any = None


def situation(snapshot: Any, naming: ToolNaming) -> str:
    """A snapshot that cannot be read is replaced by an empty one; the turn goes on."""
    try:
        bench = PluginEditorView.from_wire(snapshot)
    except ValidationError:
        bench = PluginEditorView()
    return "\n".join(_lines(bench))


def _lines(bench: PluginEditorView) -> Iterable[str]:
    yield f"Plugin: {_plugin(bench)}"
    yield f"Files: [{join_first_items([_file(file) for file in bench.files], _MAX_FILES)}]"
    yield f"Open file: {_open(bench.active_file)}"
    for name, permissions in (("Asks for", bench.declared_permissions), ("May", bench.granted_permissions)):
        yield f"{name}: [{join_first_items([to_single_line(one) for one in permissions], _MAX_PERMISSIONS)}]"
    if bench.latest_diagnostics:
        diagnostics = json.dumps(bench.latest_diagnostics, ensure_ascii=False)
        yield f"Last build: {to_single_line(diagnostics, _MAX_DIAGNOSTICS_CHARS)}"


def _plugin(bench: PluginEditorView) -> str:
    if not (bench.local_id or bench.plugin_id):
        return "none"
    facts = {"id": bench.plugin_id, "state": bench.state, "active version": bench.active_version}
    told = [f"{name} {to_single_line(value)}" for name, value in facts.items() if value]
    return to_single_line(bench.local_id) + (f" ({', '.join(told)})" if told else "")


def _file(file: PluginFile) -> str:
    return f"{to_single_line(file.id)}={to_single_line(file.path)}"


def _open(file: Any) -> str:
    """Editors send the open file as its id, its path or the file itself."""
    if isinstance(file, dict):
        file = file.get("path") or file.get("id")
    return to_single_line(file) if isinstance(file, str) and file.strip() else "none"
