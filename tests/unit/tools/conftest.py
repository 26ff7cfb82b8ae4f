from collections.abc import Iterator

import pytest

from tests.scripted_host import ScriptedHost, scripted_host


@pytest.fixture
def host() -> Iterator[ScriptedHost]:
    with scripted_host() as running:
        yield running
