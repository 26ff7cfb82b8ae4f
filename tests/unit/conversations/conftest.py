import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from fermata.aws.resources import Resources
from tests.resources import REGION, TestClock, clock
from tests.unit.turns.conftest import shared_resources

__all__ = ["clock", "shared_resources"]


@pytest.fixture
def resources(shared_resources: Resources, clock: TestClock) -> Resources:
    """Resources with empty tables; the AWS mock itself is set up once for each file."""
    for table in dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables.values():
        table.items.clear()
    resources = Resources(shared_resources.settings, clock)
    resources.__dict__.update(tables=shared_resources.tables, blobs=shared_resources.blobs)
    return resources
