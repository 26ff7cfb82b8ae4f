"""Summarise in a few lines the plugin that the user has open: the part of the prompt that changes."""

import json
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from fermata.agents.shorten_prompt_lines import join_first_items, to_single_line
from fermata.tools.lenient_models import LenientModel
from fermata.tools.tool_names import ToolNaming

_MAX_FILES = 100
_MAX_PERMISSIONS = 40
_MAX_DIAGNOSTICS_CHARS = 1000


class PluginFile(LenientModel):
    """A file of the open plugin."""

    id: str
    path: str = ""


class PluginEditorView(LenientModel):
    """What the plugin editor shows now."""

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
    """Summarise a snapshot. One that cannot be read counts as empty, so that the turn goes on."""
    try:
        view = PluginEditorView.from_wire(snapshot)
    except ValidationError:
        view = PluginEditorView()
    return "\n".join(_list_lines(view))


def _list_lines(view: PluginEditorView) -> Iterable[str]:
    yield f"Plugin: {_format_plugin(view)}"
    yield f"Files: [{join_first_items([_format_file(file) for file in view.files], _MAX_FILES)}]"
    yield f"Open file: {_format_open_file(view.active_file)}"
    for name, permissions in (("Asks for", view.declared_permissions), ("May", view.granted_permissions)):
        lines = [to_single_line(permission) for permission in permissions]
        yield f"{name}: [{join_first_items(lines, _MAX_PERMISSIONS)}]"
    if view.latest_diagnostics:
        diagnostics = json.dumps(view.latest_diagnostics, ensure_ascii=False)
        yield f"Last build: {to_single_line(diagnostics, _MAX_DIAGNOSTICS_CHARS)}"


def _format_plugin(view: PluginEditorView) -> str:
    if not (view.local_id or view.plugin_id):
        return "none"
    facts = {"id": view.plugin_id, "state": view.state, "active version": view.active_version}
    details = [f"{name} {to_single_line(value)}" for name, value in facts.items() if value]
    return to_single_line(view.local_id) + (f" ({', '.join(details)})" if details else "")


def _format_file(file: PluginFile) -> str:
    return f"{to_single_line(file.id)}={to_single_line(file.path)}"


def _format_open_file(file: Any) -> str:
    """Format the open file, which editors post as its id, its path or an object with either."""
    if isinstance(file, dict):
        file = file.get("path") or file.get("id")
    return to_single_line(file) if isinstance(file, str) and file.strip() else "none"
