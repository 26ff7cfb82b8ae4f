"""Hold the per-process dependencies: settings, clock, and the AWS clients, which are created on first use."""

import gc
import sys
import threading
from collections.abc import Iterable
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import boto3
from botocore.config import Config

from fermata import is_initialised_by_lambda
from fermata.aws.blob_store import BlobStore
from fermata.aws.cache import TTLCache
from fermata.aws.clock import Clock
from fermata.aws.dynamodb_client import DynamoClient
from fermata.aws.fault_injection import FaultInjector
from fermata.aws.item_responses import read_items_as_json
from fermata.aws.message_queue import MessageQueue
from fermata.aws.quick_requests import build_requests_quickly
from fermata.aws.settings import Settings
from fermata.aws.vault import Vault
from fermata.aws.vector_bucket import VectorBucket
from fermata.aws.workflow import TurnWorkflow
from fermata.domain.value_dataclass import value_dataclass

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

CLIENT_CONFIG = Config(
    retries={"mode": "standard", "total_max_attempts": 4},
    connect_timeout=3,
    read_timeout=10,
    max_pool_connections=64,
    tcp_keepalive=True,
    parameter_validation=False,  # takes a quarter of a call's CPU time, and the service validates anyway
)
S3_CONFIG = CLIENT_CONFIG.merge(Config(signature_version="s3v4", s3={"addressing_style": "virtual"}))
"""Presigned URLs name the bucket's own region; another region would answer with a redirect."""

GARBAGE_THRESHOLDS = (5_000, 20, 20)
"""After how many objects Python looks for cycles. By default, after 700, it does so in each round (decision 0602)."""
SWITCH_SECONDS = 0.0005
"""How long a thread that has an answer of AWS waits for one that computes. By default 5 ms (decision 0687)."""

ServiceName = Literal["dynamodb", "s3", "kms", "stepfunctions"]
SERVICES: tuple[ServiceName, ...] = get_args(ServiceName)
QUICK_SERVICES = ("dynamodb", "kms", "stepfunctions")
"""Services with one endpoint for all calls of a client."""
_clients_created_early: dict[str, Any] = {}
_client_creation_lock = threading.Lock()
"""boto3's session must not create clients in two threads at once, as the first requests of a process would let it."""


@value_dataclass(frozen=True)
class Resources:
    """Settings, clock and clients of one process. A Lambda handler pays only for the clients it uses."""

    settings: Settings
    clock: Clock

    def __post_init__(self) -> None:
        """Create the cache, whose values all threads share, before there is a second thread."""
        _ = self.cache

    @classmethod
    def from_environment(cls) -> "Resources":
        """Read the settings from the environment variables. Creates no client.

        Raises:
            SettingsError: A variable is missing or invalid.
        """
        return cls(Settings.from_environment(), Clock())

    def _client(self, service: Any) -> Any:
        client = _clients_created_early.pop(service, None) or _create_client(service)
        if self.settings.fermata_faults and self.settings.fermata_stage == "local":
            FaultInjector(Path(self.settings.fermata_faults)).attach(client)
        return client

    @cached_property
    def tables(self) -> DynamoClient:
        """The DynamoDB tables."""
        client: DynamoDBClient = self._client("dynamodb")
        read_items_as_json(client)
        return DynamoClient(client, self.clock.sleep)

    @cached_property
    def blobs(self) -> BlobStore:
        """The S3 bucket of large values, images and uploads."""
        return BlobStore(self._client("s3"), self.settings.bucket, self.clock)

    @cached_property
    def vault(self) -> Vault:
        """The KMS key that seals API keys and the secrets of tenants and hosts."""
        return Vault(self._client("kms"), self.settings.key_id, self.clock.monotonic)

    @cached_property
    def vector_bucket(self) -> VectorBucket:
        """The vectors of the search, where the settings name a vector bucket. Its client is created on first use."""
        return VectorBucket(self._client("s3vectors"), self.settings.vector_bucket_arn)

    @cached_property
    def cache(self) -> TTLCache:
        """The cache that all requests of this process share."""
        return TTLCache(self.clock.monotonic)

    @cached_property
    def webhook_queue(self) -> MessageQueue:
        """The SQS queue of events for webhooks. Few functions use it, so its client is created on first use."""
        return MessageQueue(self._client("sqs"), self.settings.webhook_queue_url)

    @cached_property
    def workflow(self) -> TurnWorkflow:
        """The Step Functions state machine that runs turns."""
        return TurnWorkflow(self._client("stepfunctions"), self.settings.state_machine_arn)


@cache
def get_resources() -> Resources:
    """Return the resources of this process, created from its environment variables on the first call."""
    return Resources.from_environment()


def create_clients() -> None:
    """Create the clients that nearly every invocation uses, before this process is copied for each environment.

    The first resources of a process take them. Creating a client opens no connection.
    """
    _create_missing_clients(SERVICES)


def prepare_function(*services: ServiceName) -> bool:
    """Create a function's clients while Lambda initialises it, with more processor than an invocation has.

    What was imported until then is left out of later garbage collections (decision 0284). Elsewhere nothing is done:
    tests and tools import functions without their environment (decision 0247).

    Returns:
        Whether Lambda initialises this process, so that the caller prepares what else the first invocation needs.
    """
    is_initialising = is_initialised_by_lambda()
    if is_initialising:
        _create_missing_clients(services)
        gc.freeze()
        gc.set_threshold(*GARBAGE_THRESHOLDS)
        gc.enable()
        sys.setswitchinterval(SWITCH_SECONDS)
    return is_initialising


def _create_missing_clients(services: Iterable[ServiceName]) -> None:
    for service in services:
        if service not in _clients_created_early:
            _clients_created_early[service] = _create_client(service)


def _create_client(service: Any) -> Any:
    with _client_creation_lock:
        client = boto3.client(service, config=S3_CONFIG if service == "s3" else CLIENT_CONFIG)
    if service in QUICK_SERVICES:
        build_requests_quickly(client)
    return client
