"""Check that public names are unambiguous: one definition each, imported under its own name."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers" / "fermata" / "fermata"
CLIENT_PACKAGE = ROOT / "client" / "fermata_client"
IMPORT_ROOTS = {"fermata": PACKAGE.parent, "fermata_client": CLIENT_PACKAGE.parent}
SOURCE_FOLDERS = (PACKAGE, ROOT / "client", ROOT / "functions", ROOT / "local", ROOT / "bench", ROOT / "tests")
SIBLINGS = {
    "build_request_body": "one per protocol of the drivers; a provider calls the one of its protocol",
    "PROVIDER": "one per module of drivers/providers; drivers/registry.py collects them",
    "situation": "one per scope; the record of an agent names the one of its folder",
    "system_prompt": "one per scope; the record of an agent names the one of its folder",
}
"""Names that several modules define on purpose, because their callers choose between the modules."""
CLIENT_SIBLINGS = {"logger": "the logger of a module, as `logging` names it"}
PACKAGES: dict[Path, dict[str, str]] = {PACKAGE: SIBLINGS, CLIENT_PACKAGE: CLIENT_SIBLINGS}
HANDLER_MODULE = "app"
"""The module of every Lambda handler, as the template names it: only an alias tells two of them apart."""
OPERATIONS = PACKAGE / "wire" / "operations"
"""Its constants are operations, which may have the names of the functions that carry them out."""
OTHER_CASE_PAIRS: dict[Path, set[frozenset[str]]] = {
    PACKAGE: {
        frozenset({"PROVIDER", "Provider"}),  # each module's provider, and the class of them all
        frozenset({"DownloadFile", "download_file"}),  # a type of functions, and the function that is one
        frozenset({"StoreImage", "store_image"}),
    },
    CLIENT_PACKAGE: set(),
}
"""Names that differ only by case and underscores, and mean the same."""
QUESTION_WORDS = {"how", "what", "where", "which", "who", "whom", "whose"}


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def iter_sources() -> Iterator[Path]:
    for folder in SOURCE_FOLDERS:
        yield from sorted(folder.rglob("*.py"))


def iter_top_level(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module, also those under `if`, `try`, `with` and loops, but not those in functions or classes."""
    for node in body:
        yield node
        match node:
            case ast.If() | ast.For() | ast.While() | ast.With():
                yield from iter_top_level([*node.body, *getattr(node, "orelse", ())])
            case ast.Try() | ast.TryStar():
                handled = [statement for handler in node.handlers for statement in handler.body]
                yield from iter_top_level([*node.body, *handled, *node.orelse, *node.finalbody])
            case ast.Match(cases=cases):
                yield from iter_top_level([statement for case in cases for statement in case.body])


def list_defined_names(module: ast.Module) -> set[str]:
    """Classes, functions, constants and type aliases at the top level."""
    names: set[str] = set()
    for node in iter_top_level(module.body):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


@cache
def modules_by_public_name(package: Path) -> dict[str, list[str]]:
    modules: dict[str, list[str]] = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        for name in list_defined_names(parse(path)):
            if not name.startswith("_"):
                modules[name].append(str(path.relative_to(package)))
    return modules


def is_project_module(dotted_name: str) -> bool:
    path = IMPORT_ROOTS.get(dotted_name.split(".")[0], ROOT) / Path(*dotted_name.split("."))
    return path.with_suffix(".py").is_file() or (path.is_dir() and any(path.glob("*.py")))


def list_aliased_imports(module: ast.Module) -> list[str]:
    """Modules, classes, functions and constants of this project that `module` imports under another name."""
    found: list[str] = []
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if _is_renamed(alias) and is_project_module(alias.name)]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names if _is_renamed(alias)]
            found += [name for name in names if is_project_module(node.module) or is_project_module(name)]
    return [name for name in found if name.rpartition(".")[2] not in {HANDLER_MODULE, *SIBLINGS}]


def _is_renamed(alias: ast.alias) -> bool:
    return alias.asname not in (None, alias.name)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_a_public_name_is_defined_in_one_module(package: Path) -> None:
    repeated = {name: modules for name, modules in modules_by_public_name(package).items() if len(modules) > 1}
    assert {name: modules for name, modules in repeated.items() if name not in PACKAGES[package]} == {}


def list_names_of_two_cases(package: Path) -> list[frozenset[str]]:
    """Public names that read the same aloud: `LEASES` and `Leases`, `head_sort_key` and `HEAD_SORT_KEY`."""
    modules = modules_by_public_name(package)
    names_by_sound: dict[str, set[str]] = defaultdict(set)
    for name in modules:
        names_by_sound[name.lower().replace("_", "")].add(name)
    operations = {str(path.relative_to(PACKAGE)) for path in OPERATIONS.glob("*.py")}
    defined = {name for name in modules if operations >= set(modules[name])}
    sounds = [names - {name for name in names & defined if name.lower() in names} for names in names_by_sound.values()]
    return [frozenset(names) for names in sounds if len(names) > 1]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_no_two_public_names_differ_only_by_case(package: Path) -> None:
    assert set(list_names_of_two_cases(package)) == OTHER_CASE_PAIRS[package]


def test_a_definition_under_a_condition_counts_as_defined() -> None:
    module = ast.parse(
        "if A:\n  def f(): ...\nelse:\n  B = 1\ntry:\n  class C: ...\nexcept E:\n  d: int\nwith x:\n  g = 2"
    )
    assert list_defined_names(module) == {"f", "B", "C", "d", "g"}


def test_a_class_of_the_project_that_is_imported_under_another_name_is_found() -> None:
    module = ast.parse("from fermata.domain.events import Event as E, TextEvent\nfrom json import loads as parse")
    assert list_aliased_imports(module) == ["fermata.domain.events.Event"]


@pytest.mark.parametrize(("package", "name"), [(package, name) for package in PACKAGES for name in PACKAGES[package]])
def test_every_listed_sibling_has_siblings(package: Path, name: str) -> None:
    assert len(modules_by_public_name(package)[name]) > 1


def test_what_the_project_defines_is_imported_under_its_own_name() -> None:
    aliased = {str(path.relative_to(ROOT)): list_aliased_imports(parse(path)) for path in iter_sources()}
    assert {path: names for path, names in aliased.items() if names} == {}


def test_no_module_docstring_opens_with_a_question_word() -> None:
    docstrings = {str(path.relative_to(ROOT)): ast.get_docstring(parse(path)) or "" for path in iter_sources()}
    first_lines = {path: docstring.partition("\n")[0] for path, docstring in docstrings.items()}
    openings = {path: re.split(r"\W", line, maxsplit=1)[0].lower() for path, line in first_lines.items()}
    assert {path: first_lines[path] for path, word in openings.items() if word in QUESTION_WORDS} == {}
