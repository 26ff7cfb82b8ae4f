"""Read a YAML file with the line of each member."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

MAX_DEFINITION_FILE_BYTES = 2_000_000
MAX_MEMBERS = 50_000
"""Aliases count as often as they are used, so that a small file cannot stand for a huge one."""
MAX_DEPTH = 100
_STANDARD_TAGS = ("str", "int", "float", "bool", "null", "map", "seq")


class YamlMistake(Exception):
    """A file is no YAML that can be read. `line` is 0 where none is known."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


@dataclass(frozen=True)
class YamlDocument:
    """The content of a file, with the lines of its members by their paths, such as `agents[0].id`."""

    value: Any
    lines: dict[str, int]


def read_yaml(text: str) -> YamlDocument:
    """Parse YAML: texts, numbers, true, false, null, lists and objects. Dates stay texts.

    Args:
        text: The content of the file.

    Raises:
        YamlMistake: It is no YAML, has a member twice, or is too large.
    """
    yaml = _import_yaml()
    try:
        node = yaml.compose(text, Loader=_make_loader(yaml))
        value, lines = (None, {}) if node is None else _Reader(yaml).read(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlMistake(mark.line + 1 if mark else 0, f"This is no YAML: {error.problem or error.context}.") from None
    except yaml.YAMLError as error:
        raise YamlMistake(0, f"This is no YAML: {error}.") from None
    except RecursionError:
        raise YamlMistake(0, f"The file is nested more than {MAX_DEPTH} levels deep.") from None
    return YamlDocument(value, lines)


def _import_yaml() -> Any:
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise click.ClickException("This needs the package that reads YAML: pip install pyyaml") from error
    return yaml


def _make_loader(yaml: Any) -> Any:
    """Return a loader to which dates and the words yes, no, on and off are texts, as in YAML 1.2."""

    fastest = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    TextLoader: Any = type("TextLoader", (fastest,), {})
    kept = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":bool"))]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    TextLoader.yaml_implicit_resolvers = kept
    import re

    pattern = re.compile("^(?:true|True|TRUE|false|False|FALSE)$")
    TextLoader.add_implicit_resolver("tag:yaml.org,2002:bool", pattern, list("tTfF"))
    return TextLoader


class _Reader:
    """Makes JSON of the nodes of a file."""

    def __init__(self, yaml: Any) -> None:
        self._yaml = yaml
        self._constructor = yaml.constructor.SafeConstructor()
        self._lines: dict[str, int] = {}
        self._count = 0

    def read(self, node: Any) -> tuple[Any, dict[str, int]]:
        return self._read(node, "", 0), self._lines

    def _read(self, node: Any, path: str, depth: int) -> Any:
        line = node.start_mark.line + 1
        self._count += 1
        if self._count > MAX_MEMBERS:
            raise YamlMistake(line, f"The file has more than {MAX_MEMBERS} members.")
        if depth > MAX_DEPTH:
            raise YamlMistake(line, f"The file is nested more than {MAX_DEPTH} levels deep.")
        if node.tag.removeprefix("tag:yaml.org,2002:") not in _STANDARD_TAGS:
            raise YamlMistake(line, f"The tag {node.tag} is not known here.")
        self._lines.setdefault(path, line)
        if isinstance(node, self._yaml.MappingNode):
            return {
                key: self._read(value, f"{path}.{key}" if path else key, depth + 1)
                for key, value in self._iter_members(node, path)
            }
        if isinstance(node, self._yaml.SequenceNode):
            return [self._read(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(node.value)]
        try:
            return self._constructor.construct_object(node)
        except ValueError:
            raise YamlMistake(line, f"{node.value!r} is no value.") from None

    def _iter_members(self, node: Any, path: str) -> Iterator[tuple[str, Any]]:
        seen: set[str] = set()
        for key_node, value in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, self._yaml.ScalarNode):
                raise YamlMistake(line, "The name of a member has to be a text.")
            key = key_node.value
            if key == "<<":
                raise YamlMistake(line, "Members are not merged here: write them out.")
            if key in seen:
                raise YamlMistake(line, f"The member {key!r} is there twice.")
            seen.add(key)
            self._lines[f"{path}.{key}" if path else key] = line
            yield key, value
