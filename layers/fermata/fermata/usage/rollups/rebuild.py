"""Rebuild a tenant's rollups from its ledger while the stream goes on counting (decision 0054).

1. Rows that no stream repeats any more are summed in memory and written into a new edition.
2. From then on the stream counts into both editions.
3. Recent rows are counted into the new edition; the marks make each of them count once.
4. The new edition becomes the current one, and the old one is deleted.

A rebuild that begins while another one is under way takes its place (decision 0141).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Delete, Item, Put, TransactionCanceled, Write
from fermata.aws.resources import Resources
from fermata.domain.errors import Conflict
from fermata.usage.ledger.ledger_parsing import find_row_defect, load_ledger_records
from fermata.usage.ledger.ledger_store import FIRST_LEDGER_MONTH, ledger_row_key, read_ledger_rows
from fermata.usage.rollups.period_rollup import PeriodRollup
from fermata.usage.rollups.rollup_delta import RollupDelta
from fermata.usage.rollups.rollup_store import (
    FULL_SEGMENT_BYTES,
    build_activity_put,
    count_records_into,
    to_rollup_item,
)
from fermata.usage.rollups.rollup_version import RollupEdition, begin_edition, read_edition_row, store_edition_row

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

    Raises:
        Conflict: Another rebuild of this tenant began meanwhile, and goes on.
    """
    begun = begin_edition(resources, tenant)
    old, new = RollupEdition(tenant, begun.current), RollupEdition(tenant, begun.last)
    recent_start = iso_from_epoch(resources.clock.time() - STREAM_REPEAT_SECONDS)
    delta, row_count = _sum_rows_before(resources, tenant, recent_start, on_unreadable)
    conversations = set(delta.activities)
    try:
        write_edition(resources, new, delta)
        building = store_edition_row(resources, replace(begun, building=new.number))
        resources.clock.sleep(INDEX_DELAY_SECONDS)
        recent_rows = _read_recent_rows(resources, tenant, recent_start, on_unreadable)
        row_count += _count_recent_rows(resources, new, recent_rows, conversations)
        store_edition_row(resources, replace(building, current=new.number, building=None))
    except Conflict:
        if read_edition_row(resources, tenant).current != new.number:
            _delete_edition(resources, new, conversations)
            raise
        # Otherwise the switch took place, and another rebuild began before its response arrived.
    _delete_edition(resources, old, conversations)
    return row_count


def _sum_rows_before(
    resources: Resources, tenant: str, end: str, on_unreadable: Callable[[str], None]
) -> tuple[RollupDelta, int]:
    """Return what the rows before an instant add to empty rollups, and the number of rows."""
    delta = RollupDelta()
    row_count = 0
    for row in _read_readable_rows(resources, tenant, FIRST_LEDGER_MONTH, end, on_unreadable):
        row_count += 1
        for record in load_ledger_records(resources, row):
            delta.add_record(record)
    return delta, row_count


def _read_recent_rows(
    resources: Resources, tenant: str, recent_start: str, on_unreadable: Callable[[str], None]
) -> Iterator[Item]:
    recent_end = iso_from_epoch(resources.clock.time() + STREAM_REPEAT_SECONDS)
    return _read_readable_rows(resources, tenant, recent_start, recent_end, on_unreadable)


def _count_recent_rows(
    resources: Resources, edition: RollupEdition, rows: Iterator[Item], conversations: set[str]
) -> int:
    """Count rows that the stream may count too. Add their conversations to the set, and return the number of rows."""
    row_count = 0
    for batch in _batch_rows(rows):
        row_count += len(batch)
        records = [record for row in batch for record in load_ledger_records(resources, row)]
        count_records_into(resources, edition, records)
        conversations |= {record.conversation for record in records}
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
            puts.append(Put(resources.settings.usage_table, item, if_absent=True))
    for conversation, activity in delta.activities.items():
        puts.append(build_activity_put(resources, edition, conversation, activity))
    for batch in _batch_writes(puts):
        try:
            resources.tables.write_items(*batch)
        except (ConditionFailed, TransactionCanceled):
            # Only this rebuild writes into its edition, so what is there is the same write, whose response was lost.
            continue


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


def _delete_edition(resources: Resources, edition: RollupEdition, conversations: Iterable[str]) -> None:
    table = resources.settings.usage_table
    keys = [(edition.activity_partition(conversation), "chat") for conversation in conversations]
    for pk in (edition.period_partition("day"), edition.period_partition("quarter")):
        keys += [(pk, item["sk"]) for item in resources.tables.query_items(table, pk)]
    for batch in _batch_writes([Delete(table, pk, sk) for pk, sk in keys]):
        resources.tables.write_items(*batch)


def _batch_writes(writes: Sequence[Write]) -> Iterator[Sequence[Write]]:
    for start in range(0, len(writes), _WRITE_BATCH_SIZE):
        yield writes[start : start + _WRITE_BATCH_SIZE]


def _batch_rows(rows: Iterator[Item]) -> Iterator[list[Item]]:
    while batch := list(islice(rows, _WRITE_BATCH_SIZE)):
        yield batch
