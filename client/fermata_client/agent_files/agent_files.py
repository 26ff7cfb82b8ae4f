"""Collect the files that define agents: YAML in a folder, what they include, and the folders that agents read."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fermata_client.agent_files.yaml_document import MAX_DEFINITION_FILE_BYTES, YamlDocument, YamlMistake, read_yaml
from fermata_client.service.json_types import JsonObject

YAML_SUFFIXES = (".yaml", ".yml")
MEMBERS = frozenset({"agents", "connections", "endpoints", "auth", "tests"})
"""A YAML file of a folder that has none of them is not one of ours."""
INCLUDE_OPERATOR = "_ref"
"""`{_ref: prompts/support.md}` stands for the content of a file: YAML and JSON as data, everything else as text."""
MAX_INCLUDE_DEPTH = 10
MAX_INCLUDES = 1000
"""Files that include others several times each would be as many as nobody can read."""
MAX_FOLDER_FILES = 10_000
MAX_FOLDER_BYTES = 100_000_000
MAX_FOLDER_FILE_BYTES = 10_000_000
"""The limits of the service, so that nothing is uploaded that it would refuse."""
IGNORED_NAMES = frozenset({".git", ".DS_Store", "__pycache__", "node_modules"})


@dataclass(frozen=True)
class FileMistake:
    """A mistake in a file, as the service reports them too."""

    file: str
    line: int
    path: str
    message: str

    def to_json(self) -> JsonObject:
        """Return the form in which the service reports a mistake."""
        place = {"file": self.file, "line": self.line, "path": self.path}
        return {"severity": "error", **place, "message": self.message}


@dataclass
class AgentFiles:
    """The files of a workspace: documents by their names, folders by the `basePath` that names them."""

    documents: dict[str, YamlDocument] = field(default_factory=dict)
    folders: dict[str, dict[str, Path]] = field(default_factory=dict)
    mistakes: list[FileMistake] = field(default_factory=list)

    @property
    def has_agents(self) -> bool:
        """Whether any file defines an agent. Without one, a push would remove all agents."""
        return any(isinstance(one.value, dict) and one.value.get("agents") for one in self.documents.values())

    def to_body(self) -> JsonObject:
        """Return the files as the service takes them."""
        files = [{"name": name, "content": one.value, "lines": one.lines} for name, one in self.documents.items()]
        folders = {
            base_path: [_to_file(path, place) for path, place in paths.items()]
            for base_path, paths in self.folders.items()
        }
        return {"files": files} | ({"folders": folders} if folders else {})


def read_agent_files(place: Path) -> AgentFiles:
    """Read a file, or all YAML files of a folder and the folders in it. Mistakes are collected.

    Paths in the files are relative to the folder.
    """
    root = place if place.is_dir() else place.parent
    files = AgentFiles()
    paths = sorted(_iter_yaml_files(place)) if place.is_dir() else [place]
    included: set[Path] = set()
    for path in paths:
        _read_file(root, path, files, included, is_named=path == place)
    for path in included:
        files.documents.pop(_name_of(root, path), None)
    for name, document in files.documents.items():
        for base_path, at in _iter_base_paths(document.value):
            if isinstance(base_path, str) and base_path and base_path not in files.folders:
                _read_folder(root, base_path, files, FileMistake(name, document.lines.get(at, 0), at, ""))
    return files


def _iter_yaml_files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        is_ignored = any(part in IGNORED_NAMES for part in path.relative_to(folder).parts)
        if path.suffix in YAML_SUFFIXES and path.is_file() and not is_ignored:
            yield path


def _read_file(root: Path, path: Path, files: AgentFiles, included: set[Path], *, is_named: bool) -> None:
    name = _name_of(root, path)
    try:
        document = _parse_file(path)
    except YamlMistake as mistake:
        files.mistakes.append(FileMistake(name, mistake.line, "", mistake.message))
        return
    includer = _Includer(root, document, included)
    try:
        value = includer.resolve(document.value, "")
    except RecursionError:
        files.mistakes.append(FileMistake(name, 0, "", "What the file includes is nested too deeply."))
        return
    files.mistakes += [FileMistake(name, line, "", message) for line, message in includer.mistakes]
    if not is_named and not (isinstance(value, dict) and value.keys() & MEMBERS):
        return  # another YAML file of the folder
    files.documents[name] = YamlDocument(value, document.lines)


def _parse_file(path: Path) -> YamlDocument:
    if path.stat().st_size > MAX_DEFINITION_FILE_BYTES:
        raise YamlMistake(0, f"The file has more than {MAX_DEFINITION_FILE_BYTES:,} bytes.")
    try:
        return read_yaml(path.read_text("utf-8"))
    except UnicodeDecodeError:
        raise YamlMistake(0, "The file is no text in UTF-8.") from None


class _Includer:
    """Replaces `{_ref: FILE}` in a document by the content of the file. Mistakes are collected."""

    def __init__(self, root: Path, document: YamlDocument, included: set[Path]) -> None:
        self._root, self._document, self._included = root, document, included
        self._count = 0
        self.mistakes: dict[tuple[int, str], None] = {}

    def resolve(self, value: Any, path: str, line: int = 0, chain: tuple[Path, ...] = ()) -> Any:
        """Return a value with what it includes, and an empty text where that cannot be read.

        Args:
            value: JSON.
            path: Where it is in its file.
            line: Of the document, in which the file of the value was named; 0 in the document itself.
            chain: The files that include it.
        """
        if isinstance(value, dict) and set(value) == {INCLUDE_OPERATOR}:
            line = line or self._document.lines.get(path, 0)
            try:
                found = self._find(value[INCLUDE_OPERATOR], chain)
                return self.resolve(self._read(found, value[INCLUDE_OPERATOR]), path, line, (*chain, found))
            except YamlMistake as mistake:
                self.mistakes[line, mistake.message] = None
                return ""
        if isinstance(value, dict):
            return {key: self.resolve(one, f"{path}.{key}" if path else key, line, chain) for key, one in value.items()}
        if isinstance(value, list):
            return [self.resolve(one, f"{path}[{index}]", line, chain) for index, one in enumerate(value)]
        return value

    def _find(self, name: Any, chain: tuple[Path, ...]) -> Path:
        found = _find_inside(self._root, name) if isinstance(name, str) and name else None
        if found is None or not found.is_file():
            raise YamlMistake(0, f"_ref names the file {name!r}, which does not exist in the folder.")
        if found in chain or len(chain) >= MAX_INCLUDE_DEPTH:
            raise YamlMistake(0, f"Files include each other in a circle, or more than {MAX_INCLUDE_DEPTH} levels deep.")
        self._count += 1
        if self._count > MAX_INCLUDES:
            raise YamlMistake(0, f"The file includes more than {MAX_INCLUDES:,} others.")
        self._included.add(found)
        return found

    def _read(self, found: Path, name: str) -> Any:
        if found.stat().st_size > MAX_DEFINITION_FILE_BYTES:
            raise YamlMistake(0, f"The file {name!r} has more than {MAX_DEFINITION_FILE_BYTES:,} bytes.")
        try:
            text = found.read_text("utf-8-sig")
        except UnicodeDecodeError:
            raise YamlMistake(0, f"The file {name!r} is no text in UTF-8.") from None
        if found.suffix not in (*YAML_SUFFIXES, ".json"):
            return text
        try:
            return json.loads(text) if found.suffix == ".json" else read_yaml(text).value
        except (ValueError, YamlMistake) as error:
            raise YamlMistake(0, f"The file {name!r} cannot be read: {error}") from None


def _find_inside(root: Path, name: str) -> Path | None:
    """Return a file or folder inside of the root; None for one that is elsewhere, also behind links."""
    place = (root / name).resolve()
    return place if place.is_relative_to(root.resolve()) else None


def _iter_base_paths(value: Any) -> Iterator[tuple[Any, str]]:
    agents = value.get("agents") if isinstance(value, dict) else None
    for index, agent in enumerate(agents if isinstance(agents, list) else ()):
        properties = agent.get("properties") if isinstance(agent, dict) else None
        system = properties.get("fileSystem") if isinstance(properties, dict) else None
        if isinstance(system, dict) and "basePath" in system:
            yield system["basePath"], f"agents[{index}].properties.fileSystem.basePath"


def _read_folder(root: Path, base_path: str, files: AgentFiles, at: FileMistake) -> None:
    """List the files of a folder. A folder that is not there is left to the compiler, which names the agent."""
    folder = _find_inside(root, base_path)
    if folder is None or not folder.is_dir():
        return
    paths: dict[str, Path] = {}
    sizes: dict[str, int] = {}
    for place in sorted(folder.rglob("*")):
        inner = place.relative_to(folder)
        if any(part in IGNORED_NAMES for part in inner.parts):
            continue
        if place.is_symlink():
            message = f"{inner.as_posix()} is a link, which may lead out of the folder. Put the file itself there."
            files.mistakes.append(FileMistake(at.file, at.line, at.path, message))
        elif place.is_file():
            paths[inner.as_posix()] = place
            sizes[inner.as_posix()] = place.stat().st_size
    for message in _list_size_problems(base_path, sizes):
        files.mistakes.append(FileMistake(at.file, at.line, at.path, message))
    files.folders[base_path] = paths


def _list_size_problems(base_path: str, sizes: dict[str, int]) -> Iterator[str]:
    for path, size in sizes.items():
        if size > MAX_FOLDER_FILE_BYTES:
            yield f"{base_path}/{path} has {size:,} bytes; a file of an agent has at most {MAX_FOLDER_FILE_BYTES:,}."
    if len(sizes) > MAX_FOLDER_FILES:
        yield f"The folder {base_path!r} has {len(sizes):,} files; at most {MAX_FOLDER_FILES:,} can be pushed."
    if (total := sum(sizes.values())) > MAX_FOLDER_BYTES:
        largest = max(sizes, key=lambda path: sizes[path])
        yield (
            f"The folder {base_path!r} has {total:,} bytes; at most {MAX_FOLDER_BYTES:,} can be pushed. "
            f"The largest file is {largest} with {sizes[largest]:,}."
        )


def _to_file(path: str, place: Path) -> JsonObject:
    modified = int(place.stat().st_mtime * 1000)
    return {"path": path, "content": base64.b64encode(place.read_bytes()).decode(), "modifiedMs": modified}


def _name_of(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
