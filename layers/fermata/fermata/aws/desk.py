"""Everything a verb needs of the outside, laid out once per process."""

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from fermata.aws.blobs import Blobs
from fermata.aws.clock import Clock
from fermata.aws.dynamo import Dynamo
from fermata.aws.faults import Faults
from fermata.aws.memory import Memory
from fermata.aws.settings import Settings
from fermata.aws.vault import Vault
from fermata.aws.workflow import Workflow

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

CLIENT_CONFIG = Config(
    retries={"mode": "standard", "total_max_attempts": 4},
    connect_timeout=3,
    read_timeout=10,
    max_pool_connections=64,
    tcp_keepalive=True,
    parameter_validation=False,  # a quarter of a call's processor time, for what the service checks anyway
)
S3_CONFIG = CLIENT_CONFIG.merge(Config(signature_version="s3v4", s3={"addressing_style": "virtual"}))
"""So that the addresses it signs are those of the bucket's own region; any other would answer with a redirection."""


@dataclass(frozen=True)
class Desk:
    """Clients are opened on first use: a door pays only for what it touches."""

    settings: Settings
    clock: Clock

    @classmethod
    def open(cls) -> "Desk":
        return cls(Settings.from_environment(), Clock())

    def _client(self, service: Any) -> Any:
        client = boto3.client(service, config=S3_CONFIG if service == "s3" else CLIENT_CONFIG)
        if self.settings.fermata_faults and self.settings.fermata_stage == "local":
            Faults(Path(self.settings.fermata_faults)).attach(client)
        return client

    @cached_property
    def tables(self) -> Dynamo:
        client: DynamoDBClient = self._client("dynamodb")
        return Dynamo(client)

    @cached_property
    def blobs(self) -> Blobs:
        return Blobs(self._client("s3"), self.settings.bucket)

    @cached_property
    def vault(self) -> Vault:
        return Vault(self._client("kms"), self.settings.key_id, self.clock.monotonic)

    @cached_property
    def memory(self) -> Memory:
        return Memory(self.clock.monotonic)

    @cached_property
    def workflow(self) -> Workflow:
        return Workflow(self._client("stepfunctions"), self.settings.state_machine_arn)


open_desk = cache(Desk.open)
"""The one desk of this process."""
