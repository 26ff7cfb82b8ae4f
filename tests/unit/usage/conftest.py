import threading
from typing import Any

import pytest
from botocore.client import BaseClient
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from fermata.aws.desk import Desk
from tests.desk import REGION, TestClock, clock
from tests.unit.turns.conftest import parts

__all__ = ["clock", "parts"]


@pytest.fixture
def desk(parts: Desk, clock: TestClock) -> Desk:
    """With empty tables, and clients of its own like any process; what they talk to is laid out once a file."""
    empty_tables()
    return Desk(parts.settings, clock)


def empty_tables() -> None:
    """The mock copies whole tables in every transaction, so an example begins without those of the one before."""
    for table in dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables.values():
        table.items.clear()


@pytest.fixture
def atomic_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads interleave between their calls, never within one, as with the real tables. The mock has no locks."""
    lock, call = threading.Lock(), BaseClient._make_api_call  # type: ignore[attr-defined]  # absent from its stubs

    def one_at_a_time(self: Any, operation: str, params: Any) -> Any:
        with lock:
            return call(self, operation, params)

    monkeypatch.setattr(BaseClient, "_make_api_call", one_at_a_time)
