"""Examine the alarms of a deployed stack: whether they are raised, heard, and fed by metrics that exist."""

from collections.abc import Iterator
from typing import Any

from fermata_client.stack.doctor.finding import Finding, describe_aws_error, get_aws_errors
from fermata_client.stack.resources import StackLocation

MAX_NAMED_ALARMS = 100
"""The limit of DescribeAlarms."""


def check_alarms(location: StackLocation, stack: str) -> Iterator[Finding]:
    """Check each alarm of a stack."""
    cloudwatch = location.create_client("cloudwatch")
    try:
        names = _list_alarm_names(location, stack)
        alarms = _describe_alarms(cloudwatch, names)
        if not names:
            yield Finding("problem", "alarms", f"The stack {stack} has no alarm.")
            return
        silent = [alarm["AlarmName"] for alarm in alarms if not alarm.get("AlarmActions")]
        if silent:
            text = f"Nobody hears of {len(silent)} of {len(alarms)} alarms. Deploy with AlarmTopicArn, an SNS topic."
            yield Finding("note", "alarms", text)
        yield from summarize_alarms(cloudwatch, alarms)
        for name in sorted(set(names) - {alarm["AlarmName"] for alarm in alarms}):
            yield Finding("note", "alarms", f"{name} belongs to the stack, but CloudWatch does not list it.")
    except get_aws_errors() as error:
        yield Finding("problem", "alarms", f"CloudWatch cannot be asked: {describe_aws_error(error)}.")


def _list_alarm_names(location: StackLocation, stack: str) -> list[str]:
    """List the alarms that the stack has. Their names begin with its name, as those of `<stack>-dev` would too."""
    pages = location.create_client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack)
    return [
        resource["PhysicalResourceId"]
        for page in pages
        for resource in page["StackResourceSummaries"]
        if resource["ResourceType"] == "AWS::CloudWatch::Alarm" and resource.get("PhysicalResourceId")
    ]


def _describe_alarms(cloudwatch: Any, names: list[str]) -> list[dict[str, Any]]:
    batches = [names[start : start + MAX_NAMED_ALARMS] for start in range(0, len(names), MAX_NAMED_ALARMS)]
    return [
        alarm
        for batch in batches
        for alarm in cloudwatch.describe_alarms(AlarmNames=batch, MaxRecords=MAX_NAMED_ALARMS)["MetricAlarms"]
    ]


def summarize_alarms(cloudwatch: Any, alarms: list[dict[str, Any]]) -> Iterator[Finding]:
    """Say of each alarm that is raised what it says, and of all others together whether their metrics have values."""
    raised = [alarm for alarm in alarms if alarm.get("StateValue") == "ALARM"]
    for alarm in raised:
        text = f"{alarm['AlarmName']} is raised: {alarm.get('AlarmDescription', '')} {alarm.get('StateReason', '')}"
        yield Finding("problem", "alarms", text.rstrip())
    absent = {alarm["AlarmName"]: _list_absent(cloudwatch, alarm) for alarm in alarms if alarm not in raised}
    without = [f"{name} ({', '.join(metrics)})" for name, metrics in absent.items() if metrics]
    if len(without) < len(absent):
        text = f"{len(absent) - len(without)} of {len(alarms)} are not raised, and have metrics with values."
        yield Finding("ok", "alarms", text)
    if without:
        text = (
            f"{len(without)} of {len(alarms)} watch metrics without a value in the last two weeks: "
            f"{'; '.join(without)}. That is as it should be until the first such event."
        )
        yield Finding("note", "alarms", text)


def _list_absent(cloudwatch: Any, alarm: dict[str, Any]) -> list[str]:
    """Return the names of the alarm's metrics that have no values."""
    absent = [metric for metric in _iter_metrics(alarm) if not _is_present(cloudwatch, metric)]
    return [f"{metric['Namespace']} {metric['MetricName']}" for metric in absent]


def _iter_metrics(alarm: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the metrics of an alarm; of one with an expression, those that it computes with."""
    if "MetricName" in alarm:
        yield {name: alarm[name] for name in ("Namespace", "MetricName", "Dimensions") if name in alarm}
    for query in alarm.get("Metrics", []):
        if "MetricStat" in query:
            yield query["MetricStat"]["Metric"]


def _is_present(cloudwatch: Any, metric: dict[str, Any]) -> bool:
    """Return whether CloudWatch has the metric with exactly these dimensions, as an alarm reads it."""
    wanted = [{"Name": one["Name"], "Value": one["Value"]} for one in metric.get("Dimensions", [])]
    names = {"Namespace": metric["Namespace"], "MetricName": metric["MetricName"]}
    page = cloudwatch.list_metrics(**names, Dimensions=wanted)
    while True:
        if any(len(found.get("Dimensions", [])) == len(wanted) for found in page["Metrics"]):
            return True
        if not page.get("NextToken"):
            return False
        page = cloudwatch.list_metrics(**names, Dimensions=wanted, NextToken=page["NextToken"])
