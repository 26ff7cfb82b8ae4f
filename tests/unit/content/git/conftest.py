"""Resources of the local stage, which may reach servers on this machine."""

import pytest

from fermata.aws.resources import Resources


@pytest.fixture
def resources(resources: Resources) -> Resources:
    settings = resources.settings.model_copy(update={"fermata_stage": "local"})
    return Resources(settings, resources.clock)
