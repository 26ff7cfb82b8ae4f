import base64
import copy
import functools
import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.core.responses import ActionResult
from moto.core.utils import method_names_from_class
from moto.dynamodb.models import DynamoDBBackend, dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.table import Table

from fermata.aws.resources import Resources
from tests.resources import REGION, TestClock, amid_call, make_resources
from tests.unit.turns.stage import Stage

MakeStage = Callable[..., Stage]
DATA = {"GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"}


@pytest.fixture(scope="module")
def shared_resources() -> Iterator[Resources]:
    """Tables, bucket, key and clients are laid out once a file; every test finds the tables empty."""
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        lean_transactions(patch)
        plain_responses(patch)
        resources = make_resources()
        one_call_at_a_time(resources.tables._client)
        yield resources


def lean_transactions(patch: pytest.MonkeyPatch) -> None:
    """Before every transaction moto copies whole tables; here it shares their items, and an update replaces its own."""
    update = DynamoDBBackend.update_item

    def on_a_copy(backend: Any, table_name: str, key: Any, *given: Any, **more: Any) -> Any:
        table = backend.tables[table_name]
        pk, sk = DynamoType(key[table.hash_key_attr]), DynamoType(key[table.range_key_attr])
        item = table.get_item(pk, sk)
        if item is not None:
            table.items[pk][sk] = copy.deepcopy(item)
        return update(backend, table_name, key, *given, **more)

    patch.setattr(DynamoDBBackend, "update_item", on_a_copy)
    patch.setattr(Table, "__deepcopy__", _with_the_same_items, raising=False)


def _with_the_same_items(table: Any, _memo: Any) -> Any:
    twin = copy.copy(table)
    twin.items = defaultdict(dict, {pk: dict(rows) for pk, rows in table.items.items()})
    return twin


def plain_responses(patch: pytest.MonkeyPatch) -> None:
    """What DynamoDB returns is JSON already; moto compares every member of it with the service's model.

    It also lists the methods of a class of responses at every call.
    """
    execute = ActionResult.execute_result

    def plain(action: Any, context: Any) -> Any:
        if context.operation_model.name not in DATA or not isinstance(action.result, dict):
            return execute(action, context)
        return 200, {}, json.dumps(action.result, default=lambda data: base64.b64encode(data).decode())

    patch.setattr(ActionResult, "execute_result", plain)
    patch.setattr("moto.core.responses.method_names_from_class", functools.cache(method_names_from_class))


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
        for table in dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables.values():
            table.items.clear()
        resources = Resources(shared_resources.settings.model_copy(update=settings), clock)
        resources.__dict__.update(tables=shared_resources.tables, blobs=shared_resources.blobs)
        made.append(Stage(resources, monkeypatch, tmp_path))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def stage(staged: MakeStage) -> Stage:
    return staged()
