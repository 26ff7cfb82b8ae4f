from pathlib import Path

import pytest

from fermata.aws.desk import Desk
from tests.seam import Seam
from tests.unit.laid_out import clock, desk, parts

__all__ = ["clock", "desk", "parts"]


@pytest.fixture
def seam(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Seam:
    return Seam(desk, tmp_path, monkeypatch)
