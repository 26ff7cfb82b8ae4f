"""An audit over 100,000 rows: exact, and read from a few rollups. `make bench` measures its time."""

import pytest

from bench.synthetic_ledger import generate_ledger_rows
from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item, Put
from fermata.aws.resources import Resources
from fermata.usage.audit.audit_from_ledger import audit_ledger_rows
from fermata.usage.audit.audit_from_rollups import audit_usage
from fermata.usage.audit.local_days import LocalDays
from fermata.usage.audit.query_parameters import parse_time_zone
from fermata.usage.ledger.ledger_parsing import parse_request_row
from fermata.usage.rollups.rebuild import split_into_segments
from fermata.usage.rollups.rollup_delta import RollupDelta
from fermata.usage.rollups.rollup_store import to_rollup_item
from fermata.usage.rollups.rollup_version import RollupEdition
from tests.resources import TestClock
from tests.unit.usage.ledger_factories import TENANT

pytestmark = pytest.mark.exhaustive

MAX_READ_BYTES = 2_000_000


def estimate_item_bytes(item: Item) -> int:
    """Return about as many bytes as DynamoDB charges: those of names and of values."""
    return sum(len(name) + (len(value) if isinstance(value, str | bytes) else 8) for name, value in item.items())


@pytest.mark.parametrize(
    ("users", "chats", "rounds"),
    [(60, 6_000, 4), (1_000, 20_000, 1)],
    ids=["a busy workspace", "a thousand users, every row a turn of its own"],
)
def test_an_audit_over_a_hundred_thousand_rows_is_exact_and_reads_less_than_two_megabytes(
    resources: Resources, clock: TestClock, users: int, chats: int, rounds: int
) -> None:
    clock.now = 1_800_000_000 - 1_800_000_000 % 900
    rows = list(generate_ledger_rows(clock.now, users=users, chats=chats, rounds=rounds))
    delta = RollupDelta()
    for row in rows:
        delta.add_record(parse_request_row(row))
    since = iso_from_epoch(clock.now - 30 * 86400)
    read_bytes = 0
    for (level, period), rollup in delta.rollups.items():
        if level == "day" or period.startswith(since[:10]):  # what this audit reads
            for number, segment in enumerate(split_into_segments(rollup)):
                item = to_rollup_item(RollupEdition(TENANT, 1), level, period, number, segment)
                resources.tables.write_items(Put(resources.settings.usage_table, item))
                read_bytes += estimate_item_bytes(item)
    expected = audit_ledger_rows(rows, since, LocalDays(parse_time_zone("Asia/Kathmandu")))
    assert audit_usage(resources, TENANT, time_zone="Asia/Kathmandu") == expected
    assert read_bytes < MAX_READ_BYTES
