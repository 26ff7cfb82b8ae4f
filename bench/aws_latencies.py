"""Simulate typical latencies of AWS within one Region. docs/numbers.md names the sources."""

import json
from pathlib import Path

from fermata.aws.fault_injection import LATENCIES_FILE

TYPICAL_LATENCY_MS: dict[str, float] = {
    "dynamodb.GetItem": 5,
    "dynamodb.BatchGetItem": 6,
    "dynamodb.Query": 6,
    "dynamodb.Scan": 6,
    "dynamodb.PutItem": 6,
    "dynamodb.UpdateItem": 6,
    "dynamodb.DeleteItem": 6,
    "dynamodb.BatchWriteItem": 10,
    "dynamodb.TransactWriteItems": 15,
    "s3.GetObject": 25,
    "s3.HeadObject": 20,
    "s3.PutObject": 30,
    "s3.DeleteObjects": 30,
    "kms.Decrypt": 10,
    "kms.Encrypt": 10,
    "stepfunctions.StartExecution": 30,
    "stepfunctions.DescribeExecution": 15,
    "stepfunctions.SendTaskSuccess": 20,
    "stepfunctions.SendTaskHeartbeat": 15,
    "states.Transition": 50,
    "lambda.Invoke": 10,
}
"""Milliseconds that a call takes at least, by its boto3 service and operation; half of it before it takes place."""


def write_latencies(directory: Path) -> Path:
    """Write the table to a new folder of fault rules in `directory`, and return its path."""
    folder = directory / "faults"
    folder.mkdir(parents=True)
    path = folder / LATENCIES_FILE
    path.write_text(json.dumps(TYPICAL_LATENCY_MS))
    return path
