import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from fermata.aws.desk import Desk
from tests.desk import REGION, TestClock, make_desk
from tests.unit.turns.stage import Stage

MakeStage = Callable[..., Stage]


@pytest.fixture(scope="module")
def parts() -> Iterator[Desk]:
    """Tables, bucket, key and clients are laid out once a file; every test finds the tables empty."""
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        desk = make_desk()
        one_call_at_a_time(desk.tables._client)
        yield desk


def one_call_at_a_time(client: Any) -> None:
    """DynamoDB's calls are atomic; moto's are only when no other thread is in the middle of one."""
    lock, call = threading.RLock(), client._make_api_call

    def locked(*given: Any) -> Any:
        with lock:
            return call(*given)

    client._make_api_call = locked


@pytest.fixture
def clock() -> TestClock:
    return TestClock()


@pytest.fixture
def staged(
    parts: Desk, clock: TestClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., Stage]]:
    """A stage with settings of its own."""
    for table in dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables.values():
        table.items.clear()
    made: list[Stage] = []

    def make(**settings: object) -> Stage:
        desk = Desk(parts.settings.model_copy(update=settings), clock)
        desk.__dict__.update(tables=parts.tables, blobs=parts.blobs)
        made.append(Stage(desk, monkeypatch, tmp_path))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def stage(staged: MakeStage) -> Stage:
    return staged()
