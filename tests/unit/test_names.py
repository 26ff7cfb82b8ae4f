"""Check that public names are unambiguous: one definition each, modules imported under their own names."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers" / "fermata" / "fermata"
IMPORT_ROOTS = {"fermata": PACKAGE.parent, "fermata_client": ROOT / "client"}
SOURCE_FOLDERS = (PACKAGE, ROOT / "client", ROOT / "functions", ROOT / "local", ROOT / "bench", ROOT / "tests")
SIBLINGS = {
    "build_request_body": "one per protocol of the drivers; a provider calls the one of its protocol",
    "PROVIDER": "one per module of drivers/providers; drivers/registry.py collects them",
    "situation": "one per scope; tools/registry.py loads the one of the prompt's scope",
    "system_prompt": "one per scope; tools/registry.py loads the one of the prompt's scope",
}
"""Names that several modules define on purpose, because their callers choose between the modules."""
HANDLER_MODULE = "app"
"""The module of every Lambda handler, as the template names it: only an alias tells two of them apart."""
QUESTION_WORDS = {"how", "what", "where", "which", "who", "whom", "whose"}


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def iter_sources() -> Iterator[Path]:
    for folder in SOURCE_FOLDERS:
        yield from sorted(folder.rglob("*.py"))


def list_defined_names(module: ast.Module) -> set[str]:
    """Classes, functions, constants and type aliases at the top level."""
    names: set[str] = set()
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


@cache
def modules_by_public_name() -> dict[str, list[str]]:
    modules: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in list_defined_names(parse(path)):
            if not name.startswith("_"):
                modules[name].append(str(path.relative_to(PACKAGE)))
    return modules


def is_project_module(dotted_name: str) -> bool:
    path = IMPORT_ROOTS.get(dotted_name.split(".")[0], ROOT) / Path(*dotted_name.split("."))
    return path.with_suffix(".py").is_file() or (path.is_dir() and any(path.glob("*.py")))


def list_aliased_modules(module: ast.Module) -> list[str]:
    """Modules of this project that `module` imports under another name."""
    found: list[str] = []
    for node in ast.walk(module):
        prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        if isinstance(node, ast.Import | ast.ImportFrom):
            found += [prefix + alias.name for alias in node.names if alias.asname not in (None, alias.name)]
    return [name for name in found if name.rpartition(".")[2] != HANDLER_MODULE and is_project_module(name)]


def test_a_public_name_is_defined_in_one_module() -> None:
    repeated = {name: modules for name, modules in modules_by_public_name().items() if len(modules) > 1}
    assert {name: modules for name, modules in repeated.items() if name not in SIBLINGS} == {}


@pytest.mark.parametrize("name", SIBLINGS)
def test_every_listed_sibling_has_siblings(name: str) -> None:
    assert len(modules_by_public_name()[name]) > 1


def test_modules_are_imported_under_their_own_names() -> None:
    aliased = {str(path.relative_to(ROOT)): list_aliased_modules(parse(path)) for path in iter_sources()}
    assert {path: modules for path, modules in aliased.items() if modules} == {}


def test_no_module_docstring_opens_with_a_question_word() -> None:
    docstrings = {str(path.relative_to(ROOT)): ast.get_docstring(parse(path)) or "" for path in iter_sources()}
    first_lines = {path: docstring.partition("\n")[0] for path, docstring in docstrings.items()}
    openings = {path: re.split(r"\W", line, maxsplit=1)[0].lower() for path, line in first_lines.items()}
    assert {path: first_lines[path] for path, word in openings.items() if word in QUESTION_WORDS} == {}
