from pathlib import Path

import pytest

from fermata.aws.resources import Resources
from tests.faults import FaultScript
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]


@pytest.fixture
def faults(resources: Resources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FaultScript:
    return FaultScript(resources, tmp_path, monkeypatch)
