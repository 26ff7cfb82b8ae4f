"""Log events, emit metrics and trace handlers with AWS Powertools. No other module imports it.

A log line is one event with keys. It never holds a prompt, a tool's data, a secret or a token. Metrics use the embedded
metric format (EMF): the tenant is a property of the line and never a dimension, because CloudWatch bills each set of
dimensions.
"""

import os
from collections.abc import Callable
from typing import Any

from aws_lambda_powertools import Logger, Tracer
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

logger = Logger(service="fermata", log_uncaught_exceptions=False, utc=True)
TRACED_LIBRARIES = ("botocore",)
"""Calls to AWS. X-Ray adds its header to each request of a traced library; nobody else may get it (decision 0247)."""
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
    "CatalogueAgeHours": MetricUnit.NoUnit,
}


def log_event(event: str, **facts: Any) -> None:
    """Log one structured line at level INFO."""
    logger.info(event, extra={"event": event, **facts})


def log_audit_event(event: str, **facts: Any) -> None:
    """Log who did what, as a line that Logs Insights finds by its key `audit`. `facts` name things, never contents."""
    logger.info(event, extra={"event": event, "audit": True, **facts})


def log_warning(event: str, **facts: Any) -> None:
    """Log one structured line at level WARNING."""
    logger.warning(event, extra={"event": event, **facts})


def log_exception(event: str, **facts: Any) -> None:
    """Log the exception that is being handled, with its traceback."""
    logger.exception(event, extra={"event": event, **facts})


def emit_metrics(values: dict[str, float], dimensions: dict[str, str] | None = None, **properties: Any) -> None:
    """Emit metrics as one EMF line.

    Args:
        values: By metric name; METRIC_UNITS lists the names.
        dimensions: Few, because CloudWatch bills every set of them.
        properties: Anything else that belongs on the line.
    """
    metrics = EphemeralMetrics(namespace="Fermata", service="fermata")  # Metrics would share its state between threads
    for name, value in values.items():
        metrics.add_metric(name=name, unit=METRIC_UNITS[name], value=value)
    for name, text in (dimensions or {}).items():
        metrics.add_dimension(name=name, value=text)
    for name, fact in (_request_keys() | properties).items():
        metrics.add_metadata(key=name, value=fact)
    metrics.flush_metrics()


def _request_keys() -> dict[str, Any]:
    keys = {**logger.get_current_keys(), **logger.thread_safe_get_current_keys()}
    return {name: keys[name] for name in ("request_id",) if name in keys}


def add_log_keys(**keys: Any) -> None:
    """Add keys (request_id, turn …) to every later line of this thread in this invocation."""
    logger.thread_safe_append_keys(**keys)


def get_thread_keys() -> dict[str, Any]:
    """Return the keys that lines of this thread have."""
    return logger.thread_safe_get_current_keys()


def reset_log_keys(**keys: Any) -> None:
    """Drop the keys of the previous invocation and start with these."""
    logger.thread_safe_clear_keys()
    add_log_keys(**keys)


def trace_handler(handler: LambdaHandler) -> LambdaHandler:
    """Wrap a Lambda handler in X-Ray tracing where a daemon runs.

    Elsewhere the X-Ray SDK is not imported: that takes a quarter of a second.
    """
    if "AWS_XRAY_DAEMON_ADDRESS" not in os.environ:
        return handler
    tracer = Tracer(service="fermata", patch_modules=TRACED_LIBRARIES)
    return tracer.capture_lambda_handler(handler, capture_response=False)
