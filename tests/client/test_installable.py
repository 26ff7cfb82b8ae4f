"""The client installs by itself: it imports the packages that it declares, and the service's own only on demand."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

CLIENT = Path(__file__).parents[2] / "client"
OPERATOR_PACKAGES = {"boto3", "botocore", "fermata", "jwt", "pydantic", "yaml"}
"""Imported within functions of the operator's commands, which say what to install without them."""


def iter_imports(body: list[ast.stmt], *, is_on_demand: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield the package of each import, and whether a function or a type checker imports it."""
    for node in body:
        match node:
            case ast.Import(names=names):
                yield from ((alias.name.split(".")[0], is_on_demand) for alias in names)
            case ast.ImportFrom(module=str(module)):
                yield module.split(".")[0], is_on_demand
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield from iter_imports(node.body, is_on_demand=True)
            case ast.FunctionDef():
                yield from iter_imports(node.body, is_on_demand=True)
            case ast.If() | ast.ClassDef() | ast.Try() | ast.With() | ast.For() | ast.While():
                inner = [*node.body, *getattr(node, "orelse", [])]
                yield from iter_imports(inner, is_on_demand=is_on_demand)


def test_every_import_is_declared() -> None:
    project = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]
    names = (
        "".join(c if c.isalnum() or c in "-_" else " " for c in text).split()[0] for text in project["dependencies"]
    )
    declared = (
        {name.replace("-", "_") for name in names} | {"fermata_client", "fermata_command"} | sys.stdlib_module_names
    )
    undeclared = {
        f"{path.relative_to(CLIENT)}: {package}"
        for path in (CLIENT / "fermata_client").rglob("*.py")
        for package, is_on_demand in iter_imports(ast.parse(path.read_text()).body)
        if package not in declared and not (is_on_demand and package in OPERATOR_PACKAGES)
    }
    assert undeclared == set()


def test_every_declared_dependency_has_an_upper_bound() -> None:
    project = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]
    assert [text for text in project["dependencies"] if "<" not in text] == []
    assert project["scripts"] == {"fermata": "fermata_command:main"}
