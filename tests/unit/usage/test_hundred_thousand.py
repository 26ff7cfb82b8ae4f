"""An audit over 100,000 rows: exact, and read from a few sheets. `make bench` takes its time."""

import pytest

from bench.ledgers import rows
from fermata.aws.clock import instant
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item, Put
from fermata.usage.audit import audit
from fermata.usage.books import Books
from fermata.usage.rebuilding import pages
from fermata.usage.reckoning import reckon
from fermata.usage.records import request
from fermata.usage.rollups import Edition, sheet_item
from fermata.usage.window import LocalDays, zone
from tests.desk import TestClock
from tests.unit.usage.spending import TENANT

MOST_BYTES = 2_000_000


def stored_size(item: Item) -> int:
    """About what DynamoDB counts: names, and values as they are stored."""
    return sum(len(name) + (len(value) if isinstance(value, str | bytes) else 8) for name, value in item.items())


@pytest.mark.parametrize(
    ("users", "chats", "rounds"),
    [(60, 6_000, 4), (1_000, 20_000, 1)],
    ids=["a busy workspace", "a thousand users, every row a turn of its own"],
)
def test_an_audit_over_a_hundred_thousand_rows_is_exact_and_reads_less_than_two_megabytes(
    desk: Desk, clock: TestClock, users: int, chats: int, rounds: int
) -> None:
    clock.now = 1_800_000_000 - 1_800_000_000 % 900
    told, books, read = list(rows(clock.now, users=users, chats=chats, rounds=rounds)), Books(), 0
    for row in told:
        books.post(request(row))
    start = clock.now - 30 * 86400
    for (level, period), sheet in books.sheets.items():
        if level == "day" or period.startswith(instant(start)[:10]):  # what this audit will look at
            for segment, page in enumerate(pages(sheet)):
                item = sheet_item(Edition(TENANT, 1), level, period, segment, page)
                desk.tables.write(Put(desk.settings.usage_table, item))
                read += stored_size(item)
    assert audit(desk, TENANT, tz="Asia/Kathmandu") == reckon(told, instant(start), LocalDays(zone("Asia/Kathmandu")))
    assert read < MOST_BYTES
