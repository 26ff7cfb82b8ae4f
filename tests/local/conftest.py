from collections.abc import Iterator
from pathlib import Path

import pytest

from local.processes import Emulator
from tests.local.lab import Lab


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    directory: Path = tmp_path_factory.mktemp("emulator")
    running = Emulator(directory, minute=1)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def lab(emulator: Emulator) -> Lab:
    return Lab(emulator.endpoint)
