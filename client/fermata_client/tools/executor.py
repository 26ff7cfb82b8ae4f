"""The browser tools on an HTML file: what an editor does for its page, done for a file on disk."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from fermata_client.document.html_document import HtmlDocument
from fermata_client.document.html_file import HtmlFile
from fermata_client.document.reversals import EditConflictError
from fermata_client.document.site_snapshot import build_site_snapshot
from fermata_client.html.errors import EditError
from fermata_client.terminal.diff import unified_diff_lines
from fermata_client.tools.registry import READ_TOOLS, REFUSED_TOOLS, WRITE_TOOLS, unprefixed_tool_name
from fermata_client.tools.restore import RESTORE_TOOL, inverse_calls, patched_files

MAX_CHANGES_CHARS = 3_500
"""How much of somebody else's edit is told."""


class HtmlFileExecutor:
    """Carries out tool requests on one file. The same `effectKey` acts once and gets the same result again."""

    def __init__(self, file: HtmlFile) -> None:
        self.file = file
        self._results: dict[str, dict[str, Any]] = {}
        self._changes = ""
        """What somebody else did last."""

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        key = str(request.get("effectKey") or request.get("requestId"))
        if key not in self._results:
            self._results[key] = self._answer(request)
        return self._results[key]

    def snapshot(self) -> dict[str, Any]:
        return build_site_snapshot(self.file.document)

    def revision(self) -> str:
        return self.file.document.revision

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        given = request.get("input")
        try:
            return self._run(
                unprefixed_tool_name(str(request.get("toolName"))), given if isinstance(given, dict) else {}, request
            )
        except EditConflictError as error:
            return self._conflict(str(error))
        except EditError as error:
            return self._told({"ok": False, "error": str(error)})
        except OSError as error:
            name = self.file.display_path(str(error.filename))
            return self._told({"ok": False, "error": f"{name}: {error.strerror}. Nothing can be saved there."})

    def _run(self, name: str, given: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
        first = unprefixed_tool_name(name)
        reading, writing = READ_TOOLS.get(first), WRITE_TOOLS.get(first)
        if reading is None and writing is None:
            raise EditError(REFUSED_TOOLS.get(first, f"Unknown tool: {name}"))
        old = self.file.reload_if_changed()
        if old is not None:
            self._changes = "\n".join(_changes(old, self.file.document))
        if reading is not None:
            return self._told(_output(reading(self.file.document, given)[1]))
        planned = request.get("revision")
        is_late = planned != self.file.document.revision if isinstance(planned, str) and planned else old is not None
        if is_late and first != RESTORE_TOOL:
            return self._conflict(
                "Somebody else changed this file; that edit was kept. Please read the document again."
            )
        assert writing is not None
        before = self.file.with_files(patched_files(given)) if first == RESTORE_TOOL else self.file.document
        document, data = writing(before, given)
        inverse = inverse_calls(before, document)
        self.file.save(document, before)
        return self._told(_output(data) | ({"inverse": inverse} if inverse else {}))

    def _conflict(self, error: str) -> dict[str, Any]:
        changes = {"changes": self._changes} if self._changes else {}
        return self._told({"ok": False, "conflict": True, "error": error, **changes})

    def _told(self, output: dict[str, Any]) -> dict[str, Any]:
        return {**output, "revision": self.file.document.revision}


def _output(data: Any) -> dict[str, Any]:
    return {"ok": True} if data is None else {"ok": True, "data": data}


def _changes(old: HtmlDocument, new: HtmlDocument) -> Iterator[str]:
    """The beginning of the difference, file by file."""
    before, after = {old.path: old.source, **old.files}, {new.path: new.source, **new.files}
    left = MAX_CHANGES_CHARS
    for path in {**before, **after}:
        was, now = (files.get(path, b"").decode("utf-8", "replace") for files in (before, after))
        for line in islice(unified_diff_lines(was, now, path, 1), 200):
            left -= len(line) + 1
            if left < 0:
                yield "…"
                return
            yield line
