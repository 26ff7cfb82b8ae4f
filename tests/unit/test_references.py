"""Check that the documents, decisions and files that texts of the repository name exist in it."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

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
LINK = re.compile(r"\]\(([^)\s#]+\.md)(?:#[^)]*)?\)")


def is_own_file(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return path.suffix in SUFFIXES and not any(part.startswith((".", "build")) for part in parts)


def list_texts() -> list[Path]:
    folders = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    return sorted(path for path in (*ROOT.iterdir(), *folders) if path != Path(__file__) and is_own_file(path))


def find_in_texts(find: Callable[[Path, str], Iterable[str]]) -> dict[str, list[str]]:
    """Apply `find` to every text; returns what it finds by file."""
    found = {str(path.relative_to(ROOT)): sorted(find(path, path.read_text())) for path in list_texts()}
    return {path: references for path, references in found.items() if references}


def find_foreign_references(_path: Path, text: str) -> Iterable[str]:
    return FOREIGN_REFERENCE.findall(text)


def find_unknown_decisions(_path: Path, text: str) -> Iterable[str]:
    numbers = {number for match in DECISION.finditer(text) for number in re.findall(r"\d{4}", match[1])}
    return numbers - DECISION_NUMBERS


def find_missing_documents(path: Path, text: str) -> Iterable[str]:
    named = {ROOT / name for name in DOCUMENT.findall(text)}
    linked = {path.parent / name for name in LINK.findall(text) if "://" not in name} if path.suffix == ".md" else set()
    return {str(document) for document in named | linked if not document.is_file()}


def find_missing_files(path: Path, text: str) -> Iterable[str]:
    folders = (*PACKAGES, *(folder for folder in path.parents if folder.is_relative_to(ROOT)))
    return {name for name in FILE.findall(text) if not any((folder / name).exists() for folder in folders)}


def test_no_text_refers_to_a_document_outside_the_repository() -> None:
    assert find_in_texts(find_foreign_references) == {}


def test_every_decision_that_is_named_exists() -> None:
    assert find_in_texts(find_unknown_decisions) == {}


def test_every_document_that_is_named_exists() -> None:
    assert find_in_texts(find_missing_documents) == {}


def test_every_file_that_is_named_exists() -> None:
    assert find_in_texts(find_missing_files) == {}
