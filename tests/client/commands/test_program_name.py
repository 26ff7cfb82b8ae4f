"""A command that a hint suggests can be pasted into the shell that the program was started from."""

import sys
from pathlib import Path

import pytest

from fermata_client.commands.common.program_name import get_program


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "my venv" / "bin" / "fermata"
    path.parent.mkdir(parents=True)
    path.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(path)])
    return path


def test_a_program_outside_of_the_search_path_is_named_by_its_path(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert get_program() == f"'{program}'"


def test_another_program_of_the_same_name_does_not_count(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "fermata"
    other.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert get_program() == f"'{program}'"


def test_a_program_that_the_shell_finds_is_named_by_its_name(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program.parent))
    assert get_program() == "fermata"


def test_a_module_is_named_by_the_programs_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/__main__.py"])
    assert get_program() == "fermata"
