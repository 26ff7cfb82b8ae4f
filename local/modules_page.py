"""Write docs/modules.md, the first sentence of every module's docstring: `make docs`."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE_PATH = ROOT / "docs" / "modules.md"
PACKAGE = ROOT / "layers" / "fermata" / "fermata"

INTRODUCTION = """\
# Modules

Every module of the package and what it does, in the words of its docstring. `make docs` writes this page.
[architecture.md](architecture.md) explains how the packages work together.
"""


def render_page() -> str:
    packages = sorted(path for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)
    return "\n".join([INTRODUCTION, *(line for package in packages for line in _render_package(package))])


def _render_package(init: Path) -> Iterator[str]:
    modules = sorted(path for path in init.parent.glob("*.py") if path != init)
    yield f"## `{init.parent.relative_to(PACKAGE)}/`\n"
    yield f"{read_summary(init)}\n"
    if modules:
        yield "| module | what it does |\n|---|---|"
        yield from (f"| `{module.name}` | {read_summary(module)} |" for module in modules)
        yield ""


def read_summary(module: Path) -> str:
    """Return the first paragraph of a module's docstring in one line."""
    docstring = ast.get_docstring(ast.parse(module.read_text())) or ""
    return " ".join(docstring.split("\n\n")[0].split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE_PATH.write_text(render_page())
