"""Create Resources on moto: the real fermata.aws on six tables, a bucket, a key and a state machine.

    resources = make_resources()                          # inside moto's mock_aws
    resources = make_resources(clock=TestClock(), browser_wait_seconds=1)

or import the fixtures: `from tests.resources import clock, resources  # noqa: F401 (fixtures)`.
"""

import contextlib
import functools
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import boto3
import botocore.session
import pytest
from botocore.loaders import create_loader
from moto import mock_aws

from fermata.aws.clock import Clock, JoinableThread, MapArgument, MapResult
from fermata.aws.resources import Resources
from fermata.aws.settings import Settings
from fermata.drivers.registry import list_providers

REGION: Final = "eu-central-1"
UNREACHABLE_URL: Final = "http://127.0.0.1:9"
"""The default address of providers: a port on which nothing listens."""
BOTOCORE_LOADER = create_loader()
STATE_MACHINE_DEFINITION = '{"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}}'
INDEX_KEYS = {
    "conversations": ("byUser", "gpk", "gsk"),
    "bridges": ("open", "open", "openSince"),
    "usage": ("byTime", "gpk", "gsk"),
    "content": ("byDue", "gpk", "gsk"),
}
INDEX_PROJECTIONS = {"byUser": "ALL", "open": "KEYS_ONLY", "byTime": "ALL", "byDue": "KEYS_ONLY"}
TABLE_NAMES = ("conversations", "bridges", "pricing", "usage", "settings", "content")


_calls = threading.local()


@contextlib.contextmanager
def amid_call() -> Iterator[None]:
    """Mark this thread as one that is in the middle of an AWS call, for which calls of other threads wait."""
    _calls.depth = getattr(_calls, "depth", 0) + 1
    try:
        yield
    finally:
        _calls.depth -= 1


class WaitingThread:
    """A thread that never gets its turn."""

    def join(self, timeout: float | None = None) -> None: ...


class TestClock(Clock):
    """A clock that only `advance` and `sleep` move.

    Its threads are real and wait in real time. With `runs_threads` off they never get their turn, so that a test that
    orders a fault at a call does not meet it in a thread on a busy machine.
    """

    __test__ = False

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now
        self.runs_threads = True
        self._moving = threading.Lock()
        """Threads that move it at the same time lose no second."""

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        with self._moving:
            self.now += seconds

    def start_thread(self, target: Callable[[], object], name: str) -> JoinableThread:
        return super().start_thread(target, name) if self.runs_threads else WaitingThread()

    def map_in_threads(
        self, function: Callable[[MapArgument], MapResult], arguments: Sequence[MapArgument], max_threads: int
    ) -> list[MapResult]:
        """Call a function for each argument: in threads, but here for what a test does in the middle of an AWS call."""
        if getattr(_calls, "depth", 0):
            return [function(argument) for argument in arguments]
        return super().map_in_threads(function, arguments, max_threads)

    def start_side_thread(self, target: Callable[[], object], name: str) -> JoinableThread:
        """Start a thread that is waited for.

        With `runs_threads` off, run it here to its end. So is what a test does in the middle of an AWS call.
        """
        if self.runs_threads and not getattr(_calls, "depth", 0):
            return super().start_thread(target, name)
        target()
        return WaitingThread()


def make_resources(*, clock: Clock | None = None, **settings: Any) -> Resources:
    """Create the AWS resources in the current mock. `settings` override fields of Settings."""
    _share_service_models()
    _create_tables()
    _get_client("s3").create_bucket(Bucket="fermata", CreateBucketConfiguration={"LocationConstraint": REGION})
    values: dict[str, Any] = {f"{table}_table": table for table in TABLE_NAMES}
    values |= {"provider_urls": build_provider_urls(UNREACHABLE_URL), "catalogue_url": UNREACHABLE_URL}
    values |= {"bucket": "fermata", "key_id": create_kms_key(), "state_machine_arn": _create_state_machine()}
    return Resources(Settings(**(values | settings)), clock or Clock())


def build_provider_urls(url: str) -> str:
    """The setting `provider_urls` that replaces every default URL by `url`."""
    return json.dumps({provider.name: url for provider in list_providers() if provider.default_url})


def resources_of_new_process(resources: Resources, **settings: Any) -> Resources:
    """Return the same AWS resources and clock as a new process sees them, with empty caches."""
    return Resources(resources.settings.model_copy(update=settings), resources.clock)


def environment_from_resources(resources: Resources) -> dict[str, str]:
    """Return the environment variables of a Lambda function with these resources."""
    return {name.upper(): str(value) for name, value in resources.settings.model_dump().items() if value != ""}


@functools.cache
def _get_client(service: Any) -> Any:
    """Create one client for all tests, because creating it takes longer than what it does here."""
    return boto3.client(service, region_name=REGION)


def create_kms_key() -> str:
    return _get_client("kms").create_key()["KeyMetadata"]["Arn"]


def _share_service_models() -> None:
    """Load botocore's service descriptions once for all tests: that takes most of the time of creating resources."""
    session = botocore.session.get_session()
    session.register_component("data_loader", BOTOCORE_LOADER)
    boto3.setup_default_session(botocore_session=session)


def _create_state_machine() -> str:
    client = _get_client("stepfunctions")
    role = "arn:aws:iam::123456789012:role/turn"
    return client.create_state_machine(name="fermata-turn", definition=STATE_MACHINE_DEFINITION, roleArn=role)[
        "stateMachineArn"
    ]


def _create_tables() -> None:
    client = _get_client("dynamodb")
    for table in TABLE_NAMES:
        client.create_table(**_table_definition(table))


def _table_definition(table: str) -> Any:
    attributes = ["pk", "sk"]
    definition: dict[str, Any] = {
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _key_schema("pk", "sk"),
    }
    if table in INDEX_KEYS:
        index, hash_key, range_key = INDEX_KEYS[table]
        attributes += [hash_key, range_key]
        index_keys = _key_schema(hash_key, range_key)
        definition["GlobalSecondaryIndexes"] = [
            {"IndexName": index, "KeySchema": index_keys, "Projection": {"ProjectionType": INDEX_PROJECTIONS[index]}}
        ]
    return definition | {"AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in attributes]}


def _key_schema(hash_key: str, range_key: str) -> list[dict[str, str]]:
    return [{"AttributeName": hash_key, "KeyType": "HASH"}, {"AttributeName": range_key, "KeyType": "RANGE"}]


@pytest.fixture
def clock() -> TestClock:
    return TestClock()


@pytest.fixture
def resources(monkeypatch: pytest.MonkeyPatch, clock: TestClock) -> Iterator[Resources]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    with mock_aws():
        yield make_resources(clock=clock)
