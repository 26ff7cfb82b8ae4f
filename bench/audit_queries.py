"""An audit over the ledger of a busy workspace: what it reads, and how long it takes.

The workspace has a thousand users, and its rollups hold a hundred thousand rows. Those of the first two hours are
really put into the ledger, and its stream counts them: an audit that begins in the middle of a quarter of an hour reads
the rest of that quarter there, and nothing else. All others are counted here, as a rebuild would.
"""

import time
from typing import Any

from bench.aws_calls import AwsCall, record_aws_calls
from bench.dynamodb_units import item_bytes
from bench.harness import BenchHarness
from bench.report import ResultRow
from bench.stats import NS_PER_MS, LatencySamples
from bench.synthetic_ledger import DAYS, generate_ledger_rows, spent_from_row
from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb import Item
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.usage.audit import user_labels
from fermata.usage.ledger import ledger_store
from fermata.usage.ledger.ledger_parsing import parse_request_row
from fermata.usage.rollups.rebuild import write_edition
from fermata.usage.rollups.rollup_delta import RollupDelta
from fermata.usage.rollups.rollup_store import RollupEdition
from fermata.wire.auth import tenant_store
from fermata_client import FermataClient
from local import seed

USER_COUNT = 1_000
TENANT, ISSUER, SECRET = "counted", "http://127.0.0.1/counted", "counted-by-the-bench-" * 3
ZONE = "Asia/Kathmandu"
"""Its days begin at a quarter to."""
MAX_READ_BYTES, MAX_AUDIT_MS = 2_000_000, 300
LEDGER_SECONDS, WRITE_BATCH_SIZE = 7200, 50
STREAM_TIMEOUT_SECONDS = 30.0


class AuditedWorkspace:
    """A tenant with so many rows, and whoever may read its audit."""

    def __init__(self, stage: BenchHarness, count: int) -> None:
        self.stage, self.count = stage, count
        resources = stage.cloud.resources()
        now = resources.clock.time()
        told = list(generate_ledger_rows(now, users=USER_COUNT, chats=20_000, rounds=1, tenant=TENANT, count=count))
        begin = now - DAYS * 86400
        self.since = iso_from_epoch(begin)
        self.prompt = sum(row["prompt"] for row in told)
        _fill(resources, told, iso_from_epoch(begin + LEDGER_SECONDS))
        tenant_store.add_tenant(resources, TENANT, issuer=ISSUER, audience=seed.AUDIENCE, secret=SECRET)
        self._token = seed.sign_token(SECRET, iss=ISSUER, tenant=TENANT, exp=int(now) + 3600)
        self._await_the_stream()

    def time_audit(self) -> float:
        """Milliseconds from the request to its answer, which must be right."""
        taken, counted = self._asked()
        if counted != self.prompt:
            raise RuntimeError(f"The audit counts {counted} tokens instead of {self.prompt}.")
        return taken

    def _asked(self) -> tuple[float, int]:
        with FermataClient(self.stage.cloud.url, self._token) as client:
            started = time.monotonic_ns()
            found = client.get_audit(since=self.since, tz=ZONE)
            return (time.monotonic_ns() - started) / NS_PER_MS, found["totals"]["promptTokens"]

    def _await_the_stream(self) -> None:
        deadline = time.monotonic() + STREAM_TIMEOUT_SECONDS
        while self._asked()[1] != self.prompt:
            if time.monotonic() > deadline:
                raise RuntimeError("The rows of the ledger were not counted by its stream.")
            time.sleep(0.2)


def _fill(resources: Resources, told: list[Item], behind: str) -> None:
    books = RollupDelta()
    for row in told:
        if row["at"] >= behind:
            books.add_record(parse_request_row(row))
    write_edition(resources, RollupEdition(TENANT, 1), books)
    for user in {row["user"] for row in told}:
        user_labels.store_user_label(
            resources, Caller(tenant=TENANT, user=user, capabilities=frozenset(), label=f"{user}@example.com")
        )
    early = [ledger_store.build_request_put(resources, spent_from_row(row)) for row in told if row["at"] < behind]
    for start in range(0, len(early), WRITE_BATCH_SIZE):
        resources.tables.write_items(*early[start : start + WRITE_BATCH_SIZE])


def measure_audit_bytes(workspace: AuditedWorkspace) -> ResultRow:
    workspace.time_audit()  # the tenant is known by now
    with record_aws_calls(workspace.stage.cloud.endpoint) as requests:
        workspace.time_audit()
    size = sum(response_item_bytes(one) for one in requests.calls if one.service == "dynamodb")
    what = f"bytes that one audit over {workspace.count:,} rows reads"
    numbers = {"requests": requests.count_by_name("dynamodb")}
    return ResultRow("audit.bytes", what, f"≤ {MAX_READ_BYTES:,}", f"{size:,}", size <= MAX_READ_BYTES, numbers)


def response_item_bytes(one: AwsCall) -> int:
    """Of all items in an answer."""
    response = one.response
    items: list[Any] = [*response.get("Items", []), *([response["Item"]] if "Item" in response else [])]
    items += [item for found in response.get("Responses", {}).values() for item in found]
    return sum(map(item_bytes, items))


def measure_audit_time(workspace: AuditedWorkspace, times: int) -> ResultRow:
    """From request to answer: what the handler takes, and the way to it and back."""
    taken = LatencySamples.from_samples([workspace.time_audit() for _ in range(times + 3)][3:])
    result = f"{taken.p50:.0f} p50, {taken.p95:.0f} p95 ms"
    what = f"one audit over {workspace.count:,} rows, request to answer"
    return ResultRow("audit", what, f"≤ {MAX_AUDIT_MS} ms p50", result, taken.p50 <= MAX_AUDIT_MS, taken.to_json())
