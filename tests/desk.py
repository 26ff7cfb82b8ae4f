"""A desk on moto: the real parts of fermata.aws over five tables, a bucket, a key and a state machine.

    desk = make_desk()                          # inside moto's mock_aws
    desk = make_desk(clock=TestClock(), browser_wait_seconds=1)

or import the fixtures: `from tests.desk import clock, desk  # noqa: F401 (fixtures)`.
"""

from collections.abc import Iterator
from typing import Any, Final

import boto3
import botocore.session
import pytest
from botocore.loaders import create_loader
from moto import mock_aws

from fermata.aws.clock import Clock
from fermata.aws.desk import Desk
from fermata.aws.settings import Settings

REGION: Final = "eu-central-1"
NOWHERE: Final = "http://127.0.0.1:9"
"""Where providers are until a test says where: a port that nobody listens on."""
LOADER = create_loader()
MACHINE = '{"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}}'
INDEXES = {
    "conversations": ("byUser", "gpk", "gsk"),
    "bridges": ("open", "open", "openSince"),
    "usage": ("byTime", "gpk", "gsk"),
}
PROJECTED = {"byUser": "ALL", "open": "KEYS_ONLY", "byTime": "ALL"}
TABLES = ("conversations", "bridges", "pricing", "usage", "settings")


class TestClock(Clock):
    """Stands still until it is told to go on; waiting moves it."""

    __test__ = False

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def go_on(self, seconds: float) -> None:
        self.now += seconds


def make_desk(*, clock: Clock | None = None, **settings: Any) -> Desk:
    """Create the parts in the current mock and lay them out; `settings` override fields of Settings."""
    _share_service_models()
    _create_tables()
    boto3.client("s3", region_name=REGION).create_bucket(
        Bucket="fermata", CreateBucketConfiguration={"LocationConstraint": REGION}
    )
    values: dict[str, Any] = {f"{table}_table": table for table in TABLES}
    values |= dict.fromkeys(("anthropic_url", "openai_url", "openrouter_url", "catalogue_url"), NOWHERE)
    values |= {"bucket": "fermata", "key_id": make_key(), "state_machine_arn": _create_machine()}
    return Desk(Settings(**(values | settings)), clock or Clock())


def another_process(desk: Desk, **settings: Any) -> Desk:
    """The same tables, bucket and clock, seen by a process that remembers nothing yet."""
    return Desk(desk.settings.model_copy(update=settings), desk.clock)


def environment(desk: Desk) -> dict[str, str]:
    """The environment variables a function of this desk would have."""
    return {name.upper(): str(value) for name, value in desk.settings.model_dump().items() if value != ""}


def make_key() -> str:
    return boto3.client("kms", region_name=REGION).create_key()["KeyMetadata"]["Arn"]


def _share_service_models() -> None:
    """Reading botocore's service descriptions is most of what a desk costs; once for all tests is enough."""
    session = botocore.session.get_session()
    session.register_component("data_loader", LOADER)
    boto3.setup_default_session(botocore_session=session)


def _create_machine() -> str:
    client = boto3.client("stepfunctions", region_name=REGION)
    role = "arn:aws:iam::123456789012:role/turn"
    return client.create_state_machine(name="fermata-turn", definition=MACHINE, roleArn=role)["stateMachineArn"]


def _create_tables() -> None:
    client = boto3.client("dynamodb", region_name=REGION)
    for table in TABLES:
        client.create_table(**_shape(table))


def _shape(table: str) -> Any:
    names = ["pk", "sk"]
    shape: dict[str, Any] = {"TableName": table, "BillingMode": "PAY_PER_REQUEST", "KeySchema": _keys("pk", "sk")}
    if table in INDEXES:
        index, hash_key, range_key = INDEXES[table]
        names += [hash_key, range_key]
        keys = _keys(hash_key, range_key)
        shape["GlobalSecondaryIndexes"] = [
            {"IndexName": index, "KeySchema": keys, "Projection": {"ProjectionType": PROJECTED[index]}}
        ]
    return shape | {"AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in names]}


def _keys(hash_key: str, range_key: str) -> list[dict[str, str]]:
    return [{"AttributeName": hash_key, "KeyType": "HASH"}, {"AttributeName": range_key, "KeyType": "RANGE"}]


@pytest.fixture
def clock() -> TestClock:
    return TestClock()


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch, clock: TestClock) -> Iterator[Desk]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    with mock_aws():
        yield make_desk(clock=clock)
