from collections.abc import Iterator

import pytest

from tests.hosts import ScriptedHost, scripted_host
from tests.unit.laid_out import clock, desk, parts

__all__ = ["clock", "desk", "parts"]


@pytest.fixture
def host() -> Iterator[ScriptedHost]:
    with scripted_host() as running:
        yield running
