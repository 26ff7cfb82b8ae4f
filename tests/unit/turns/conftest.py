import pytest

from fermata.aws.desk import Desk
from tests.desk import clock, desk  # noqa: F401 (fixtures)
from tests.unit.turns.stage import Stage


@pytest.fixture
def stage(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Stage:  # noqa: F811 (the fixture imported above)
    return Stage(desk, monkeypatch)
