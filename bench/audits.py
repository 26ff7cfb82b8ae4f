"""An audit over the ledger of a busy workspace: what it reads, and how long it takes.

The workspace has a thousand users, and its rollups hold a hundred thousand rows. Those of the first two hours are
really put into the ledger, and its stream counts them: an audit that begins in the middle of a quarter of an hour reads
the rest of that quarter there, and nothing else. All others are counted here, as a rebuild would.
"""

import time
from typing import Any

from bench.ledgers import DAYS, rows, spent
from bench.requests import Request, recording
from bench.stage import Stage
from bench.stats import NS, Times
from bench.table import Row
from bench.units import item_size
from fermata.aws.clock import instant
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item
from fermata.usage import labels, ledger
from fermata.usage.books import Books
from fermata.usage.rebuilding import install
from fermata.usage.records import request
from fermata.usage.rollups import Edition
from fermata.wire import tenants
from fermata.words.caller import Caller
from fermata_client import FermataClient
from local import seed

USERS = 1_000
TENANT, ISSUER, SECRET = "counted", "http://127.0.0.1/counted", "counted-by-the-bench-" * 3
ZONE = "Asia/Kathmandu"
"""Its days begin at a quarter to."""
MOST_BYTES, MOST_MS = 2_000_000, 300
LEDGER_SECONDS, AT_ONCE = 7200, 50
PATIENCE = 30.0


class Workspace:
    """A tenant with so many rows, and whoever may read its audit."""

    def __init__(self, stage: Stage, count: int) -> None:
        self.stage, self.count = stage, count
        desk = stage.cloud.desk()
        now = desk.clock.time()
        told = list(rows(now, users=USERS, chats=20_000, rounds=1, tenant=TENANT, count=count))
        begin = now - DAYS * 86400
        self.since = instant(begin)
        self.prompt = sum(row["prompt"] for row in told)
        _fill(desk, told, instant(begin + LEDGER_SECONDS))
        tenants.add_tenant(desk, TENANT, issuer=ISSUER, audience=seed.AUDIENCE, secret=SECRET)
        self._token = seed.token(SECRET, iss=ISSUER, tenant=TENANT, exp=int(now) + 3600)
        self._await_the_stream()

    def audit(self) -> float:
        """Milliseconds from the request to its answer, which must be right."""
        taken, counted = self._asked()
        if counted != self.prompt:
            raise RuntimeError(f"The audit counts {counted} tokens instead of {self.prompt}.")
        return taken

    def _asked(self) -> tuple[float, int]:
        with FermataClient(self.stage.cloud.url, self._token) as client:
            started = time.monotonic_ns()
            found = client.audit(since=self.since, tz=ZONE)
            return (time.monotonic_ns() - started) / NS, found["totals"]["promptTokens"]

    def _await_the_stream(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while self._asked()[1] != self.prompt:
            if time.monotonic() > deadline:
                raise RuntimeError("The rows of the ledger were not counted by its stream.")
            time.sleep(0.2)


def _fill(desk: Desk, told: list[Item], behind: str) -> None:
    books = Books()
    for row in told:
        if row["at"] >= behind:
            books.post(request(row))
    install(desk, Edition(TENANT, 1), books)
    for user in {row["user"] for row in told}:
        labels.remember(desk, Caller(tenant=TENANT, user=user, capabilities=frozenset(), label=f"{user}@example.com"))
    early = [ledger.row(desk, spent(row)) for row in told if row["at"] < behind]
    for start in range(0, len(early), AT_ONCE):
        desk.tables.write(*early[start : start + AT_ONCE])


def bytes_read(workspace: Workspace) -> Row:
    workspace.audit()  # the tenant is known by now
    with recording(workspace.stage.cloud.endpoint) as requests:
        workspace.audit()
    size = sum(size_of(one) for one in requests.all if one.service == "dynamodb")
    what = f"bytes that one audit over {workspace.count:,} rows reads"
    numbers = {"requests": requests.by_name("dynamodb")}
    return Row("audit.bytes", what, f"≤ {MOST_BYTES:,}", f"{size:,}", size <= MOST_BYTES, numbers)


def size_of(one: Request) -> int:
    """Of all items in an answer."""
    response = one.response
    items: list[Any] = [*response.get("Items", []), *([response["Item"]] if "Item" in response else [])]
    items += [item for found in response.get("Responses", {}).values() for item in found]
    return sum(map(item_size, items))


def query(workspace: Workspace, times: int) -> Row:
    """From request to answer: what the handler takes, and the way to it and back."""
    taken = Times.of([workspace.audit() for _ in range(times + 3)][3:])
    result = f"{taken.p50:.0f} p50, {taken.p95:.0f} p95 ms"
    what = f"one audit over {workspace.count:,} rows, request to answer"
    return Row("audit", what, f"≤ {MOST_MS} ms p50", result, taken.p50 <= MOST_MS, taken.wire())
