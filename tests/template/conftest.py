"""The template for all tests. Reading and transforming it take a second or two each, so it is done once."""

import pytest

from tests.template import templates
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]


@pytest.fixture(scope="session")
def source() -> templates.Template:
    """The template as it is written, for a stack with tables of its own."""
    written = templates.read_template(templates.TEMPLATE.read_text())
    return dict(templates.resolve_conditions(written, templates.OWN_STORAGE))


@pytest.fixture(scope="session")
def transformed() -> templates.Template:
    """What SAM makes of the template."""
    return templates.transform_template(templates.TEMPLATE.read_text())


@pytest.fixture(scope="session")
def deployed(transformed: templates.Template) -> templates.Template:
    """What SAM makes of the template, for a stack with tables of its own."""
    return dict(templates.resolve_conditions(transformed, templates.OWN_STORAGE))


@pytest.fixture(scope="session")
def machine() -> templates.Template:
    return templates.read_state_machine()
