from collections.abc import Iterator

import pytest

from tests.scripted_tool_server import ScriptedToolServer, run_scripted_tool_server
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]


@pytest.fixture
def tool_server() -> Iterator[ScriptedToolServer]:
    with run_scripted_tool_server() as server:
        yield server
