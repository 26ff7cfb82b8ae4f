"""Answer the four tools that read an agent's files: their names, limits and outputs (decision 0369)."""

import posixpath
from collections.abc import Callable, Iterator
from typing import Annotated, Any

from pydantic import Field

from fermata.agents.files.file_bundle import BundleEntry, BundleFile, BundleReader, FileBundle
from fermata.agents.files.file_text import decode_text
from fermata.agents.files.glob_pattern import GlobPattern, InvalidGlob
from fermata.agents.files.resolve_path import PathOutsideBase, resolve_bundle_path
from fermata.aws.clock import iso_from_epoch
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.tool import ToolFailure, ToolInput

MAX_READ_BYTES = 524_288
MAX_SEARCHED_BYTES = 1_048_576
MAX_MATCHES = 200
MAX_MATCHED_LINE_CHARS = 2_000
"""Characters of a line that a match shows, because a minified file is one line."""
_PATH = Field(description="Path relative to the base directory.")
_GLOB = Field(description="Glob pattern such as **/*.md, relative to the listed directory.")


class ReadAgentFileInput(ToolInput):
    path: Annotated[str, _PATH]


class ListAgentFilesInput(ToolInput):
    path: Annotated[str | None, Field(description="Directory to list; the base directory if it is left out.")] = None
    glob: Annotated[str | None, _GLOB] = None


class SearchAgentFilesInput(ToolInput):
    query: Annotated[str, Field(min_length=1, description="Text to find. Case does not matter.")]
    glob: Annotated[str | None, Field(description="Glob pattern of the files to search, such as **/*.md.")] = None


class StatAgentFileInput(ToolInput):
    path: Annotated[str, _PATH]


@value_dataclass(frozen=True)
class OpenedBundle:
    """A bundle with what reads its files. Each method answers one tool, or raises `ToolFailure`."""

    bundle: FileBundle
    reader: BundleReader

    def read_file(self, path: str) -> str:
        """Return the text of a file; of a large one its beginning, with a note that says so."""
        file = self._find_file(path)
        content = self.reader.read_file(file)
        text = decode_text(content[:MAX_READ_BYTES])
        if text is None:
            raise ToolFailure(f"{path} is a binary file of {file.size} bytes, which cannot be read as text.")
        if file.size <= MAX_READ_BYTES:
            return text
        kilobytes = round(file.size / 1024)
        return f"{text}\n\n[This is the first 512KB of {kilobytes} KB, use search-files to find what follows.]"

    def list_files(self, path: str | None, glob: str | None) -> list[dict[str, Any]]:
        """Return what a folder holds, or what of all that is below it matches a glob, in the order of the paths."""
        folder = self._find_entry(path)
        if folder.type != "directory":
            raise ToolFailure(f"{path} is a file, not a directory.")
        found = self.bundle.children_by_folder.get(folder.path, []) if not glob else self._match(folder.path, glob)
        return [
            {"name": entry.name, "path": entry.path, "type": entry.type, "size": entry.size}
            for entry in sorted(found, key=lambda entry: entry.path)
        ]

    def search_files(self, query: str, glob: str | None) -> list[dict[str, Any]]:
        """Return the lines that contain a text, by file, at most `MAX_MATCHES` in all."""
        wanted = {entry.path for entry in self._match("", glob)} if glob else None
        files = [
            file
            for file in self.bundle.files
            if file.size <= MAX_SEARCHED_BYTES and (wanted is None or file.path in wanted)
        ]
        results: list[dict[str, Any]] = []
        room = MAX_MATCHES
        for file, content in self.reader.read_files(files):
            matches = _find_lines(decode_text(content) or "", query, room)
            if matches:
                results.append({"path": file.path, "matches": matches})
            room -= len(matches)
            if not room:
                break
        return results

    def stat_file(self, path: str) -> dict[str, Any]:
        """Return what is known of a file or folder."""
        entry = self._find_entry(path)
        return {
            "name": entry.name,
            "path": path,
            "size": entry.size,
            "type": entry.type,
            "modified": iso_from_epoch(entry.modified_ms / 1000),
            "created": iso_from_epoch(entry.created_ms / 1000),
        }

    def _find_entry(self, path: str | None) -> BundleEntry:
        entry = self.bundle.entries.get(_resolve(path))
        if entry is None:
            raise ToolFailure(f"There is no file or directory {path!r}.")
        return entry

    def _find_file(self, path: str) -> BundleFile:
        entry = self._find_entry(path)
        if entry.type != "file":
            raise ToolFailure(f"{path or '/'} is a directory. Use list-files to see what it holds.")
        return self.bundle.files_by_path[entry.path]

    def _match(self, folder: str, glob: str) -> Iterator[BundleEntry]:
        """Yield what is below a folder and matches. A glob that leads out of the bundle finds nothing there."""
        matches = _make_matcher(posixpath.normpath(posixpath.join(folder, glob.lstrip("/"))))
        return (entry for path, entry in self.bundle.entries.items() if path not in ("", folder) and matches(path))


def _resolve(path: str | None) -> str:
    try:
        return resolve_bundle_path(path)
    except PathOutsideBase as error:
        raise ToolFailure(str(error)) from None


def _make_matcher(glob: str) -> Callable[[str], bool]:
    pattern = GlobPattern(glob)
    try:
        pattern.matches("")
    except InvalidGlob as error:
        raise ToolFailure(str(error)) from None
    return pattern.matches


def _find_lines(text: str, query: str, room: int) -> list[dict[str, Any]]:
    needle = query.lower()
    if needle not in text.lower():
        return []
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    matches: list[dict[str, Any]] = []
    for index, line in enumerate(lines):
        if len(matches) == room:
            break
        if needle in line.lower():
            before = lines[index - 1] if index else None
            after = lines[index + 1] if index + 1 < len(lines) else None
            context = {"before": _cut_line(before), "after": _cut_line(after)}
            matches.append({"lineNumber": index + 1, "line": _cut_line(line), "context": context})
    return matches


def _cut_line(line: str | None) -> str | None:
    return line if line is None or len(line) <= MAX_MATCHED_LINE_CHARS else line[:MAX_MATCHED_LINE_CHARS] + "…"
