import pytest

from tests.unit.privacy.saved_tenant import SavedTenant
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]


@pytest.fixture(scope="module")
def saved_tenant() -> SavedTenant:
    return SavedTenant()
