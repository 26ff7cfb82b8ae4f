import pytest

from tests.unit.turns.stage import Stage
from tests.unit.turns.sub_agents.sub_agent_stage import Family


@pytest.fixture
def family(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Family:
    return Family(stage, monkeypatch)
