import threading
from typing import Any

import pytest
from botocore.client import BaseClient

from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]


@pytest.fixture
def atomic_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run one AWS call at a time, so that threads interleave only between calls. The mock itself has no locks."""
    lock = threading.Lock()
    call = BaseClient._make_api_call  # type: ignore[attr-defined]  # absent from its stubs

    def one_at_a_time(self: Any, operation: str, params: Any) -> Any:
        with lock:
            return call(self, operation, params)

    monkeypatch.setattr(BaseClient, "_make_api_call", one_at_a_time)
