"""Who may import whom: the table of docs/architecture.md is the law, and imports go down only."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOUSE = ROOT / "layers" / "fermata" / "fermata"
DOORS = ROOT / "functions"
ROW = re.compile(r"^\| `(\w+)/` \|[^|]*\| ([^|]+) \|$", re.MULTILINE)
EVERYWHERE = {"pydantic"}
GUESTS = {
    "aws": {"boto3", "botocore", "aws_lambda_powertools", "types_boto3_dynamodb", "types_boto3_kms"}
    | {"types_boto3_s3", "types_boto3_stepfunctions"},
    "drivers": {"httpx", "httpcore"},
    "hosts": {"jwt"},
    "pricing": {"httpx"},
    "conversations": {"PIL"},
    "wire": {"jwt"},
}
"""Third parties a room may name besides pydantic; no other room names them."""


def table() -> dict[str, set[str]]:
    """Each room and the rooms it may import."""
    rooms: dict[str, set[str]] = {}
    for room, imports in ROW.findall((ROOT / "docs" / "architecture.md").read_text()):
        named = set(re.split(r",\s*", imports.strip()))
        rooms[room] = set(rooms) if named == {"all of the above"} else named & (set(rooms) | {room})
    return rooms


ROOMS = table()


def imported(path: Path) -> set[str]:
    """Every module a file imports, at its top or anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: imports are absolute"
            names |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def rooms_of(names: set[str]) -> set[str]:
    return {name.split(".")[1] for name in names if name.startswith("fermata.")} & set(ROOMS)


def guests_of(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"fermata"}


def test_the_table_names_every_room_there_is() -> None:
    there = {path.name for path in HOUSE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert set(ROOMS) == there


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_the_table_allows(room: str) -> None:
    for path in (HOUSE / room).rglob("*.py"):
        beyond = rooms_of(imported(path)) - ROOMS[room] - {room}
        assert not beyond, f"{path.relative_to(ROOT)} imports {beyond}"


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_names_only_its_own_third_parties(room: str) -> None:
    for path in (HOUSE / room).rglob("*.py"):
        beyond = guests_of(imported(path)) - EVERYWHERE - GUESTS.get(room, set())
        assert not beyond, f"{path.relative_to(ROOT)} imports {beyond}"


@pytest.mark.parametrize("door", [path.name for path in sorted(DOORS.iterdir()) if path.is_dir()])
def test_a_door_opens_into_the_house_and_into_no_other_door(door: str) -> None:
    for path in (DOORS / door).rglob("*.py"):
        beyond = guests_of(imported(path)) - ({"starlette"} if door == "stream" else set())
        assert not beyond, f"{path.relative_to(ROOT)} imports {beyond}"


def test_nobody_inside_imports_a_door() -> None:
    for path in HOUSE.rglob("*.py"):
        assert not any(name.split(".")[0] == "functions" for name in imported(path)), path
