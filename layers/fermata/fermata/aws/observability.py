"""Logs, metrics and traces. The only file that names the libraries behind them.

A log line is one fact with keys: never a prompt, a tool's data, a secret or a token. Metrics are EMF; the tenant
is a property of the line, never a dimension (contracts: each dimension set is billed).
"""

import os
from collections.abc import Callable
from typing import Any

from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.metrics import MetricUnit

logger = Logger(service="fermata", log_uncaught_exceptions=False, utc=True)
LambdaHandler = Callable[[dict[str, Any], Any], Any]

METRIC_UNITS = {
    "TurnsStarted": MetricUnit.Count,
    "TurnsEnded": MetricUnit.Count,
    "Rounds": MetricUnit.Count,
    "Errors": MetricUnit.Count,
    "PromptTokens": MetricUnit.Count,
    "CompletionTokens": MetricUnit.Count,
    "ProviderRequests": MetricUnit.Count,
    "CostUsd": MetricUnit.NoUnit,
    "TimeToFirstText": MetricUnit.Milliseconds,
}


def log_event(event: str, **facts: Any) -> None:
    """One structured line."""
    logger.info(event, extra={"event": event, **facts})


def log_audit_event(event: str, **facts: Any) -> None:
    """Who did what: one line of the audit, which Logs Insights finds by `audit`. Names of things, never contents."""
    logger.info(event, extra={"event": event, "audit": True, **facts})


def log_warning(event: str, **facts: Any) -> None:
    logger.warning(event, extra={"event": event, **facts})


def log_exception(event: str, **facts: Any) -> None:
    """Log the exception being handled, whole."""
    logger.exception(event, extra={"event": event, **facts})


def emit_metrics(values: dict[str, float], dimensions: dict[str, str] | None = None, **properties: Any) -> None:
    """Emit metrics as one EMF line: names from UNITS, few dimensions, anything else as a property."""
    metrics = Metrics(namespace="Fermata", service="fermata")
    for name, value in values.items():
        metrics.add_metric(name=name, unit=METRIC_UNITS[name], value=value)
    for name, text in (dimensions or {}).items():
        metrics.add_dimension(name=name, value=text)
    for name, fact in (_current_request() | properties).items():
        metrics.add_metadata(key=name, value=fact)
    metrics.flush_metrics()


def _current_request() -> dict[str, Any]:
    keys = {**logger.get_current_keys(), **logger.thread_safe_get_current_keys()}
    return {name: keys[name] for name in ("request_id",) if name in keys}


def add_log_keys(**keys: Any) -> None:
    """Keys that every following line of this invocation carries (request_id, turn …); each thread has its own."""
    logger.thread_safe_append_keys(**keys)


def reset_log_keys(**keys: Any) -> None:
    """A new invocation begins: forget the keys of the one before."""
    logger.thread_safe_clear_keys()
    add_log_keys(**keys)


def trace_handler(handler: LambdaHandler) -> LambdaHandler:
    """Trace a Lambda handler. Where no X-Ray daemon is, its SDK (a quarter of a second to import) is left alone."""
    if "AWS_XRAY_DAEMON_ADDRESS" not in os.environ:
        return handler
    return Tracer(service="fermata").capture_lambda_handler(handler, capture_response=False)
