import pytest

from fermata.aws.resources import Resources
from tests.resources import TestClock, clock
from tests.stored_rows import clear_tables
from tests.unit.turns.conftest import shared_resources

__all__ = ["clock", "shared_resources"]


@pytest.fixture
def resources(shared_resources: Resources, clock: TestClock) -> Resources:
    """Resources with empty tables; the AWS mock itself is set up once for each file."""
    clear_tables()
    resources = Resources(shared_resources.settings, clock)
    resources.__dict__.update(tables=shared_resources.tables, blobs=shared_resources.blobs)
    return resources
