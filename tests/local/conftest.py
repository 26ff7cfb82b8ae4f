from collections.abc import Iterator
from pathlib import Path

import pytest

from local.processes import EmulatorProcess
from tests.local.emulator_lab import EmulatorLab
from tests.local.kept_emulator import KeptEmulator


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatorProcess]:
    directory: Path = tmp_path_factory.mktemp("emulator")
    running = EmulatorProcess(directory, minute_seconds=1)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def lab(emulator: EmulatorProcess) -> EmulatorLab:
    return EmulatorLab(emulator.endpoint)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[KeptEmulator]:
    emulator = KeptEmulator(tmp_path)
    yield emulator
    emulator.process.stop()
