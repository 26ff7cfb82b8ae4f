"""Check imports between packages against the table in docs/architecture.md: a package imports only those above it."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers" / "fermata" / "fermata"
FUNCTIONS = ROOT / "functions"
TABLE_ROW = re.compile(r"^\| `(\w+)/` \|[^|]*\| ([^|]+) \|$", re.MULTILINE)
COMMON_THIRD_PARTIES = {"pydantic", "pydantic_core"}
THIRD_PARTIES = {
    "aws": {"boto3", "botocore", "aws_lambda_powertools", "types_boto3_dynamodb", "types_boto3_kms"}
    | {"types_boto3_s3", "types_boto3_stepfunctions"},
    "domain": {"PIL"},
    "drivers": {"httpx", "httpcore"},
    "hosts": {"jwt"},
    "pricing": {"httpx"},
    "signed_requests": {"standardwebhooks"},
    "content": {"re2", "PIL", "yaml", "dulwich"},
    "conversations": {"PIL"},
    "mcp_sources": {"mcp", "mcp_types", "httpx2", "httpcore2", "anyio"},
    "wire": {"jwt"},
}
"""Third-party packages that a subpackage may import besides the common ones."""


def read_table() -> dict[str, set[str]]:
    """Return the subpackages that each subpackage may import."""
    allowed: dict[str, set[str]] = {}
    for package, imports in TABLE_ROW.findall((ROOT / "docs" / "architecture.md").read_text()):
        names = set(re.split(r",\s*", imports.strip()))
        allowed[package] = set(allowed) if names == {"all of the above"} else names & (set(allowed) | {package})
    return allowed


ALLOWED_IMPORTS = read_table()


def list_imports(path: Path) -> set[str]:
    """Return every module that a file imports, at its top or anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: imports are absolute"
            names |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def select_packages(imports: set[str]) -> set[str]:
    return {name.split(".")[1] for name in imports if name.startswith("fermata.")} & set(ALLOWED_IMPORTS)


def select_third_parties(imports: set[str]) -> set[str]:
    return {name.split(".")[0] for name in imports} - set(sys.stdlib_module_names) - {"fermata"}


def test_the_table_lists_every_package() -> None:
    packages = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert set(ALLOWED_IMPORTS) == packages


@pytest.mark.parametrize("package", ALLOWED_IMPORTS)
def test_a_package_imports_only_the_packages_its_row_allows(package: str) -> None:
    for path in (PACKAGE / package).rglob("*.py"):
        forbidden = select_packages(list_imports(path)) - ALLOWED_IMPORTS[package] - {package}
        assert not forbidden, f"{path.relative_to(ROOT)} imports {forbidden}"


@pytest.mark.parametrize("package", ALLOWED_IMPORTS)
def test_a_package_imports_only_its_own_third_parties(package: str) -> None:
    for path in (PACKAGE / package).rglob("*.py"):
        forbidden = select_third_parties(list_imports(path)) - COMMON_THIRD_PARTIES - THIRD_PARTIES.get(package, set())
        assert not forbidden, f"{path.relative_to(ROOT)} imports {forbidden}"


@pytest.mark.parametrize("function", [path.name for path in sorted(FUNCTIONS.iterdir()) if path.is_dir()])
def test_a_lambda_function_imports_no_other_function_and_no_third_party(function: str) -> None:
    for path in (FUNCTIONS / function).rglob("*.py"):
        forbidden = select_third_parties(list_imports(path)) - ({"starlette"} if function == "stream_turns" else set())
        assert not forbidden, f"{path.relative_to(ROOT)} imports {forbidden}"


def test_the_package_imports_no_lambda_function() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert not any(name.split(".")[0] == "functions" for name in list_imports(path)), path
