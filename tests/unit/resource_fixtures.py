"""A resources whose tables, bucket and key are laid out once a file; every test finds tables and bucket empty.

    from tests.unit.resource_fixtures import clock, resources, parts

Its clients are its own, like any process's. Opening a mock of AWS and its tables takes longer than most tests do.
"""

import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends
from moto.s3.models import s3_backends

from fermata.aws.resources import Resources
from tests.resources import REGION, TestClock, clock
from tests.unit.turns.conftest import parts

__all__ = ["clock", "empty_tables", "parts", "resources"]


def empty_tables() -> None:
    for table in dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables.values():
        table.items.clear()


def empty_bucket(parts: Resources) -> None:
    s3_backends[DEFAULT_ACCOUNT_ID]["global"].buckets[parts.settings.bucket].keys.clear()


@pytest.fixture
def resources(parts: Resources, clock: TestClock) -> Resources:
    empty_tables()
    empty_bucket(parts)
    return Resources(parts.settings, clock)
