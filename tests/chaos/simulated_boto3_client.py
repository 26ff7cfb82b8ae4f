"""A boto3 client of one simulated process: latency, switch points, faults, and the retries of the SDK.

Retries follow botocore's standard mode: four attempts in all for connection errors, throttling and 5xx.
"""

import functools
import re
from collections.abc import Callable
from typing import Any, NoReturn

from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from tests.chaos.fault_rules import LATE_COPY_SECONDS, STALE_INDEX_SECONDS, FaultPlan
from tests.chaos.memory_aws.errors import aws_error
from tests.chaos.scheduler import Process, Scheduler

MAX_ATTEMPTS = 4
SLOW_CALL_RATE = 0.03
SLOW_CALL_FACTOR = 30
SDK_TIMEOUT_SECONDS = 10.0
LATE_RESPONSE_SECONDS = 8.0
"""Shorter than the SDK waits."""
TORN_BATCH_SECONDS = (0.02, 3.0)
LATENCY_SECONDS = {
    "dynamodb": (0.002, 0.03),
    "s3": (0.01, 0.08),
    "kms": (0.005, 0.02),
    "sqs": (0.005, 0.03),
    "stepfunctions": (0.01, 0.08),
}
RETRIED_CODES = {
    "InternalServerError",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TransactionInProgressException",
}
THROTTLE_CODES = {
    "dynamodb": "ProvisionedThroughputExceededException",
    "s3": "SlowDown",
    "kms": "ThrottlingException",
    "sqs": "ThrottlingException",
    "stepfunctions": "ThrottlingException",
}
PASSED_THROUGH = {"generate_presigned_url"}


class SimulatedBoto3Client:
    """Calls one in-memory service in the name of one process."""

    def __init__(self, service: str, backend: Any, scheduler: Scheduler, process: Process, faults: FaultPlan) -> None:
        self._service, self._backend, self._scheduler = service, backend, scheduler
        self._process, self._faults = process, faults

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._backend, name)
        if name in PASSED_THROUGH:
            return method
        if name == "get_paginator":
            return lambda operation: SimulatedPaginator(self, method(operation))
        return lambda **request: self.call(name, method, request)

    def call(self, name: str, method: Callable[..., Any], request: dict[str, Any]) -> Any:
        label = f"{self._service}.{operation_name(name)}"
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                return self._attempt(label, method, request)
            except (ConnectionClosedError, ReadTimeoutError):
                if attempt == MAX_ATTEMPTS:
                    raise
            except ClientError as error:
                if attempt == MAX_ATTEMPTS or error.response["Error"]["Code"] not in RETRIED_CODES:
                    raise
            self._scheduler.switch("sdk-retry", self._scheduler.random.uniform(0, min(2**attempt, 20)))
        raise AssertionError("unreachable")

    def _attempt(self, label: str, method: Callable[..., Any], request: dict[str, Any]) -> Any:
        low, high = LATENCY_SECONDS[self._service]
        latency = self._scheduler.random.uniform(low, high)
        if self._scheduler.random.random() < SLOW_CALL_RATE:
            latency *= SLOW_CALL_FACTOR
        fault = self._faults.draw(label, self._process.name)
        if fault in ("kill before", "freeze before"):
            self._process.strike(self._scheduler, fault)
        self._scheduler.switch(f"before {label}", latency / 2)
        self._refuse(label, fault)
        if fault in ("late copy", "lands late"):
            self._send_later(label, method, request)
        if fault == "lands late":
            self._lose_request(label)
        result = self._run(method, self._read_stale(request))
        if fault in ("kill after", "freeze after"):
            self._process.strike(self._scheduler, fault)
        self._scheduler.switch(f"after {label}", latency / 2 if fault != "response late" else LATE_RESPONSE_SECONDS)
        if fault == "response lost":
            raise ConnectionClosedError(endpoint_url=label)
        if fault == "error though it ran":
            raise aws_error("InternalServerError", label, status=500)
        return result

    def _refuse(self, label: str, fault: str | None) -> None:
        if fault == "request lost":
            self._lose_request(label)
        if fault == "denied":
            raise aws_error("AccessDeniedException", label)
        if fault == "throttle":
            raise aws_error(THROTTLE_CODES[self._service], label)
        if fault == "conflict":
            raise aws_error(
                "TransactionCanceledException", label, CancellationReasons=[{"Code": "TransactionConflict"}]
            )

    def _lose_request(self, label: str) -> NoReturn:
        self._scheduler.switch("time-out", SDK_TIMEOUT_SECONDS)
        raise ReadTimeoutError(endpoint_url=label)

    def _run(self, method: Callable[..., Any], request: dict[str, Any]) -> Any:
        """Call the service. A torn batch reads some of its rows a while after the others."""
        if method.__name__ != "batch_get_item" or self._faults.draw("batch", self._process.name) != "torn batch":
            return method(**request)
        halves: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        for table, wanted in request["RequestItems"].items():
            for key in sorted(wanted["Keys"], key=str):  # the service gathers them in a set
                half = self._scheduler.random.choice(halves)
                half.setdefault(table, wanted | {"Keys": []})["Keys"].append(key)
        responses: dict[str, Any] = {table: [] for table in request["RequestItems"]}
        for half in filter(None, halves):
            for table, items in method(**request | {"RequestItems": half})["Responses"].items():
                responses[table] += items
            self._scheduler.switch("torn batch", self._scheduler.random.uniform(*TORN_BATCH_SECONDS))
        return {"Responses": responses, "UnprocessedKeys": {}}

    def _read_stale(self, request: dict[str, Any]) -> dict[str, Any]:
        """Let the read of an index return what the index had some seconds ago."""
        if "IndexName" not in request or self._faults.draw("index", self._process.name) != "stale index":
            return request
        return request | {"AsOf": self._scheduler.now - self._scheduler.random.uniform(*STALE_INDEX_SECONDS)}

    def _send_later(self, label: str, method: Callable[..., Any], request: dict[str, Any]) -> None:
        """The network delivers a copy later, whatever has become of the process that sent it."""
        delay = self._scheduler.random.uniform(*LATE_COPY_SECONDS)

        def deliver() -> None:
            self._scheduler.last_landing = self._scheduler.now
            try:
                method(**request)
            except ClientError:
                return  # nobody waits for this answer

        self._scheduler.start(self._scheduler.network, deliver, name=f"late {label}", delay=delay)


class SimulatedPaginator:
    def __init__(self, client: SimulatedBoto3Client, paginator: Any) -> None:
        self._client, self._paginator = client, paginator

    def paginate(self, **request: Any) -> Any:
        return self._client.call("list_objects_v2", lambda **given: list(self._paginator.paginate(**given)), request)


@functools.lru_cache
def operation_name(method: str) -> str:
    """`transact_write_items` is TransactWriteItems."""
    return re.sub(r"(?:^|_)(\w)", lambda match: match[1].upper(), method)
