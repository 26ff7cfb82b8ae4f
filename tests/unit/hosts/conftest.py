from collections.abc import Iterator

import pytest

from tests.desk import clock, desk
from tests.hosts import ScriptedHost, scripted_host

__all__ = ["clock", "desk"]


@pytest.fixture
def host() -> Iterator[ScriptedHost]:
    with scripted_host() as running:
        yield running
