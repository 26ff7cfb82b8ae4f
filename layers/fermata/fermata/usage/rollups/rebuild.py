"""Rebuild a tenant's rollups from its ledger, while the stream goes on counting.

The rows that no stream repeats any more are summed in memory and written as they come out. From then on the stream
counts into both editions, and the recent rows are counted again into the new one, where each counts once as ever.
Then the new edition is the current one, and the old one is deleted.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb import Delete, Item, Put, Write
from fermata.aws.resources import Resources
from fermata.usage.ledger import ledger_store
from fermata.usage.ledger.ledger_parsing import find_row_defect, load_rollup_records
from fermata.usage.rollups.period_rollup import PeriodRollup
from fermata.usage.rollups.rollup_delta import RollupDelta
from fermata.usage.rollups.rollup_store import (
    FULL_SEGMENT_BYTES,
    RollupEdition,
    build_activity_put,
    count_records_into,
    to_rollup_item,
)

STREAM_REPEAT_SECONDS = 2 * 86400
"""A stream keeps its records for a day."""
INDEX_DELAY_SECONDS = 5
"""By then the index holds what was written before."""
_WRITE_BATCH_SIZE = 100


def rebuild_rollups(resources: Resources, tenant: str, on_unreadable: Callable[[str], None] = lambda _: None) -> int:
    """Returns how many rows of the ledger were counted. `pass_over` hears of each that cannot be read."""

    def readable(first: str, behind: str) -> Iterator[Item]:
        for row in ledger_store.read_ledger_rows(resources, tenant, first, behind):
            if why := find_row_defect(row):
                on_unreadable(f"{ledger_store.ledger_row_key(row)}: {why}")
            else:
                yield row

    old, new = _begin_edition(resources, tenant)
    settled, now = (
        iso_from_epoch(resources.clock.time() - STREAM_REPEAT_SECONDS),
        iso_from_epoch(resources.clock.time() + STREAM_REPEAT_SECONDS),
    )
    books, chats, rows = RollupDelta(), set[str](), 0
    for row in readable(ledger_store.FIRST_LEDGER_MONTH, settled):
        rows += 1
        for record in load_rollup_records(resources, row):
            books.add_record(record)
    write_edition(resources, new, books)
    _put_edition_row(resources, tenant, current=old.number, building=new.number, last=new.number)
    resources.clock.sleep(INDEX_DELAY_SECONDS)
    for recent in _batch_rows(readable(settled, now)):
        rows += len(recent)
        records = [record for row in recent for record in load_rollup_records(resources, row)]
        count_records_into(resources, new, records)
        chats |= {record.conversation for record in records}
    _put_edition_row(resources, tenant, current=new.number, last=new.number)
    _delete_edition(resources, old, chats | set(books.activities))
    return rows


def write_edition(resources: Resources, edition: RollupEdition, delta: RollupDelta) -> None:
    """Write an edition that nobody counts into yet."""
    puts: list[Write] = []
    for (level, period), sheet in delta.rollups.items():
        for segment, page in enumerate(split_into_segments(sheet)):
            puts.append(Put(resources.settings.usage_table, to_rollup_item(edition, level, period, segment, page)))
    puts += [build_activity_put(resources, edition, name, chat) for name, chat in delta.activities.items()]
    _write_in_batches(resources, puts)


def split_into_segments(rollup: PeriodRollup) -> list[PeriodRollup]:
    """A sheet in segments of a bearable size: its users are many, everything else is few."""
    if len(rollup.pack()) < 2 * FULL_SEGMENT_BYTES or len(rollup.users) < 2:
        return [rollup]
    names = sorted(rollup.users)
    first, second = (
        PeriodRollup(scopes=rollup.scopes, models=rollup.models, quarters=rollup.quarters, gaps=rollup.gaps),
        PeriodRollup(),
    )
    for number, name in enumerate(names):
        (first if number < len(names) // 2 else second).users[name] = rollup.users[name]
    return [*split_into_segments(first), *split_into_segments(second)]


def _begin_edition(resources: Resources, tenant: str) -> tuple[RollupEdition, RollupEdition]:
    """The number of an attempt is never used again, so that one that broke off leaves nothing in the next one's way."""
    item = resources.tables.get_item(resources.settings.usage_table, f"t#{tenant}#rollup", "edition") or {"current": 1}
    old: int = item["current"]
    number = int(item.get("last") or old) + 1
    _put_edition_row(resources, tenant, current=old, last=number)
    return RollupEdition(tenant, old), RollupEdition(tenant, number)


def _put_edition_row(resources: Resources, tenant: str, **numbers: int) -> None:
    item = {"pk": f"t#{tenant}#rollup", "sk": "edition", "v": 1, **numbers}
    resources.tables.write_items(Put(resources.settings.usage_table, item))


def _delete_edition(resources: Resources, edition: RollupEdition, conversations: Iterable[str]) -> None:
    table = resources.settings.usage_table
    places = [(edition.activity_partition(name), "chat") for name in conversations]
    for pk in (edition.period_partition("day"), edition.period_partition("quarter")):
        places += [(pk, item["sk"]) for item in resources.tables.query_items(table, pk)]
    _write_in_batches(resources, [Delete(table, pk, sk) for pk, sk in places])


def _write_in_batches(resources: Resources, writes: Sequence[Write]) -> None:
    """Many in one request."""
    for start in range(0, len(writes), _WRITE_BATCH_SIZE):
        resources.tables.write_items(*writes[start : start + _WRITE_BATCH_SIZE])


def _batch_rows(rows: Iterator[Item]) -> Iterator[list[Item]]:
    while batch := list(islice(rows, _WRITE_BATCH_SIZE)):
        yield batch
