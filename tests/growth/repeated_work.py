"""Find work that code repeats for each of many values, though one look-up or one result would do."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_SCANS = ("count", "index")
"""Methods of lists that look at each of their items."""


_Repeated = tuple[ast.expr, frozenset[str]]


class RepeatedWork(NamedTuple):
    place: str
    """The file and the line."""
    work: str


def find_repeated_work(path: Path) -> Iterator[RepeatedWork]:
    """Iterate over what a file does anew for each value of a loop: scans, copies, sets, and sorting of marks."""
    repeated: list[_Repeated] = []
    _collect_repeated(ast.parse(path.read_text()), frozenset(), repeated)
    for node, own_names in repeated:
        if _is_scan(node, own_names) or _is_copy(node, own_names) or _is_built_again(node, own_names):
            yield RepeatedWork(f"{path.name}:{node.lineno}", ast.unparse(node))


def _collect_repeated(node: ast.AST, names: frozenset[str], found: list[_Repeated]) -> None:
    """Add the expressions in loops that may be repeated work, with the names that change with each value."""
    parts: Iterable[ast.AST]
    if isinstance(node, _SCOPES):
        names = frozenset()
    if names and isinstance(node, ast.Call | ast.Subscript | ast.Compare):
        found.append((node, names))
    if isinstance(node, ast.For):
        _collect_repeated(node.iter, names, found)
        parts, names = node.body, names | _list_names(node.target)
    elif isinstance(node, _COMPREHENSIONS):
        first, *others = node.generators
        _collect_repeated(first.iter, names, found)
        names = names.union(*(_list_names(one.target) for one in node.generators))
        elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        parts = [*elements, *first.ifs, *(part for one in others for part in (one.iter, *one.ifs))]
    else:
        parts = ast.iter_child_nodes(node)
    for part in parts:
        _collect_repeated(part, names, found)


def _list_names(node: ast.AST) -> frozenset[str]:
    return frozenset(one.id for one in ast.walk(node) if isinstance(one, ast.Name))


def _is_scan(node: ast.expr, own_names: frozenset[str]) -> bool:
    """Return whether a list is searched for the value: `names.count(name)`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SCANS):
        return False
    return bool(node.args) and bool(_list_names(node.args[0]) & own_names) and not _list_names(node.func) & own_names


def _is_copy(node: ast.expr, own_names: frozenset[str]) -> bool:
    """Return whether all that is before or behind the value is copied: `paths[:index]`."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)):
        return False
    lower, upper = node.slice.lower, node.slice.upper
    bound = lower if upper is None else upper if lower is None else None
    return isinstance(bound, ast.Name) and bound.id in own_names and not _list_names(node.value) & own_names


def _is_built_again(node: ast.expr, own_names: frozenset[str]) -> bool:
    """Return whether a value is looked for in what is the same for all of them: `name in hidden | others`."""
    if not (isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn)):
        return False
    container = node.comparators[0]
    is_made = isinstance(container, _COMPREHENSIONS[:3]) or (
        isinstance(container, ast.BinOp) and isinstance(container.op, ast.BitOr)
    )
    return is_made and not (_list_names(container) - _bound_inside(container)) & own_names


def _bound_inside(node: ast.AST) -> frozenset[str]:
    return frozenset[str]().union(
        *(_list_names(one.target) for one in ast.walk(node) if isinstance(one, ast.comprehension))
    )
