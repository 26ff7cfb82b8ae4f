"""Deliver queued events to the webhooks of tenants."""

import json
from typing import Any

from fermata.aws import observability
from fermata.aws.resources import get_resources, prepare_function
from fermata.turns.webhooks.deliver_message import deliver_webhook_message


@observability.trace_handler
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Deliver each message. One that raises is reported, so that SQS sends it again and in the end sets it aside."""
    failed_ids = []
    for record in event["Records"]:
        observability.reset_log_keys()
        try:
            deliver_webhook_message(get_resources(), json.loads(record["body"]))
        except Exception:  # noqa: BLE001 (the edge of the service: the other messages are delivered all the same)
            observability.log_exception("webhooks.message_failed")
            failed_ids.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failed_ids}


prepare_function("dynamodb", "s3", "kms", "stepfunctions")
