"""Counts the rows of the ledger as its table's stream brings them."""

from typing import Any

from fermata.aws import observability
from fermata.aws.dynamodb import deserialize_item
from fermata.aws.resources import get_resources
from fermata.usage.rollups.stream_consumer import LedgerStreamRecord, count_stream_records


@observability.trace_handler
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Names the first row that cannot be counted, so that only those from there on come again."""
    observability.reset_log_keys()
    changes = [record["dynamodb"] for record in event["Records"]]
    stuck = count_stream_records(
        get_resources(),
        [LedgerStreamRecord(change["SequenceNumber"], deserialize_item(change["NewImage"])) for change in changes],
    )
    return {"batchItemFailures": [{"itemIdentifier": stuck}] if stuck else []}
