"""Find the regular expressions of the package, the client and the functions, and how each is used."""

import ast
import dataclasses
import functools
import importlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
_SOURCE_FOLDERS = (ROOT / "layers" / "fermata", ROOT / "client", ROOT)
PACKAGES = ("layers/fermata/fermata", "client/fermata_client", "functions")
_FUNCTIONS = {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "finditer", "findall"}
_FLAGS_POSITIONS = {"compile": 1, "match": 2, "fullmatch": 2, "search": 2, "finditer": 2, "findall": 2}
UNKNOWN = "unknown"
"""The method of an expression that is put together from what a function is given."""
_INNER_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_ONCE = {"match", "fullmatch"}
"""Methods that try one place only."""


class FoundPattern(NamedTuple):
    place: str
    """The module, and the name or the line."""
    pattern: "re.Pattern[Any]"
    methods: frozenset[str]
    """The methods it is used with; empty if nothing is known."""

    @property
    def searches(self) -> bool:
        """Whether a match is tried at each place of a text."""
        return not self.methods or not self.methods <= _ONCE


def list_modules() -> list[ModuleType]:
    modules = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            base = next(folder for folder in _SOURCE_FOLDERS if path.is_relative_to(folder))
            name = ".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__")
            if not name.endswith("__main__"):
                modules.append(importlib.import_module(name))
    return modules


def find_patterns() -> list[FoundPattern]:
    """Return each expression once: those that modules hold, and those that code compiles when it is called."""
    modules = list_modules()
    trees = {module.__name__: ast.parse(Path(str(module.__file__)).read_text()) for module in modules}
    uses = _find_uses(trees)
    found: dict[tuple[Any, int, bool, str], FoundPattern] = {}
    for module in modules:
        for name, value in vars(module).items():
            for pattern in _iter_patterns(value, set()):
                methods = frozenset(uses.get(f"{module.__name__}.{name}" if name.startswith("_") else name, ()))
                _add(found, FoundPattern(f"{module.__name__}.{name}", pattern, methods))
        for each in _iter_called(module, trees[module.__name__]):
            _add(found, each)
    return list(found.values())


def _add(found: dict[tuple[Any, int, bool, str], FoundPattern], new: FoundPattern) -> None:
    place = new.place if UNKNOWN in new.methods else ""
    found.setdefault((new.pattern.pattern, new.pattern.flags, new.searches, place), new)


def _find_uses(trees: Mapping[str, ast.AST]) -> dict[str, set[str]]:
    """Return the methods by the name of what they are called on; a private name with its module."""
    uses: dict[str, set[str]] = {}
    for module, tree in trees.items():
        called, nodes = set(), list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FUNCTIONS:
                called.add(node.func.value)
                uses.setdefault(_get_name(node.func.value, module), set()).add(node.func.attr)
        for node in nodes:
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load) and node not in called:
                uses.setdefault(_get_name(node, module), set()).add("elsewhere")
    return uses


def _get_name(node: ast.expr, module: str) -> str:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return f"{module}.{name}" if name.startswith("_") else name


def _iter_patterns(value: Any, seen: set[int]) -> Iterator["re.Pattern[Any]"]:
    """Iterate over the expressions in a value, in its members and fields."""
    if isinstance(value, re.Pattern):
        yield value
    if isinstance(value, str | bytes | int | float | type | ModuleType) or id(value) in seen:
        return
    seen.add(id(value))
    members: Any = ()
    if isinstance(value, Mapping):
        members = value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        members = value
    elif dataclasses.is_dataclass(value):
        members = [getattr(value, name, None) for name in _list_members(type(value))]
    for member in members:
        yield from _iter_patterns(member, seen)


def _list_members(cls: type) -> list[str]:
    """List the fields of a dataclass, and its patterns that are compiled on first use."""
    late = [name for name, member in vars(cls).items() if isinstance(member, functools.cached_property)]
    patterns = [name for name in late if vars(cls)[name].func.__annotations__.get("return") == re.Pattern[str]]
    return [field.name for field in dataclasses.fields(cls)] + patterns


def _iter_called(module: ModuleType, tree: ast.AST) -> Iterator[FoundPattern]:
    """Iterate over the expressions that functions and classes of a module name in a call of `re`."""
    nodes = list(ast.walk(tree))
    if not any(isinstance(node, ast.Name) and node.id == "re" for node in nodes):
        return
    functions = [node for node in nodes if isinstance(node, _INNER_SCOPES)]
    used_at_once = {node.value: node.attr for node in nodes if isinstance(node, ast.Attribute)}
    for node in {node: None for function in functions for node in ast.walk(function)}:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        method = node.func.attr
        if ast.unparse(node.func) != f"re.{method}" or method not in _FUNCTIONS:
            continue
        place = f"{module.__name__}:{node.lineno}"
        flags = [keyword.value for keyword in node.keywords if keyword.arg == "flags"]
        flags += node.args[_FLAGS_POSITIONS.get(method, len(node.args)) :]
        try:
            pattern = re.compile(_evaluate(node.args[0], module), _evaluate(flags[0], module) if flags else 0)
        except NameError:
            yield FoundPattern(place, re.compile(""), frozenset({UNKNOWN}))
            continue
        if method == "compile":
            yield FoundPattern(place, pattern, frozenset({used_at_once[node]} if node in used_at_once else ()))
        else:
            yield FoundPattern(place, pattern, frozenset({method}))


class _Escaped(ast.NodeTransformer):
    """Replaces `re.escape(…)` by a text without special characters: what is escaped cannot repeat anything."""

    def __init__(self, sample: str | bytes) -> None:
        self._sample = sample

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return ast.Constant(self._sample) if ast.unparse(node.func) == "re.escape" else self.generic_visit(node)


def _evaluate(node: ast.expr, module: ModuleType) -> Any:
    try:
        return _evaluate_with(node, module, "x-1")
    except TypeError:
        return _evaluate_with(node, module, b"x-1")


def _evaluate_with(node: ast.expr, module: ModuleType, sample: str | bytes) -> Any:
    copied = ast.parse(ast.unparse(node), mode="eval")
    tree = ast.fix_missing_locations(_Escaped(sample).visit(copied))
    return eval(compile(tree, module.__name__, "eval"), dict(vars(module)))
