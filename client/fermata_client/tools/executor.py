"""Execute browser tools on an HTML file, as a site's editor does on its page."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from fermata_client.document.disk_writes import FileChangedError
from fermata_client.document.html_document import HtmlDocument
from fermata_client.document.html_file import HtmlFile
from fermata_client.document.site_snapshot import build_site_snapshot
from fermata_client.document.undo_hunk import EditConflictError
from fermata_client.html.edit_error import EditError
from fermata_client.service.json_types import JsonObject
from fermata_client.terminal.diff import unified_diff_lines
from fermata_client.tools.arguments import ToolArguments
from fermata_client.tools.page_html import UNSUPPORTED_TOOLS
from fermata_client.tools.registry import READ_TOOLS, WRITE_TOOLS, unprefixed_tool_name
from fermata_client.tools.restore import RESTORE_TOOL, inverse_calls, patched_files
from fermata_client.tools.tool_function import ToolFunction

MAX_CHANGES_CHARS = 3_500
"""Length of the diff that a conflict shows."""
MAX_CHANGES_LINES_PER_FILE = 200
MAX_RESTORE_ATTEMPTS = 5


class HtmlFileExecutor:
    """Tool executor of one file. The same `effectKey` has one effect, and the same result again."""

    def __init__(self, file: HtmlFile) -> None:
        self.file = file
        self._result_by_effect: dict[str, JsonObject] = {}
        self._latest_changes = ""
        """Diff of the latest changes that others made to the file."""

    def __call__(self, request: JsonObject) -> JsonObject:
        """Execute a `toolRequest` and return its `ToolOutput`."""
        effect_key = str(request.get("effectKey") or request.get("requestId"))
        if effect_key not in self._result_by_effect:
            self._result_by_effect[effect_key] = self._execute_request(request)
        return self._result_by_effect[effect_key]

    def snapshot(self) -> JsonObject:
        return build_site_snapshot(self.file.document)

    def revision(self) -> str:
        return self.file.document.revision

    def _execute_request(self, request: JsonObject) -> JsonObject:
        name = unprefixed_tool_name(str(request.get("toolName")))
        tool_input = request.get("input")
        arguments = _replace_half_characters(tool_input) if isinstance(tool_input, dict) else {}
        try:
            return self._execute_tool(name, arguments, request.get("revision"))
        except FileChangedError as error:
            return self._changed_output(error)
        except EditConflictError as error:
            return self._conflict_output(str(error))
        except EditError as error:
            return self._with_revision({"ok": False, "error": str(error)})
        except OSError as error:
            path = self.file.display_path(str(error.filename))
            return self._with_revision({"ok": False, "error": f"{path}: {error.strerror}. Nothing can be saved there."})

    def _execute_tool(self, name: str, arguments: ToolArguments, planned_on_revision: object) -> JsonObject:
        read_tool, write_tool = READ_TOOLS.get(name), WRITE_TOOLS.get(name)
        if read_tool is None and write_tool is None:
            raise EditError(UNSUPPORTED_TOOLS.get(name, f"Unknown tool: {name}"))
        was_reloaded = self._reload()
        if read_tool is not None:
            _, data = read_tool(self.file.document, arguments)
            return self._with_revision(_success_output(data))
        assert write_tool is not None
        if name == RESTORE_TOOL:
            return self._restore(write_tool, arguments)
        if self._is_outdated(planned_on_revision, was_reloaded=was_reloaded):
            return self._conflict_output(
                "This file was changed by someone else; that change was kept. Read the document again."
            )
        return self._execute_edit(write_tool, arguments, self.file.document)

    def _reload(self) -> bool:
        """Read the file again if others have changed it, and remember their changes. Returns whether it was read."""
        previous = self.file.reload_if_changed()
        if previous is None:
            return False
        self._latest_changes = "\n".join(_iter_changes(previous, self.file.document))
        return True

    def _restore(self, restore_tool: ToolFunction, arguments: ToolArguments) -> JsonObject:
        """Undo an edit. It finds its place in any version of the file, so a change meanwhile makes it begin again."""
        for _ in range(MAX_RESTORE_ATTEMPTS - 1):
            try:
                return self._execute_edit(restore_tool, arguments, self.file.with_files(patched_files(arguments)))
            except FileChangedError:
                self._reload()
        return self._execute_edit(restore_tool, arguments, self.file.with_files(patched_files(arguments)))

    def _changed_output(self, error: FileChangedError) -> JsonObject:
        """Return the result of an edit that found the file changed when it was to be written."""
        try:
            self._reload()
        except EditError as unreadable:
            return self._with_revision({"ok": False, "error": str(unreadable)})
        return self._conflict_output(str(error))

    def _is_outdated(self, planned_on_revision: object, *, was_reloaded: bool) -> bool:
        """Return whether the document changed since the model planned the call (decision 0115)."""
        if isinstance(planned_on_revision, str) and planned_on_revision:
            return planned_on_revision != self.file.document.revision
        return was_reloaded

    def _execute_edit(self, tool: ToolFunction, arguments: ToolArguments, before: HtmlDocument) -> JsonObject:
        after, data = tool(before, arguments)
        inverse = inverse_calls(before, after)
        self.file.save(after, before)
        return self._with_revision(_success_output(data) | ({"inverse": inverse} if inverse else {}))

    def _conflict_output(self, error: str) -> JsonObject:
        changes = {"changes": self._latest_changes} if self._latest_changes else {}
        return self._with_revision({"ok": False, "conflict": True, "error": error, **changes})

    def _with_revision(self, output: JsonObject) -> JsonObject:
        return {**output, "revision": self.file.document.revision}


def _replace_half_characters(value: Any) -> Any:
    """Replace halves of UTF-16 pairs in all texts: JSON can hold them, and no file can."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_replace_half_characters(item) for item in value]
    if isinstance(value, dict):
        return {_replace_half_characters(name): _replace_half_characters(item) for name, item in value.items()}
    return value


def _success_output(data: JsonObject | None) -> JsonObject:
    return {"ok": True} if data is None else {"ok": True, "data": data}


def _iter_changes(before: HtmlDocument, after: HtmlDocument) -> Iterator[str]:
    """Yield the diff of all files up to `MAX_CHANGES_CHARS`."""
    old_files = {before.path: before.source, **before.files}
    new_files = {after.path: after.source, **after.files}
    remaining_chars = MAX_CHANGES_CHARS
    for path in {**old_files, **new_files}:
        old_text, new_text = (files.get(path, b"").decode("utf-8", "replace") for files in (old_files, new_files))
        lines = unified_diff_lines(old_text, new_text, path, 1)
        for line in islice(lines, MAX_CHANGES_LINES_PER_FILE):
            remaining_chars -= len(line) + 1
            if remaining_chars < 0:
                yield "…"
                return
            yield line
