"""A receiver of webhooks, and a stage whose tenant may have some."""

from collections.abc import Iterator

import pytest

from tests.scripted_tool_server import ScriptedToolServer, run_scripted_tool_server
from tests.tenant_tokens import make_tenant
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.scripted_queue import install_scripted_queue
from tests.unit.turns.stage import Stage


@pytest.fixture
def receiver() -> Iterator[ScriptedToolServer]:
    with run_scripted_tool_server() as server:
        yield server


@pytest.fixture
def stage(staged: MakeStage) -> Stage:
    made = staged(fermata_stage="local")
    make_tenant(made.resources, "bakery")
    install_scripted_queue(made.resources)
    return made
