"""List default quotas of an AWS account in one Region, November 2026, that concurrent turns use up."""

from dataclasses import dataclass

from fermata.turns.turn import OPEN_SHARDS

PARTITION_WRITE_UNITS = 1000
"""Write units a second of one partition key of a table or index."""
NEW_ACCOUNT_CONCURRENCY = 10
"""Concurrent executions of Lambda in an account without a history of use."""

_LAMBDA = "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"
_STEP_FUNCTIONS = "https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html"
_DYNAMODB = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html"
_PARTITION = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html"
_API_GATEWAY = "https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html"
_S3 = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html"


@dataclass(frozen=True)
class Quota:
    """A limit of AWS, in units that can be in use at once or that can be taken each second."""

    key: str
    """The rate of a turn that it limits: a member of `bench.scaling_limits.TurnRates`."""
    name: str
    value: int
    """In us-east-1, us-west-2 and eu-west-1."""
    smaller_value: int
    """In the Regions that have less."""
    is_rate: bool
    remedy: str
    source: str


QUOTAS = (
    Quota("concurrency", "Lambda: concurrent executions", 1000, 1000, False, "request more", _LAMBDA),
    Quota("starts", "Step Functions: StartExecution", 300, 150, True, "request more", _STEP_FUNCTIONS),
    Quota("transitions", "Step Functions: state transitions", 5000, 800, True, "request more", _STEP_FUNCTIONS),
    Quota("answers", "Step Functions: SendTaskSuccess", 500, 300, True, "request more", _STEP_FUNCTIONS),
    Quota("heartbeats", "Step Functions: SendTaskHeartbeat", 500, 300, True, "request more", _STEP_FUNCTIONS),
    Quota(
        "executions", "Step Functions: open executions", 1_000_000, 1_000_000, False, "request more", _STEP_FUNCTIONS
    ),
    Quota("read_units", "DynamoDB: read units of a table", 40_000, 40_000, True, "request more", _DYNAMODB),
    Quota("write_units", "DynamoDB: write units of a table", 40_000, 40_000, True, "request more", _DYNAMODB),
    Quota(
        "open_marks",
        f"DynamoDB: write units of the {OPEN_SHARDS} keys of the index `open`",
        OPEN_SHARDS * PARTITION_WRITE_UNITS,
        OPEN_SHARDS * PARTITION_WRITE_UNITS,
        True,
        "fixed by AWS for each key: raise `OPEN_SHARDS`, or add a cell",
        _PARTITION,
    ),
    Quota("api_requests", "API Gateway: requests", 10_000, 2500, True, "request more", _API_GATEWAY),
    Quota("uploads", "S3: PUT of a prefix", 3500, 3500, True, "S3 splits prefixes by itself under load", _S3),
)
