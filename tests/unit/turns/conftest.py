import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from fermata.aws.resources import Resources
from fermata.aws.vault import Vault
from tests.copied_clients import copy_clients
from tests.dynamodb_in_memory import answer_dynamodb_from_memory
from tests.lean_moto import make_moto_lean
from tests.resources import REGION, TestClock, amid_call, make_resources
from tests.stored_rows import clear_tables
from tests.unit.turns.stage import Stage

MakeStage = Callable[..., Stage]


@pytest.fixture(scope="module")
def shared_resources() -> Iterator[Resources]:
    """Tables, bucket, key and clients are laid out once a file; every test finds the tables empty."""
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        make_moto_lean(patch)
        answer_dynamodb_from_memory(patch)
        copy_clients(patch)
        resources = make_resources()
        one_call_at_a_time(resources.tables._client)
        yield resources


def one_call_at_a_time(client: Any) -> None:
    """DynamoDB's calls are atomic; moto's are only when no other thread is in the middle of one."""
    lock, call = threading.RLock(), client._make_api_call

    def locked(*given: Any) -> Any:
        with lock, amid_call():
            return call(*given)

    client._make_api_call = locked


@pytest.fixture
def clock() -> TestClock:
    return TestClock()


@pytest.fixture
def staged(
    shared_resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., Stage]]:
    """A stage with settings of its own, on empty tables."""
    made: list[Stage] = []

    def make(**settings: object) -> Stage:
        clear_tables()
        resources = Resources(shared_resources.settings.model_copy(update=settings), clock)
        vault = Vault(shared_resources.vault._client, resources.settings.key_id, clock.monotonic)
        resources.__dict__.update(tables=shared_resources.tables, blobs=shared_resources.blobs, vault=vault)
        made.append(Stage(resources, monkeypatch, tmp_path))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def stage(staged: MakeStage) -> Stage:
    return staged()
