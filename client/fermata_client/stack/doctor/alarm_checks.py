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
        for alarm in alarms:
            yield check_alarm(cloudwatch, alarm)
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


def check_alarm(cloudwatch: Any, alarm: dict[str, Any]) -> Finding:
    """Check whether an alarm is raised, and whether its metrics have values."""
    name, metrics = alarm["AlarmName"], list(_iter_metrics(alarm))
    if alarm.get("StateValue") == "ALARM":
        text = f"{name} is raised: {alarm.get('AlarmDescription', '')} {alarm.get('StateReason', '')}".rstrip()
        return Finding("problem", "alarms", text)
    absent = [metric for metric in metrics if not _is_present(cloudwatch, metric)]
    if absent:
        names = ", ".join(f"{metric['Namespace']} {metric['MetricName']}" for metric in absent)
        text = f"{name} watches {names}, which has no value yet. That is as it should be until the first such event."
        return Finding("note", "alarms", text)
    return Finding("ok", "alarms", f"{name} is not raised, and its metric is there.")


def _iter_metrics(alarm: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the metrics of an alarm; of one with an expression, those that it computes with."""
    if "MetricName" in alarm:
        yield {name: alarm[name] for name in ("Namespace", "MetricName", "Dimensions") if name in alarm}
    for query in alarm.get("Metrics", []):
        if "MetricStat" in query:
            yield query["MetricStat"]["Metric"]


def _is_present(cloudwatch: Any, metric: dict[str, Any]) -> bool:
    found = cloudwatch.list_metrics(
        Namespace=metric["Namespace"],
        MetricName=metric["MetricName"],
        Dimensions=[{"Name": one["Name"], "Value": one["Value"]} for one in metric.get("Dimensions", [])],
    )
    return bool(found["Metrics"])
