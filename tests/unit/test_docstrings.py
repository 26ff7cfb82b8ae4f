"""Docstrings of what other packages call say what it does, what it takes and what it raises."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers" / "fermata" / "fermata"
FUNCTIONS = ROOT / "functions"
Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
SELF_EXPLANATORY_ARGUMENTS = 2
"""So many arguments the first sentence of a docstring can name."""


def get_package(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0] if path.is_relative_to(PACKAGE) else "functions"


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def iter_imports() -> Iterator[tuple[str, str, str]]:
    """The importing package, the module and the name of everything that is imported from a module of the package."""
    for path in [*PACKAGE.rglob("*.py"), *FUNCTIONS.rglob("*.py")]:
        names_of_modules: dict[str, str] = {}
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "fermata":
                for alias in node.names:
                    yield get_package(path), node.module, alias.name
                    names_of_modules[alias.name] = f"{node.module}.{alias.name}"
        for node in ast.walk(parse(path)):
            match node:
                case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in names_of_modules:
                    yield get_package(path), names_of_modules[name], attribute


def list_shared_functions() -> list[tuple[str, Function]]:
    """Functions that another package than their own imports, with where they are."""
    return [(place, node) for place, node in iter_shared_definitions() if isinstance(node, FUNCTION)]


def list_shared_methods() -> list[tuple[str, Function]]:
    """Public methods and properties of the classes that another package than their own imports."""
    return [
        (f"{place}.{member.name}", member)
        for place, node in iter_shared_definitions()
        if isinstance(node, ast.ClassDef)
        for member in node.body
        if isinstance(member, FUNCTION) and not member.name.startswith("_")
    ]


def iter_shared_definitions() -> Iterator[tuple[str, ast.stmt]]:
    shared = {(module, name) for package, module, name in iter_imports() if module.split(".")[1:2] != [package]}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in parse(path).body:
            if isinstance(node, (*FUNCTION, ast.ClassDef)) and (get_module(path), node.name) in shared:
                yield f"{path.relative_to(PACKAGE)}: {node.name}", node


def get_module(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def find_missing_sections(function: Function) -> list[str]:
    docstring = ast.get_docstring(function)
    if docstring is None:
        return ["a docstring"]
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    arguments = [argument for argument in arguments if argument.arg not in ("self", "cls")]
    raises = any(isinstance(node, ast.Raise) and node.exc is not None for node in ast.walk(function))
    # A function that says "Raise …" in its first sentence has said it.
    is_told = "Raises:" in docstring or docstring.startswith("Raise ")
    return [
        *(["Args:"] if len(arguments) > SELF_EXPLANATORY_ARGUMENTS and "Args:" not in docstring else []),
        *(["Raises:"] if raises and not is_told else []),
    ]


def test_functions_that_other_packages_call_say_what_they_take_and_raise() -> None:
    functions = list_shared_functions()
    assert len(functions) > 100
    missing = {place: find_missing_sections(function) for place, function in functions}
    assert {place: sections for place, sections in missing.items() if sections} == {}


def test_methods_of_classes_that_other_packages_use_say_what_they_take_and_raise() -> None:
    methods = list_shared_methods()
    assert len(methods) > 150
    missing = {place: find_missing_sections(method) for place, method in methods}
    assert {place: sections for place, sections in missing.items() if sections} == {}


def test_what_a_docstring_lacks_is_named() -> None:
    source = 'def f(a, b, *, c):\n  "Do."\n  raise ValueError\ndef g(): ...\ndef h(a, b):\n  "Do."\n'
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    assert [find_missing_sections(function) for function in functions] == [["Args:", "Raises:"], ["a docstring"], []]
