"""Measure an audit of a busy workspace: the bytes it reads, and its time.

The workspace has a thousand users, and its rollups hold a hundred thousand rows. The rows of the first two hours are
written to the ledger, where its stream counts them: an audit that begins within a quarter of an hour reads the rest of
that quarter from the ledger. All other rows are only added to the rollups, as a rebuild does.
"""

import time
from collections.abc import Sequence
from typing import Any

from bench.aws_calls import AwsCall, record_aws_calls
from bench.dynamodb_units import item_bytes
from bench.harness import BenchHarness
from bench.report import ResultRow
from bench.stats import NS_PER_MS, LatencySamples
from bench.synthetic_ledger import DAY_SECONDS, LEDGER_DAYS, generate_ledger_rows, usage_from_row
from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.usage.audit import user_labels
from fermata.usage.ledger import ledger_store
from fermata.usage.ledger.ledger_parsing import parse_request_row
from fermata.usage.rollups.rebuild import write_edition
from fermata.usage.rollups.rollup_delta import RollupDelta
from fermata.usage.rollups.rollup_version import RollupEdition
from fermata.wire.auth import tenant_store
from fermata_client import FermataClient
from local import seed

TENANT = "counted"
ISSUER = "http://127.0.0.1/counted"
SECRET = "counted-by-the-bench-" * 3
USER_COUNT = 1_000
CHAT_COUNT = 20_000
TIME_ZONE = "Asia/Kathmandu"
"""Its offset from UTC is 5:45, so that its days begin within an hour of UTC."""
MAX_READ_BYTES = 2_000_000
MAX_AUDIT_MS = 300
LEDGER_SECONDS = 7200
_WRITE_BATCH_SIZE = 50
STREAM_TIMEOUT_SECONDS = 30.0
WARM_UP_AUDITS = 3


class AuditedWorkspace:
    """A tenant with `row_count` rows of usage, and a caller who may read its audit."""

    def __init__(self, harness: BenchHarness, row_count: int) -> None:
        self.harness = harness
        self.row_count = row_count
        resources = harness.cloud.resources()
        now = resources.clock.time()
        rows = list(
            generate_ledger_rows(now, users=USER_COUNT, chats=CHAT_COUNT, rounds=1, tenant=TENANT, row_count=row_count)
        )
        start = now - LEDGER_DAYS * DAY_SECONDS
        self.since = iso_from_epoch(start)
        self.prompt_tokens = sum(row["prompt"] for row in rows)
        _store_rows(resources, rows, iso_from_epoch(start + LEDGER_SECONDS))
        tenant_store.add_tenant(resources, TENANT, issuer=ISSUER, audience=seed.AUDIENCE, secret=SECRET)
        self._token = seed.sign_token(SECRET, iss=ISSUER, tenant=TENANT, exp=int(now) + 3600)
        self._wait_for_rollups()

    def time_audit(self) -> float:
        """Return the milliseconds from request to answer.

        Raises:
            RuntimeError: the answer is not right to the token.
        """
        milliseconds, prompt_tokens = self._request_audit()
        if prompt_tokens != self.prompt_tokens:
            raise RuntimeError(f"The audit counts {prompt_tokens} tokens instead of {self.prompt_tokens}.")
        return milliseconds

    def _request_audit(self) -> tuple[float, int]:
        """Return milliseconds and prompt tokens of an audit."""
        with FermataClient(self.harness.cloud.url, self._token) as client:
            started_ns = time.monotonic_ns()
            report = client.get_audit(since=self.since, tz=TIME_ZONE)
            return (time.monotonic_ns() - started_ns) / NS_PER_MS, report["totals"]["promptTokens"]

    def _wait_for_rollups(self) -> None:
        deadline = time.monotonic() + STREAM_TIMEOUT_SECONDS
        while self._request_audit()[1] != self.prompt_tokens:
            if time.monotonic() > deadline:
                raise RuntimeError("The rows of the ledger were not counted by its stream.")
            time.sleep(0.2)


def _store_rows(resources: Resources, rows: Sequence[Item], ledger_end: str) -> None:
    """Write rows before the instant `ledger_end` to the ledger, and add the others to the rollups."""
    delta = RollupDelta()
    for row in rows:
        if row["at"] >= ledger_end:
            delta.add_record(parse_request_row(row))
    write_edition(resources, RollupEdition(TENANT, 1), delta)
    for user in {row["user"] for row in rows}:
        caller = Caller(tenant=TENANT, user=user, capabilities=frozenset(), label=f"{user}@example.com")
        user_labels.store_user_label(resources, caller)
    ledger_rows = [row for row in rows if row["at"] < ledger_end]
    puts = [ledger_store.build_request_put(resources, usage_from_row(row)) for row in ledger_rows]
    for start in range(0, len(puts), _WRITE_BATCH_SIZE):
        resources.tables.write_items(*puts[start : start + _WRITE_BATCH_SIZE])


def measure_audit_bytes(workspace: AuditedWorkspace) -> ResultRow:
    """Measure the sizes of all items that one audit reads."""
    workspace.time_audit()  # afterwards the functions have the tenant in their cache
    with record_aws_calls(workspace.harness.cloud.endpoint) as recorded:
        workspace.time_audit()
    total_bytes = sum(response_item_bytes(call) for call in recorded.calls if call.service == "dynamodb")
    return ResultRow(
        "audit.bytes",
        f"bytes that one audit over {workspace.row_count:,} rows reads",
        f"≤ {MAX_READ_BYTES:,}",
        f"{total_bytes:,}",
        total_bytes <= MAX_READ_BYTES,
        {"requests": recorded.count_by_name("dynamodb")},
    )


def response_item_bytes(call: AwsCall) -> int:
    """Return the size of all items in a DynamoDB response."""
    response = call.response
    items: list[Any] = [*response.get("Items", []), *([response["Item"]] if "Item" in response else [])]
    items += [item for table_items in response.get("Responses", {}).values() for item in table_items]
    return sum(map(item_bytes, items))


def measure_audit_time(workspace: AuditedWorkspace, repetitions: int) -> ResultRow:
    """Time an audit from the client's request to the answer."""
    audit_ms = [workspace.time_audit() for _ in range(repetitions + WARM_UP_AUDITS)]
    samples = LatencySamples.from_samples(audit_ms[WARM_UP_AUDITS:])
    return ResultRow(
        "audit",
        f"one audit over {workspace.row_count:,} rows, request to answer",
        f"≤ {MAX_AUDIT_MS} ms p50",
        f"{samples.p50:.0f} p50, {samples.p95:.0f} p95 ms",
        samples.p50 <= MAX_AUDIT_MS,
        samples.to_json(),
    )
