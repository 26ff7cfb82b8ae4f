"""Deliver queued events to the webhooks of tenants."""

from typing import Any

from fermata.aws import observability
from fermata.aws.resources import get_resources, prepare_function
from fermata.turns.webhooks.deliver_message import deliver_queue_record


@observability.trace_handler
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Deliver each message. One that fails is reported, so that SQS sends it again and in the end sets it aside."""
    failed_ids = []
    for record in event["Records"]:
        observability.reset_log_keys()
        if not deliver_queue_record(get_resources(), record):
            failed_ids.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failed_ids}


prepare_function("dynamodb", "s3", "kms", "stepfunctions")
