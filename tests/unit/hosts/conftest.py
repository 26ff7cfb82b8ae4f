from collections.abc import Iterator

import pytest

from tests.scripted_host import ScriptedHost, scripted_host
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]


@pytest.fixture
def host() -> Iterator[ScriptedHost]:
    with scripted_host() as running:
        yield running
