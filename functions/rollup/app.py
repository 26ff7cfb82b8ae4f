"""Count new ledger rows from the stream of the usage table."""

from typing import Any

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import deserialize_item
from fermata.aws.resources import get_resources, prepare_function
from fermata.usage.rollups.stream_consumer import LedgerStreamRecord, count_stream_records


@observability.trace_handler
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Report the first row that cannot be counted, so that Lambda retries only from there on."""
    observability.reset_log_keys()
    changes = [record["dynamodb"] for record in event["Records"]]
    records = [LedgerStreamRecord(change["SequenceNumber"], deserialize_item(change["NewImage"])) for change in changes]
    failed_sequence_number = count_stream_records(get_resources(), records)
    return {"batchItemFailures": [{"itemIdentifier": failed_sequence_number}] if failed_sequence_number else []}


prepare_function("dynamodb")
