"""Fixtures of Resources whose AWS resources are created once per file. Every test finds tables and bucket empty.

    from tests.unit.resource_fixtures import clock, resources, shared_resources

Every test has clients of its own, like any process. Creating a mock of AWS and its tables takes longer than most tests.
"""

import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from fermata.aws.resources import Resources
from tests.resources import TestClock, clock
from tests.stored_rows import clear_tables
from tests.unit.turns.conftest import shared_resources

__all__ = ["clock", "resources", "shared_resources"]


def empty_bucket(shared_resources: Resources) -> None:
    s3_backends[DEFAULT_ACCOUNT_ID]["global"].buckets[shared_resources.settings.bucket].keys.clear()


@pytest.fixture
def resources(shared_resources: Resources, clock: TestClock) -> Resources:
    clear_tables()
    empty_bucket(shared_resources)
    return Resources(shared_resources.settings, clock)
