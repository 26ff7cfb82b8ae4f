"""Rollup rows in DynamoDB: the ledger summed by day and by quarter of an hour, each ledger row counted exactly once.

    t#<tenant>#rollup                     edition     numbers of the editions (rollup_version.py)
    t#<tenant>#rollup#<n>#day             <day>#<segment>       rollup of a day (period_rollup.py)
    t#<tenant>#rollup#<n>#quarter         <quarter>#<segment>   rollup of a quarter
    t#<tenant>#rollup#<n>#chat#<id>       chat        activity of a conversation (conversation_activity.py)
    t#<tenant>#rollup#<n>#counted#<key>   counted     mark that a ledger record is counted; expires after two weeks

One transaction changes a record's mark, its rollups and its conversation's activity, each on condition that its version
is the one that was read (decision 0050).
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence

from fermata.aws.dynamodb_items_and_writes import Item, Put, TransactionCanceled, Write
from fermata.aws.resources import Resources
from fermata.usage.ledger.usage_increments import MAX_INCREMENTS_PER_TRANSACTION, LedgerRecord
from fermata.usage.rollups.conversation_activity import ConversationActivity
from fermata.usage.rollups.period_rollup import PeriodRollup
from fermata.usage.rollups.rollup_delta import RollupDelta
from fermata.usage.rollups.rollup_version import RollupEdition, RollupLevel, read_editions

FULL_SEGMENT_BYTES = 16 * 1024
"""A segment of this size takes no more: every change writes the whole segment."""
COUNTED_MARK_TTL_SECONDS = 14 * 86400
"""Longer than the stream can repeat a record, which is a day."""
MAX_COUNT_ATTEMPTS = 30
_READ_BATCH_SIZE = 100
"""Keys that one BatchGetItem accepts."""


class RollupContention(Exception):
    """Other functions changed the same rollups in every attempt; the records have to be counted later."""


def count_records(
    resources: Resources,
    tenant: str,
    records: Iterable[LedgerRecord],
    on_counted: Callable[[Sequence[LedgerRecord]], None] = lambda _: None,
) -> None:
    """Count records into every edition. Idempotent: a record that is counted already is left out.

    Args:
        on_counted: Receives the records that are new in the current edition, transaction by transaction. It is called
            before the next transaction, which may fail, because these records are not counted again.

    Raises:
        ActivityForgotten: A record is too old to be counted.
        RollupContention: Other functions changed the same rollups in every attempt.
    """
    current, *building = read_editions(resources, tenant)
    unique = {record.key: record for record in records if record.increments}
    for batch in _split_for_transactions(unique.values()):
        # An edition that becomes current in between has all that an audit has shown already.
        for edition in building:
            _count_in_transaction(resources, edition, batch)
        on_counted(_count_in_transaction(resources, current, batch))


def count_records_into(resources: Resources, edition: RollupEdition, records: Iterable[LedgerRecord]) -> None:
    """Count records into one edition; otherwise like `count_records`."""
    for batch in _split_for_transactions(records):
        _count_in_transaction(resources, edition, batch)


def _split_for_transactions(records: Iterable[LedgerRecord]) -> Iterator[list[LedgerRecord]]:
    batch: list[LedgerRecord] = []
    for record in records:
        increment_count = sum(len(other.increments) for other in batch) + len(record.increments)
        if batch and increment_count > MAX_INCREMENTS_PER_TRANSACTION:
            yield batch
            batch = []
        batch.append(record)
    if batch:
        yield batch


def _count_in_transaction(
    resources: Resources, edition: RollupEdition, records: list[LedgerRecord]
) -> list[LedgerRecord]:
    """Count the records that have no mark yet, and return them. Rollups that changed meanwhile are read again."""
    for _ in range(MAX_COUNT_ATTEMPTS):
        if not records:
            return []
        writes = [*_build_counted_marks(resources, edition, records), *_build_changes(resources, edition, records)]
        try:
            resources.tables.write_items(*writes)
        except TransactionCanceled as canceled:
            # The marks come first among the writes, so the first reasons are those of the records.
            marked = [reason.condition_failed for reason in canceled.reasons[: len(records)]]
            records = [record for record, is_marked in zip(records, marked, strict=True) if not is_marked]
            if not any(marked):
                resources.clock.sleep(random.uniform(0, 0.05))  # noqa: S311 (jitter, not a secret)
        else:
            return records
    raise RollupContention(
        f"The rollups of {edition.tenant} changed {MAX_COUNT_ATTEMPTS} times "
        f"before {len(records)} records were counted."
    )


def _build_counted_marks(resources: Resources, edition: RollupEdition, records: Iterable[LedgerRecord]) -> list[Write]:
    table = resources.settings.usage_table
    expires = int(resources.clock.time()) + COUNTED_MARK_TTL_SECONDS
    partitions = [edition.counted_mark_partition(record.key) for record in records]
    return [Put(table, {"pk": pk, "sk": "counted", "v": 1, "ttl": expires}, if_absent=True) for pk in partitions]


def _build_changes(resources: Resources, edition: RollupEdition, records: Iterable[LedgerRecord]) -> list[Write]:
    conversations = {record.conversation for record in records if record.conversation}
    delta = RollupDelta(load_activities(resources, edition, conversations))
    for record in records:
        delta.add_record(record)
    rollup_puts = [
        _build_rollup_put(resources, edition, level, period, rollup)
        for (level, period), rollup in delta.rollups.items()
    ]
    activity_puts = [
        build_activity_put(resources, edition, conversation, activity)
        for conversation, activity in delta.activities.items()
        if activity.is_changed
    ]
    return [*rollup_puts, *activity_puts]


def load_activities(
    resources: Resources, edition: RollupEdition, conversations: Iterable[str]
) -> dict[str, ConversationActivity]:
    """Return the stored activity of those conversations that have any."""
    conversation_by_key = {(edition.activity_partition(name), "chat"): name for name in conversations}
    keys = list(conversation_by_key)
    items: dict[tuple[str, str], Item] = {}
    for start in range(0, len(keys), _READ_BATCH_SIZE):
        batch = keys[start : start + _READ_BATCH_SIZE]
        items |= resources.tables.batch_get_items(resources.settings.usage_table, batch)
    return {conversation_by_key[key]: ConversationActivity.unpack(item) for key, item in items.items()}


def build_activity_put(
    resources: Resources, edition: RollupEdition, conversation: str, activity: ConversationActivity
) -> Put:
    """Build the write of an activity, on condition that the stored version is the one that was read."""
    item = {
        "pk": edition.activity_partition(conversation),
        "sk": "chat",
        "v": 1,
        "version": activity.version + 1,
        "data": activity.pack(),
    }
    return _build_versioned_put(resources, item, activity.version)


def _build_rollup_put(
    resources: Resources, edition: RollupEdition, level: RollupLevel, period: str, changes: PeriodRollup
) -> Put:
    """Build the write that adds changes to a period's newest segment, or begins the next one when that is full."""
    newest_items = resources.tables.query_items(
        resources.settings.usage_table,
        edition.period_partition(level),
        min_sk=f"{period}#",
        max_sk=f"{period}#~",
        descending=True,
        limit=1,
    )
    if not newest_items:
        return _build_versioned_put(resources, to_rollup_item(edition, level, period, 0, changes), 0)
    newest = newest_items[0]
    segment = int(newest["sk"].rpartition("#")[2])
    if len(bytes(newest["data"])) >= FULL_SEGMENT_BYTES:
        return _build_versioned_put(resources, to_rollup_item(edition, level, period, segment + 1, changes), 0)
    rollup = PeriodRollup.unpack(bytes(newest["data"]))
    rollup.add(changes)
    item = to_rollup_item(edition, level, period, segment, rollup, newest["version"] + 1)
    return _build_versioned_put(resources, item, newest["version"])


def to_rollup_item(
    edition: RollupEdition, level: RollupLevel, period: str, segment: int, rollup: PeriodRollup, version: int = 1
) -> Item:
    sk = f"{period}#{segment:04d}"
    return {"pk": edition.period_partition(level), "sk": sk, "v": 1, "version": version, "data": rollup.pack()}


def _build_versioned_put(resources: Resources, item: Item, expected_version: int) -> Put:
    """Build a put on condition of the stored version; 0 means that nothing is stored."""
    table = resources.settings.usage_table
    if not expected_version:
        return Put(table, item, if_absent=True)
    values = {":was": expected_version}
    return Put(table, item, condition="#version = :was", values=values, names={"#version": "version"})


def load_rollups(
    resources: Resources, edition: RollupEdition, level: RollupLevel, first: str, last: str
) -> Iterator[tuple[str, PeriodRollup]]:
    """Read all segments of the periods from `first` to `last`, both included.

    Returns:
        Pairs of period and rollup; a period with several segments occurs several times.
    """
    items = resources.tables.query_items(
        resources.settings.usage_table,
        edition.period_partition(level),
        min_sk=first,
        max_sk=f"{last}~",
        consistent=False,
    )
    for item in items:
        yield item["sk"].rpartition("#")[0], PeriodRollup.unpack(bytes(item["data"]))
