"""An installation says how it goes, and a demo installs nothing that only tests need."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from local.install_environment import PROGRESS_SECONDS, InstallProgress
from local.processes import ROOT

EMULATOR_PACKAGES = {"ministack", "samtranslator", "uvloop"}
"""They are in the emulator's own environment."""
PROJECT_PACKAGES = {"fermata", "fermata_client", "fermata_command", "functions", "local"}


def read_lock(name: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    return dict(re.findall(r"^([a-z0-9][\w.-]*)(?:\[[^\]]*\])?==(\S+)", text, re.MULTILINE))


def test_the_lock_for_a_demo_is_a_part_of_that_for_tests() -> None:
    runtime, dev = read_lock("runtime"), read_lock("dev")
    assert runtime.items() <= dev.items()
    assert not {"pytest", "mypy", "ruff", "moto", "hypothesis", "cfn-lint", "uv"} & runtime.keys()


def iter_imported_packages(path: Path) -> Iterator[str]:
    """Yield the packages that a module imports, but for its type checker."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


@pytest.mark.exhaustive
def test_what_a_demo_runs_imports_only_what_is_installed_for_it() -> None:
    distributions = packages_distributions()
    locked = read_lock("runtime").keys()
    missing = {
        f"{path.relative_to(ROOT)}: {package}"
        for folder in ("local", "functions", "client/fermata_client", "layers/fermata/fermata")
        for path in (ROOT / folder).rglob("*.py")
        for package in iter_imported_packages(path)
        if package not in sys.stdlib_module_names | EMULATOR_PACKAGES | PROJECT_PACKAGES
        and not any(name.lower().replace("_", "-") in locked for name in distributions.get(package, []))
    }
    assert {line for line in missing if "local/emulator/" not in line} == set()


def test_an_installation_tells_its_steps_and_every_few_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("local.install_environment.time.monotonic", lambda: now[0])
    progress = InstallProgress(".venv", 3)
    for line in ("Collecting a==1", "  Downloading a.whl", "Collecting b==1"):
        progress.read_pip_line(line)
    now[0] = PROGRESS_SECONDS
    progress.read_pip_line("Requirement already satisfied: c==1")
    now[0] = 9.0
    progress.read_pip_line("Installing collected packages: a, b")
    assert capsys.readouterr().out.splitlines() == [
        ".venv: 3 of 3 packages are here (5 s)",
        ".venv: unpacking 2 packages, the longest step (9 s)",
    ]


def test_a_failed_installation_shows_what_pip_said(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text("#!/bin/sh\necho No matching distribution\nexit 1\n")
    python.chmod(0o755)
    (tmp_path / "lock.txt").write_text("a==1 \\\n    --hash=sha256:00\nb[c]==2\n")
    command = [
        sys.executable,
        str(ROOT / "local" / "install_environment.py"),
        str(tmp_path),
        str(tmp_path / "lock.txt"),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "installing 2 packages" in ended.stdout
    assert "No matching distribution" in ended.stderr
    assert "the installation failed" in ended.stdout
