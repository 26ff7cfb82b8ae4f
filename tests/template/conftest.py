"""The template for all tests. Reading and transforming it take a second or two each, so it is done once."""

import pytest

from tests.template import templates
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]


@pytest.fixture(scope="session")
def source() -> templates.Template:
    return templates.read_template(templates.TEMPLATE.read_text())


@pytest.fixture(scope="session")
def deployed() -> templates.Template:
    return templates.transform_template(templates.TEMPLATE.read_text())


@pytest.fixture(scope="session")
def machine() -> templates.Template:
    return templates.read_state_machine()
