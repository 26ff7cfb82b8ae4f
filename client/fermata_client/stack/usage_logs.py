"""Read the usage records in a deployment's logs, and write those that are missing.

The rollup function logs one record for each ledger row that it counts (decision 0057).
"""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fermata.aws.resources import Resources

UsageRecord = dict[str, Any]

LOG_READ_BATCH_SIZE = 10_000
"""The most log events that one FilterLogEvents returns."""
LOG_WRITE_BATCH_SIZE = 200
"""Log events of one PutLogEvents, which takes a megabyte."""
USAGE_LOG_EVENTS = ("usage", "usage.taken_back")
SETTLED_SECONDS = 900
"""Age of a ledger row from which its record is missing, and not just late."""
DAY_SECONDS = 86_400


def rollup_log_group(stack: str | None) -> str:
    return f"/aws/lambda/{stack}-rollup"


def read_usage_records(logs: Any, log_group: str, start: float) -> Iterator[UsageRecord]:
    """Yield the records of requests and of reversed usage since an epoch time in seconds, each record once.

    Args:
        logs: A client of CloudWatch Logs.
        log_group: The log group of the rollup function.
        start: The time of the first.
    """
    for event_name in USAGE_LOG_EVENTS:
        yield from _read_records(logs, log_group, start, event_name)


def write_missing_usage_records(resources: "Resources", tenant: str, logs: Any, log_group: str) -> int:
    """Write the records of ledger rows that have none, as far back as the log group keeps its events.

    Rows younger than `SETTLED_SECONDS` are left out: their function may still log them, and each is logged once.

    Returns:
        The number of records written.
    """
    from fermata.aws.clock import iso_from_epoch
    from fermata.usage.ledger.ledger_store import FIRST_LEDGER_MONTH
    from fermata.usage.ledger.log_lines import find_missing_log_lines

    now = resources.clock.time()
    retention_days = _read_retention_days(logs, log_group)
    start = now - retention_days * DAY_SECONDS if retention_days else 0.0
    missing = find_missing_log_lines(
        resources,
        tenant,
        read_usage_records(logs, log_group, start),
        iso_from_epoch(start) if retention_days else FIRST_LEDGER_MONTH,
        iso_from_epoch(now - SETTLED_SECONDS),
    )
    log_stream = f"rebuild/{iso_from_epoch(now)}".replace(":", ".")
    return _write_records(logs, log_group, log_stream, missing, now)


def _read_records(logs: Any, log_group: str, start: float, event_name: str) -> Iterator[UsageRecord]:
    seen_ids = set[str]()
    for log_event in _iter_log_events(logs, log_group, start, event_name):
        # the local cloud gives no event ids
        event_id = log_event.get("eventId") or f"{log_event['timestamp']} {log_event['message']}"
        if event_id in seen_ids:
            continue
        seen_ids.add(event_id)
        record = _parse_record(log_event["message"])
        if record.get("event") == event_name:
            yield record


def _iter_log_events(logs: Any, log_group: str, start: float, event_name: str) -> Iterator[dict[str, Any]]:
    """Yield log events that match; some twice, where a full page without a token is continued by its last time."""
    request: dict[str, Any] = {
        "logGroupName": log_group,
        "startTime": int(start * 1000),
        "filterPattern": f'{{ $.event = "{event_name}" }}',
    }
    while True:
        response = logs.filter_log_events(**request)
        log_events = response["events"]
        yield from log_events
        if response.get("nextToken"):
            request["nextToken"] = response["nextToken"]
        elif len(log_events) == LOG_READ_BATCH_SIZE and log_events[-1]["timestamp"] > request["startTime"]:
            request["startTime"] = log_events[-1]["timestamp"]
            request.pop("nextToken", None)
        else:
            return


def _parse_record(message: str) -> UsageRecord:
    """Parse a log message; empty for those of the Lambda platform, which are not JSON."""
    return dict(json.loads(message)) if '"usage' in message else {}


def _read_retention_days(logs: Any, log_group: str) -> int:
    """Return how long the log group keeps its events; 0 for ever."""
    groups = logs.describe_log_groups(logGroupNamePrefix=log_group)["logGroups"]
    return next((int(group.get("retentionInDays") or 0) for group in groups if group["logGroupName"] == log_group), 0)


def _write_records(logs: Any, log_group: str, log_stream: str, records: Iterable[UsageRecord], now: float) -> int:
    """Write records in the form that the functions log, and return how many.

    Their time is now: CloudWatch Logs takes no event that is two weeks old.
    """
    remaining = iter(records)
    count = 0
    while batch := list(islice(remaining, LOG_WRITE_BATCH_SIZE)):
        if not count:
            logs.create_log_stream(logGroupName=log_group, logStreamName=log_stream)
        messages = [{"level": "INFO", "message": record["event"], "service": "fermata", **record} for record in batch]
        events = [{"timestamp": int(now * 1000), "message": json.dumps(message, default=str)} for message in messages]
        logs.put_log_events(logGroupName=log_group, logStreamName=log_stream, logEvents=events)
        count += len(batch)
    return count
