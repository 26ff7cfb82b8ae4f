"""Evaluate alarms of the template as CloudWatch does, on datapoints that a test has collected.

Covered is what the template uses. Anything else is an error, so that a changed alarm cannot be misread.
"""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.template.templates import Template

Dimensions = frozenset[tuple[str, str]]
COMPARISONS = {
    "GreaterThanOrEqualToThreshold": lambda value, threshold: value >= threshold,
    "GreaterThanThreshold": lambda value, threshold: value > threshold,
    "LessThanThreshold": lambda value, threshold: value < threshold,
}
STATISTICS = {"Sum": sum, "Maximum": max}


@dataclass(frozen=True)
class WatchedMetric:
    """A metric of an alarm. Values of dimensions are logical ids of the template, or texts."""

    id: str
    namespace: str
    name: str
    dimensions: Dimensions
    statistic: str
    period: int


@dataclass(frozen=True)
class Datapoint:
    namespace: str
    name: str
    dimensions: Dimensions
    at: float
    """Seconds."""
    value: float


def read_metrics(alarm: Template) -> list[WatchedMetric]:
    """Return the metrics of an alarm, whether it has one or computes with several."""
    if "MetricName" in alarm:
        return [_read_metric("watched", alarm, alarm["Statistic"], alarm["Period"])]
    stats = [(query["Id"], query["MetricStat"]) for query in alarm["Metrics"] if "MetricStat" in query]
    return [_read_metric(name, stat["Metric"], stat["Stat"], stat["Period"]) for name, stat in stats]


def _read_metric(name: str, metric: Template, statistic: str, period: int) -> WatchedMetric:
    dimensions = frozenset((one["Name"], _read_value(one["Value"])) for one in metric.get("Dimensions", []))
    return WatchedMetric(name, metric["Namespace"], metric["MetricName"], dimensions, statistic, period)


def _read_value(value: Any) -> str:
    match value:
        case str():
            return value
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), _]}:
            return name
    raise AssertionError(f"a dimension's value that is not evaluated: {value}")


def is_raised(alarm: Template, parameters: Template, datapoints: Iterable[Datapoint], now: float) -> bool:
    """Return whether the alarm is in the state ALARM at some moment until `now`, looking once a minute.

    Args:
        parameters: The template's parameters, whose defaults count.
        datapoints: From the second 0 on.
    """
    metrics = read_metrics(alarm)
    points = {metric.id: [point for point in datapoints if _is_of(metric, point)] for metric in metrics}
    period = metrics[0].period
    assert all(metric.period == period for metric in metrics)
    assert "DatapointsToAlarm" not in alarm
    span = period * alarm["EvaluationPeriods"]
    ends = range(span, int(now) + 1, 60)
    return any(
        all(
            _is_breaching(alarm, parameters, metrics, points, end - period * (number + 1), end - period * number)
            for number in range(alarm["EvaluationPeriods"])
        )
        for end in ends
    )


def _is_of(metric: WatchedMetric, point: Datapoint) -> bool:
    return (metric.namespace, metric.name, metric.dimensions) == (point.namespace, point.name, point.dimensions)


def _is_breaching(
    alarm: Template,
    parameters: Template,
    metrics: list[WatchedMetric],
    points: dict[str, list[Datapoint]],
    start: float,
    end: float,
) -> bool:
    values: dict[str, float | None] = {}
    for metric in metrics:
        inside = [point.value for point in points[metric.id] if start <= point.at < end]
        values[metric.id] = STATISTICS[metric.statistic](inside) if inside else None
    value = _compute(alarm, parameters, values)
    if value is None:
        return bool(alarm["TreatMissingData"] == "breaching")
    threshold = alarm["Threshold"]
    number = parameters[threshold["Ref"]]["Default"] if isinstance(threshold, dict) else threshold
    return bool(COMPARISONS[alarm["ComparisonOperator"]](value, float(number)))


def _compute(alarm: Template, parameters: Template, values: dict[str, float | None]) -> float | None:
    if "MetricName" in alarm:
        return values["watched"]
    (expression,) = [query["Expression"] for query in alarm["Metrics"] if "Expression" in query]
    if isinstance(expression, dict):
        expression = re.sub(r"\$\{(\w+)\}", lambda match: str(parameters[match[1]]["Default"]), expression["Fn::Sub"])
    if all(value is None for value in values.values()):
        return None  # nothing to fill a gap in
    return _evaluate(ast.parse(expression, mode="eval").body, values)


def _evaluate(node: ast.expr, values: dict[str, float | None]) -> float | None:
    """Evaluate metric math on the values of one period. A missing value makes what is computed with it missing."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name):
            return values[name]
        case ast.Call(func=ast.Name(id="SUM"), args=[ast.Call(func=ast.Name(id="METRICS"))]):
            return sum(value for value in values.values() if value is not None)
        case ast.Call(func=ast.Name(id="FILL"), args=[series, other]):
            value = _evaluate(series, values)
            return _evaluate(other, values) if value is None else value
        case ast.Call(func=ast.Name(id="IF"), args=[condition, then, other]):
            value = _evaluate(condition, values)
            return None if value is None else _evaluate(then if value else other, values)
        case ast.Compare(left=left, ops=[ast.GtE()], comparators=[right]):
            return _apply(left, right, values, lambda one, two: float(one >= two))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _apply(left, right, values, lambda one, two: one + two)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _apply(left, right, values, lambda one, two: one * two)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _apply(left, right, values, lambda one, two: one / two if two else None)
    raise AssertionError(f"metric math that is not evaluated: {ast.unparse(node)}")


def _apply(left: ast.expr, right: ast.expr, values: dict[str, float | None], operate: Any) -> float | None:
    one, two = _evaluate(left, values), _evaluate(right, values)
    result: float | None = None if one is None or two is None else operate(one, two)
    return result
