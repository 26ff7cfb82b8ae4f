"""A few lines about the plugin the user has open."""

import json
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from fermata.tools.lines import few, one_line
from fermata.tools.names import Names
from fermata.tools.site.snapshot import Lenient

MOST_FILES, MOST_PERMISSIONS, LONGEST_DIAGNOSTICS = 100, 40, 1000


class File(Lenient):
    id: str
    path: str = ""


class Workbench(Lenient):
    """What the plugin editor shows right now."""

    local_id: str = ""
    plugin_id: str = ""
    files: tuple[File, ...] = ()
    active_file: Any = None
    state: str = ""
    active_version: str | None = None
    declared_permissions: tuple[str, ...] = ()
    granted_permissions: tuple[str, ...] = ()
    latest_diagnostics: Any = None


def situation(snapshot: Any, names: Names) -> str:
    """A snapshot that cannot be read is replaced by an empty one; the turn goes on."""
    try:
        bench = Workbench.read(snapshot)
    except ValidationError:
        bench = Workbench()
    return "\n".join(_lines(bench))


def _lines(bench: Workbench) -> Iterable[str]:
    yield f"Plugin: {_plugin(bench)}"
    yield f"Files: [{few([_file(file) for file in bench.files], MOST_FILES)}]"
    yield f"Open file: {_open(bench.active_file)}"
    for name, permissions in (("Asks for", bench.declared_permissions), ("May", bench.granted_permissions)):
        yield f"{name}: [{few([one_line(one) for one in permissions], MOST_PERMISSIONS)}]"
    if bench.latest_diagnostics:
        yield f"Last build: {one_line(json.dumps(bench.latest_diagnostics, ensure_ascii=False), LONGEST_DIAGNOSTICS)}"


def _plugin(bench: Workbench) -> str:
    if not (bench.local_id or bench.plugin_id):
        return "none"
    facts = {"id": bench.plugin_id, "state": bench.state, "active version": bench.active_version}
    told = [f"{name} {one_line(value)}" for name, value in facts.items() if value]
    return one_line(bench.local_id) + (f" ({', '.join(told)})" if told else "")


def _file(file: File) -> str:
    return f"{one_line(file.id)}={one_line(file.path)}"


def _open(file: Any) -> str:
    """Editors send the open file as its id, its path or the file itself."""
    if isinstance(file, dict):
        file = file.get("path") or file.get("id")
    return one_line(file) if isinstance(file, str) and file.strip() else "none"
