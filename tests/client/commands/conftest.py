"""Page, scripted service and isolated environment of a command."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.commands.run_command import PAGE, editing_turn
from tests.client.scripted_service import ServiceScript, serve_script


@pytest.fixture(autouse=True)
def isolated_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the state files and the environment of the machine that runs the tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("FERMATA_URL", "FERMATA_TOKEN", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_text(PAGE)
    return path


@pytest.fixture
def script() -> ServiceScript:
    return ServiceScript(editing_turn())


@pytest.fixture
def url(script: ServiceScript) -> Iterator[str]:
    with serve_script(script) as address:
        yield address
