"""Check that the documents, decisions and files that texts of the repository name exist in it."""

import ast
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

ROOT = Path(__file__).parents[2]
FOLDERS = ("bench", "client", "docs", "examples", "functions", "layers", "local", "statemachines", "tests")
SUFFIXES = {".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml"}
DECISIONS = ROOT / "docs" / "decisions"
DECISION_NUMBERS = {path.name[:4] for path in DECISIONS.glob("[0-9]*.md")}
FOREIGN_REFERENCE = re.compile(r"design(?:\.md)?\s*§|\binstatic\.md\s*§|\bcontract\s+instatic|\bcontracts/|\bseeds/")
"""References to documents that are not part of this repository, or to numbered sections no document here has."""
DECISION = re.compile(r"\bdecisions?[ /]((?:\d{4}(?:,? and |, | to )?)+)", re.IGNORECASE)
DOCUMENT = re.compile(r"\bdocs/[\w./-]+\.md\b")
FILE = re.compile(r"(?<![\w/.-])(?:[a-z_][\w-]*/)+\w+\.(?:json|py|sh|toml|yaml)\b")
PACKAGES = (ROOT / "layers" / "fermata" / "fermata", ROOT / "client" / "fermata_client", ROOT / "client")
"""Folders, besides those above the text, that the path of a file can be relative to."""
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
ANCHORED = re.compile(r"\b(?P<document>(?:docs/[\w./-]+|README|CONTRIBUTING)\.md)#(?P<anchor>[\w-]+)")
HEADING = re.compile(r"^#+ +(?P<title>.+?) *#*$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
SCRIPT_BLOCKS = ("```js", "```html", "```ts")
"""How blocks begin whose names are none of Python's."""
DOTTED_NAME = re.compile(
    r"(?<![\w./-])(?:bench|fermata|fermata_client|functions|local|tests)(?:\.[A-Za-z_]\w*)+(?::\w+)?"
)
"""A name in one of the project's packages, such as `fermata.agents.registry` or `fermata.domain.agent_ids:SCOPES`."""
IMPORTED_NAMES = re.compile(r"from (?P<module>[\w.]+) import (?P<names>\w+(?:, \w+)*)")
MAKE_COMMAND = re.compile(r"(?:`|^\$ |^ {4})make(?P<arguments>(?: +[\w./=\"-]+)+)", re.MULTILINE)
"""A command in backticks, in a console block or in an indented block."""
MAKE_TARGET = re.compile(r"^(?P<targets>[\w./ -]+?)\s*:(?!=)", re.MULTILINE)
PATH_IN_CODE = re.compile(r"`(?P<path>(?:[a-z_.][\w.-]*/)+(?:[\w.-]+)?)`")
"""A path in backticks: of a file of any kind, or of a folder."""


def is_own_file(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return path.suffix in SUFFIXES and not any(part.startswith((".", "build")) for part in parts)


@cache
def list_texts() -> list[Path]:
    folders = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    return sorted(path for path in (*ROOT.iterdir(), *folders) if path != Path(__file__) and is_own_file(path))


@cache
def read_text(path: Path) -> str:
    return path.read_text()


def find_in_texts(find: Callable[[Path, str], Iterable[str]]) -> dict[str, list[str]]:
    """Apply `find` to every text; returns what it finds by file."""
    found = {str(path.relative_to(ROOT)): sorted(find(path, read_text(path))) for path in list_texts()}
    return {path: references for path, references in found.items() if references}


def find_foreign_references(_path: Path, text: str) -> Iterable[str]:
    return FOREIGN_REFERENCE.findall(text)


def find_unknown_decisions(_path: Path, text: str) -> Iterable[str]:
    numbers = {number for match in DECISION.finditer(text) for number in re.findall(r"\d{4}", match[1])}
    return numbers - DECISION_NUMBERS


def find_missing_documents(path: Path, text: str) -> Iterable[str]:
    named = {ROOT / name for name in DOCUMENT.findall(text)}
    linked = {path.parent / target for target, _ in list_links(path, text)}
    return {str(document) for document in named | linked if not document.exists()}


def list_links(path: Path, text: str) -> list[tuple[str, str]]:
    """Target and anchor of every link of a Markdown document to this repository. A target is relative to it."""
    if path.suffix != ".md":
        return []
    prose = FENCED.sub("", text)
    targets = [match["target"] for match in LINK.finditer(prose) if not re.match(r"\w+:", match["target"])]
    return [(target or path.name, anchor) for target, _, anchor in (target.partition("#") for target in targets)]


def find_missing_sections(path: Path, text: str) -> Iterable[str]:
    linked = {(path.parent / target, anchor) for target, anchor in list_links(path, text) if anchor}
    named = {(ROOT / match["document"], match["anchor"]) for match in ANCHORED.finditer(text)}
    missing = [(document, anchor) for document, anchor in linked | named if anchor not in list_anchors(document)]
    return {f"{document}#{anchor}" for document, anchor in missing}


def list_anchors(document: Path) -> set[str]:
    """Anchors of a document's headings, as GitHub makes them; of any other file none."""
    if document.suffix != ".md" or not document.is_file():
        return set()
    titles = [match["title"].lower() for match in HEADING.finditer(FENCED.sub("", document.read_text()))]
    anchors = [re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title)) for title in titles]
    return {anchor.replace(" ", "-") for anchor in anchors}


def find_missing_targets(path: Path, text: str) -> Iterable[str]:
    if path.suffix not in (".md", ".py"):
        return set()
    return {target for match in MAKE_COMMAND.finditer(text) for target in find_unknown_targets(match["arguments"])}


def find_unknown_targets(arguments: str) -> Iterable[str]:
    """Targets that the Makefile does not have, or with `-C` the Makefile of a folder."""
    folder, targets = ".", arguments.strip()
    if targets.startswith("-C "):
        folder, _, targets = targets.removeprefix("-C ").partition(" ")
    known = list_make_targets(ROOT / folder / "Makefile")
    return {target for target in targets.split() if "=" not in target and target not in known}


@cache
def list_make_targets(makefile: Path) -> set[str]:
    return {name for match in MAKE_TARGET.finditer(makefile.read_text()) for name in match["targets"].split()}


def find_missing_paths(path: Path, text: str) -> Iterable[str]:
    if path.suffix == ".py":
        text = "\n".join(list_docstrings(text))
    elif path.suffix != ".md":
        return set()
    folders = (*PACKAGES, *(folder for folder in path.parents if folder.is_relative_to(ROOT)))
    names = {match["path"] for match in PATH_IN_CODE.finditer(text)}
    # A path whose first folder is nowhere here is of something else: keys of a bucket, routes, files of a user.
    own_names = {name for name in names if exists_in((ROOT, *PACKAGES), name.partition("/")[0])}
    return {name for name in own_names if not exists_in(folders, name)}


def find_missing_names(path: Path, text: str) -> Iterable[str]:
    """Dotted names and imports in the code blocks of a document that nothing in the project has."""
    if path.suffix != ".md":
        return set()
    code = "\n".join(block for block in FENCED.findall(text) if not block.startswith(SCRIPT_BLOCKS))
    imports = [(match["module"], match["names"].split(", ")) for match in IMPORTED_NAMES.finditer(code)]
    imported = {f"{module}:{name}" for module, names in imports for name in names if DOTTED_NAME.fullmatch(module)}
    return {name for name in {*DOTTED_NAME.findall(code), *imported} if not can_be_resolved(name)}


def can_be_resolved(name: str) -> bool:
    try:
        resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def find_missing_modules(text: str) -> set[str]:
    """Dotted names in backticks that begin with a package of the service, and are neither module nor package."""
    packages = [path.parent.name for path in (ROOT / "layers" / "fermata" / "fermata").glob("*/__init__.py")]
    names = re.findall(rf"`((?:{'|'.join(packages)})(?:\.\w+)+)`", text)
    return {name for name in names if not can_be_resolved(f"fermata.{name}")}


def list_docstrings(source: str) -> list[str]:
    """Every text of a module that stands alone: docstrings of modules, classes, functions, constants and fields."""
    nodes = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr)]
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def find_missing_files(path: Path, text: str) -> Iterable[str]:
    folders = (*PACKAGES, *(folder for folder in path.parents if folder.is_relative_to(ROOT)))
    return {name for name in FILE.findall(text) if not exists_in(folders, name)}


def exists_in(folders: Iterable[Path], name: str) -> bool:
    return any((folder / name).exists() for folder in folders)


def test_no_text_refers_to_a_document_outside_the_repository() -> None:
    assert find_in_texts(find_foreign_references) == {}


def test_every_decision_that_is_named_exists() -> None:
    assert find_in_texts(find_unknown_decisions) == {}


def test_every_document_that_is_named_exists() -> None:
    assert find_in_texts(find_missing_documents) == {}


def test_every_file_that_is_named_exists() -> None:
    assert find_in_texts(find_missing_files) == {}


def test_every_section_that_is_linked_exists() -> None:
    assert find_in_texts(find_missing_sections) == {}


def test_every_make_target_that_is_named_exists() -> None:
    assert find_in_texts(find_missing_targets) == {}


def test_every_path_that_a_document_or_docstring_names_exists() -> None:
    assert find_in_texts(find_missing_paths) == {}


def test_every_name_in_a_code_block_of_a_document_exists() -> None:
    assert find_in_texts(find_missing_names) == {}


def test_every_module_that_the_map_of_the_code_names_exists() -> None:
    assert find_missing_modules(read_text(ROOT / "docs" / "architecture.md")) == set()
    assert find_missing_modules("`turns.end` `turns.end.beginning` `wire.auth`") == {"turns.end.beginning"}


def test_a_missing_name_is_found() -> None:
    block = """```python
from fermata.domain.agent_ids import SCOPES, NONE
"fermata.agents.site.prompt:system_prompt", "fermata.tools.kitchen.prompt:system_prompt"
$ python -m local.demo local/demo.py fermata.example
```
fermata.of.prose"""
    assert find_missing_names(ROOT / "docs" / "made-up.md", block) == {
        "fermata.domain.agent_ids:NONE",
        "fermata.tools.kitchen.prompt:system_prompt",
        "fermata.example",
    }


def test_a_missing_section_target_and_path_are_found() -> None:
    document = ROOT / "docs" / "made-up.md"
    assert find_missing_sections(document, "[a](architecture.md#one-turn) [b](architecture.md#no-turn)") == {
        f"{ROOT / 'docs' / 'architecture.md'}#no-turn"
    }
    assert find_missing_targets(document, "`make run` `make fun`\n$ make -C layers/dependencies wheels.json x") == {
        "fun",
        "x",
    }
    assert find_missing_paths(document, "`local/cloud.py` `turns/undo/` `turns/redo/` `client/none.js`") == {
        "turns/redo/",
        "client/none.js",
    }


def test_the_readme_names_every_document() -> None:
    linked = {target for target, _ in list_links(ROOT / "README.md", read_text(ROOT / "README.md"))}
    assert {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} - linked == set()
