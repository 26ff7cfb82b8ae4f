"""The lines about the ledger that a deployment's logs hold: read, and written where nobody wrote them."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fermata.aws.resources import Resources

LOG_READ_BATCH_SIZE = 10_000
"""What one request for log lines brings at most."""
LOG_WRITE_BATCH_SIZE = 200
"""In one request: a megabyte of them."""
USAGE_LOG_EVENTS = ("usage", "usage.taken_back")
SETTLED_SECONDS = 900
"""By then whoever counts a row has told of it, as a rule."""
DAY_SECONDS = 86_400


def rollup_log_group(stack: str | None) -> str:
    return f"/aws/lambda/{stack}-rollup"


def read_usage_records(group: str, start: float) -> Iterator[dict[str, Any]]:
    """The lines about requests, and about ends that took something back, from an instant on, each once."""
    for event in USAGE_LOG_EVENTS:
        yield from _lines(group, start, event)


def write_missing_usage_records(resources: "Resources", tenant: str, group: str) -> int:
    """Write the lines of rows that have none, as far back as the logs go; returns how many.

    Not of the last quarter of an hour: their function may be about to tell of them, and each is to be told once.
    """
    from fermata.aws.clock import iso_from_epoch
    from fermata.usage.ledger.ledger_store import FIRST_LEDGER_MONTH
    from fermata.usage.ledger.log_lines import find_missing_log_lines

    days, now = _days_kept(group), resources.clock.time()
    first = now - days * DAY_SECONDS if days else 0.0
    lines = read_usage_records(group, first)
    found = find_missing_log_lines(
        resources,
        tenant,
        lines,
        iso_from_epoch(first) if days else FIRST_LEDGER_MONTH,
        iso_from_epoch(now - SETTLED_SECONDS),
    )
    written, stream = 0, f"rebuild/{iso_from_epoch(now)}".replace(":", ".")
    while part := list(islice(found, LOG_WRITE_BATCH_SIZE)):
        _write(group, stream, part, now, is_new=not written)
        written += len(part)
    return written


def _lines(group: str, start: float, event: str) -> Iterator[dict[str, Any]]:
    import boto3

    logs = boto3.client("logs")
    request: dict[str, Any] = {"logGroupName": group, "startTime": int(start * 1000)}
    request["filterPattern"] = f'{{ $.event = "{event}" }}'
    seen = set[str]()
    while True:
        answer = logs.filter_log_events(**request)
        for found in answer["events"]:
            name = found.get("eventId") or f"{found['timestamp']} {found['message']}"  # the local cloud gives no ids
            is_new = name not in seen
            seen.add(name)
            if is_new and (line := _line(found["message"])).get("event") == event:
                yield line
        if answer.get("nextToken"):
            request["nextToken"] = answer["nextToken"]
        elif len(answer["events"]) == LOG_READ_BATCH_SIZE and answer["events"][-1]["timestamp"] > request["startTime"]:
            request["startTime"] = answer["events"][-1]["timestamp"]
            request.pop("nextToken", None)
        else:
            return


def _line(message: str) -> dict[str, Any]:
    """What the platform itself writes is no JSON, or says nothing of usage."""
    return dict(json.loads(message)) if '"usage' in message else {}


def _days_kept(group: str) -> int:
    """0: for ever."""
    import boto3

    found = boto3.client("logs").describe_log_groups(logGroupNamePrefix=group)["logGroups"]
    return next((int(one.get("retentionInDays") or 0) for one in found if one["logGroupName"] == group), 0)


def _write(group: str, stream: str, lines: list[dict[str, Any]], now: float, *, is_new: bool) -> None:
    """As the functions write them, at the time of now: logs take nothing that is two weeks old."""
    import boto3

    logs = boto3.client("logs")
    if is_new:
        logs.create_log_stream(logGroupName=group, logStreamName=stream)
    told = [{"level": "INFO", "message": line["event"], "service": "fermata", **line} for line in lines]
    events = [{"timestamp": int(now * 1000), "message": json.dumps(one, default=str)} for one in told]
    logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)
