"""Rebuild a tenant's rollups from its ledger while the stream goes on counting (decision 0054).

1. Rows that no stream repeats any more are summed in memory and written into a new edition.
2. From then on the stream counts into both editions.
3. Recent rows are counted into the new edition; the marks make each of them count once.
4. The new edition becomes the current one, and the old one is deleted.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb import Delete, Item, Put, Write
from fermata.aws.resources import Resources
from fermata.usage.ledger.ledger_parsing import find_row_defect, load_ledger_records
from fermata.usage.ledger.ledger_store import FIRST_LEDGER_MONTH, ledger_row_key, read_ledger_rows
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
"""Longer than a stream keeps its records, which is a day."""
INDEX_DELAY_SECONDS = 5
"""After this time the ledger's index contains what was written before."""
_WRITE_BATCH_SIZE = 100
"""Writes that one transaction accepts."""


def rebuild_rollups(resources: Resources, tenant: str, on_unreadable: Callable[[str], None] = lambda _: None) -> int:
    """Rebuild all rollups of a tenant.

    Args:
        on_unreadable: Receives the key and the defect of each ledger row that cannot be counted.

    Returns:
        The number of ledger rows that were counted.
    """
    old, new = _begin_edition(resources, tenant)
    recent_start = iso_from_epoch(resources.clock.time() - STREAM_REPEAT_SECONDS)
    recent_end = iso_from_epoch(resources.clock.time() + STREAM_REPEAT_SECONDS)
    delta = RollupDelta()
    row_count = 0
    for row in _read_readable_rows(resources, tenant, FIRST_LEDGER_MONTH, recent_start, on_unreadable):
        row_count += 1
        for record in load_ledger_records(resources, row):
            delta.add_record(record)
    write_edition(resources, new, delta)
    _put_edition_row(resources, tenant, current=old.number, building=new.number, last=new.number)
    resources.clock.sleep(INDEX_DELAY_SECONDS)
    conversations = set(delta.activities)
    for batch in _batch_rows(_read_readable_rows(resources, tenant, recent_start, recent_end, on_unreadable)):
        row_count += len(batch)
        records = [record for row in batch for record in load_ledger_records(resources, row)]
        count_records_into(resources, new, records)
        conversations |= {record.conversation for record in records}
    _put_edition_row(resources, tenant, current=new.number, last=new.number)
    _delete_edition(resources, old, conversations)
    return row_count


def _read_readable_rows(
    resources: Resources, tenant: str, start: str, end: str, on_unreadable: Callable[[str], None]
) -> Iterator[Item]:
    for row in read_ledger_rows(resources, tenant, start, end):
        if defect := find_row_defect(row, resources.clock.time()):
            on_unreadable(f"{ledger_row_key(row)}: {defect}")
        else:
            yield row


def write_edition(resources: Resources, edition: RollupEdition, delta: RollupDelta) -> None:
    """Write the rollups and activities of an edition into which nothing counts yet."""
    puts: list[Write] = []
    for (level, period), rollup in delta.rollups.items():
        for number, segment in enumerate(split_into_segments(rollup)):
            item = to_rollup_item(edition, level, period, number, segment)
            puts.append(Put(resources.settings.usage_table, item))
    for conversation, activity in delta.activities.items():
        puts.append(build_activity_put(resources, edition, conversation, activity))
    _write_in_batches(resources, puts)


def split_into_segments(rollup: PeriodRollup) -> list[PeriodRollup]:
    """Split a rollup by its users, which are many, until each segment is below twice FULL_SEGMENT_BYTES."""
    if len(rollup.pack()) < 2 * FULL_SEGMENT_BYTES or len(rollup.users) < 2:
        return [rollup]
    first = PeriodRollup(scopes=rollup.scopes, models=rollup.models, quarters=rollup.quarters, gaps=rollup.gaps)
    second = PeriodRollup()
    names = sorted(rollup.users)
    for number, name in enumerate(names):
        half = first if number < len(names) // 2 else second
        half.users[name] = rollup.users[name]
    return [*split_into_segments(first), *split_into_segments(second)]


def _begin_edition(resources: Resources, tenant: str) -> tuple[RollupEdition, RollupEdition]:
    """Reserve a number for the new edition, and return the old and the new one.

    A number is never used again, so a rebuild that broke off leaves nothing behind in the next one's edition.
    """
    item = resources.tables.get_item(resources.settings.usage_table, f"t#{tenant}#rollup", "edition") or {"current": 1}
    current: int = item["current"]
    number = int(item.get("last") or current) + 1
    _put_edition_row(resources, tenant, current=current, last=number)
    return RollupEdition(tenant, current), RollupEdition(tenant, number)


def _put_edition_row(
    resources: Resources, tenant: str, *, current: int, last: int, building: int | None = None
) -> None:
    """Store the numbers of the current edition, of the last one begun, and of the one that is being built, if any."""
    item: Item = {"pk": f"t#{tenant}#rollup", "sk": "edition", "v": 1, "current": current, "last": last}
    if building is not None:
        item["building"] = building
    resources.tables.write_items(Put(resources.settings.usage_table, item))


def _delete_edition(resources: Resources, edition: RollupEdition, conversations: Iterable[str]) -> None:
    table = resources.settings.usage_table
    keys = [(edition.activity_partition(conversation), "chat") for conversation in conversations]
    for pk in (edition.period_partition("day"), edition.period_partition("quarter")):
        keys += [(pk, item["sk"]) for item in resources.tables.query_items(table, pk)]
    _write_in_batches(resources, [Delete(table, pk, sk) for pk, sk in keys])


def _write_in_batches(resources: Resources, writes: Sequence[Write]) -> None:
    for start in range(0, len(writes), _WRITE_BATCH_SIZE):
        resources.tables.write_items(*writes[start : start + _WRITE_BATCH_SIZE])


def _batch_rows(rows: Iterator[Item]) -> Iterator[list[Item]]:
    while batch := list(islice(rows, _WRITE_BATCH_SIZE)):
        yield batch
