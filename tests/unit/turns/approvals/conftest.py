import pytest

from tests.unit.turns.approvals.bakery import Bakery
from tests.unit.turns.stage import Stage


@pytest.fixture
def bakery(stage: Stage) -> Bakery:
    return Bakery(stage)
