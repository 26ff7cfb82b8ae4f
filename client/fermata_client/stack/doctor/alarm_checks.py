"""Examine the alarms of a deployed stack: whether they are raised, heard, and fed by metrics that exist."""

from collections.abc import Iterator
from typing import Any

from fermata_client.stack.doctor.account_checks import AWS_ERRORS
from fermata_client.stack.doctor.finding import Finding, describe_aws_error
from fermata_client.stack.resources import StackLocation


def check_alarms(location: StackLocation, stack: str) -> Iterator[Finding]:
    """Check each alarm of a stack."""
    cloudwatch = location.create_client("cloudwatch")
    try:
        alarms = _list_alarms(cloudwatch, stack)
        if not alarms:
            yield Finding("problem", "alarms", f"The stack {stack} has no alarm.")
            return
        silent = [alarm["AlarmName"] for alarm in alarms if not alarm.get("AlarmActions")]
        if silent:
            text = f"Nobody hears of {len(silent)} of {len(alarms)} alarms. Deploy with AlarmTopicArn, an SNS topic."
            yield Finding("note", "alarms", text)
        for alarm in alarms:
            yield _check_alarm(cloudwatch, alarm)
    except AWS_ERRORS as error:
        yield Finding("problem", "alarms", f"CloudWatch cannot be asked: {describe_aws_error(error)}.")


def _list_alarms(cloudwatch: Any, stack: str) -> list[dict[str, Any]]:
    """List the alarms that CloudFormation has named after the stack."""
    pages = cloudwatch.get_paginator("describe_alarms").paginate(AlarmNamePrefix=f"{stack}-")
    return [alarm for page in pages for alarm in page.get("MetricAlarms", [])]


def _check_alarm(cloudwatch: Any, alarm: dict[str, Any]) -> Finding:
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
