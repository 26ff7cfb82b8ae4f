from pathlib import Path

import pytest

from fermata.aws.desk import Desk
from tests.desk import clock, desk  # noqa: F401 (fixtures)
from tests.seam import Seam


@pytest.fixture
def seam(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Seam:  # noqa: F811 (the fixture imported above)
    return Seam(desk, tmp_path, monkeypatch)
