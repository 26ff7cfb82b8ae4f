"""Counts the rows of the ledger as its table's stream brings them."""

from typing import Any

from fermata.aws import signals
from fermata.aws.desk import open_desk
from fermata.aws.dynamo import unpack
from fermata.usage.counting import Arrived, count


@signals.traced
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Names the first row that cannot be counted, so that only those from there on come again."""
    signals.afresh()
    changes = [record["dynamodb"] for record in event["Records"]]
    stuck = count(open_desk(), [Arrived(change["SequenceNumber"], unpack(change["NewImage"])) for change in changes])
    return {"batchItemFailures": [{"itemIdentifier": stuck}] if stuck else []}
