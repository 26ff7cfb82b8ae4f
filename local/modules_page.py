"""Write docs/modules.md, the first sentence of every module of the product: `make docs`."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE_PATH = ROOT / "docs" / "modules.md"
PACKAGE = ROOT / "layers" / "fermata" / "fermata"
OTHER_FOLDERS = ("functions", "client/fermata_client", "local", "bench")
"""Folders of Python modules besides the package."""
SCRIPT_FOLDERS = ("console/src", "packages/client/src", "packages/panel/src", "packages/grapesjs/src")
_SCRIPT_COMMENT = re.compile(r"/\*\*(.*?)\*/", re.DOTALL)

INTRODUCTION = """\
# Modules

Every module and what it does, in the words of its docstring. `make docs` writes this page. First come the subpackages
of `layers/fermata/fermata/`, which the functions run; then [functions](#functions), the [command line and Python
client](#clientfermata_client), the [local cloud](#local), the [benchmark](#bench), the [console](#consolesrc), and the
npm packages ([client](#packagesclientsrc), [panel](#packagespanelsrc), [GrapesJS](#packagesgrapesjssrc)).
[architecture.md](architecture.md) explains how they work together.
"""


def render_page() -> str:
    packages = sorted(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)
    lines = [INTRODUCTION]
    for folder in packages:
        lines += _render_folder(folder, str(folder.relative_to(PACKAGE)))
    for name in (*OTHER_FOLDERS, *SCRIPT_FOLDERS):
        modules = list_modules(ROOT / name)
        for folder in sorted({ROOT / name, *(module.parent for module in modules)}):
            lines += _render_folder(folder, str(folder.relative_to(ROOT)))
    return "\n".join(lines)


def list_modules(folder: Path) -> list[Path]:
    """Return the modules of a folder and of those in it: Python's, and JavaScript's where there are such."""
    found = [path for suffix in ("*.py", "*.js") for path in folder.rglob(suffix)]
    return sorted(path for path in found if "node_modules" not in path.parts)


def _render_folder(folder: Path, name: str) -> Iterator[str]:
    modules = sorted(path for path in list_modules(folder) if path.parent == folder and path.name != "__init__.py")
    yield f"## `{name}/`\n"
    if (folder / "__init__.py").exists():
        yield f"{read_summary(folder / '__init__.py')}\n"
    if modules:
        yield "| module | what it does |\n|---|---|"
        yield from (f"| `{module.name}` | {read_summary(module)} |" for module in modules)
        yield ""


def read_summary(module: Path) -> str:
    """Return the first paragraph of a module's docstring, or of a script's first comment, in one line."""
    text = module.read_text()
    if module.suffix == ".js":
        return _shorten(next(filter(None, map(_read_comment, _SCRIPT_COMMENT.findall(text))), []))
    return _shorten((ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0].splitlines())


def _read_comment(comment: str) -> list[str]:
    """Return the lines of the first paragraph of a comment, without its tags."""
    lines = [line.strip().removeprefix("*").strip() for line in comment.strip().splitlines()]
    ends = [number for number, line in enumerate(lines) if not line or line.startswith("@")]
    return lines[: ends[0]] if ends else lines


def _shorten(lines: Iterable[str]) -> str:
    return " ".join(" ".join(lines).split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE_PATH.write_text(render_page())
