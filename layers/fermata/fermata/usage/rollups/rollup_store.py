"""Rollups: the ledger summed by quarter of an hour and by day, each row exactly once.

    t#<tenant>#rollup                     edition     which edition counts, and which is being built
    t#<tenant>#rollup#<n>#day             <day>#<segment>       a sheet (sheets.py)
    t#<tenant>#rollup#<n>#quarter         <quarter>#<segment>   a sheet
    t#<tenant>#rollup#<n>#chat#<id>       chat        when the conversation was active
    t#<tenant>#rollup#<n>#counted#<key>   counted     this row is in the sheets; gone after two weeks

A row, its sheets and its conversation change in one transaction, each on the version that was read.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from fermata.aws.dynamodb import Item, Put, TransactionCanceled, Write
from fermata.aws.resources import Resources
from fermata.usage.rollups.conversation_activity import ConversationActivity
from fermata.usage.rollups.period_rollup import PeriodRollup
from fermata.usage.rollups.rollup_delta import MAX_POSTINGS_PER_TRANSACTION, RollupDelta, RollupLevel, RollupRecord

FULL_SEGMENT_BYTES = 16 * 1024
"""Bytes from which a sheet goes on in a new segment: every change writes the whole segment."""
COUNTED_MARK_TTL_SECONDS = 14 * 86400
"""A stream repeats itself for a day at most."""
MAX_COUNT_ATTEMPTS = 30
_READ_BATCH_SIZE = 100
"""Items in one BatchGetItem."""


class RollupContention(Exception):
    """Others changed the same sheets again and again; the records are to be counted later."""


@dataclass(frozen=True)
class RollupEdition:
    """One complete set of a tenant's rollups. A rebuild makes the next one."""

    tenant: str
    number: int

    @property
    def partition_prefix(self) -> str:
        return f"t#{self.tenant}#rollup#{self.number}"

    def period_partition(self, level: RollupLevel) -> str:
        return f"{self.partition_prefix}#{level}"

    def activity_partition(self, conversation: str) -> str:
        return f"{self.partition_prefix}#chat#{conversation}"

    def counted_mark_partition(self, key: str) -> str:
        return f"{self.partition_prefix}#counted#{key}"


def read_editions(resources: Resources, tenant: str) -> list[RollupEdition]:
    """The current one first, then the one that is being built, if any."""
    item = resources.tables.get_item(resources.settings.usage_table, f"t#{tenant}#rollup", "edition") or {"current": 1}
    numbers = [item["current"], *([item["building"]] if "building" in item else [])]
    return [RollupEdition(tenant, number) for number in numbers]


def count_records(
    resources: Resources,
    tenant: str,
    records: Iterable[RollupRecord],
    on_counted: Callable[[Sequence[RollupRecord]], None] = lambda _: None,
) -> None:
    """Count records into every edition. Of those that the current one did not have yet, `tell` hears as soon as they
    are counted: what comes after them may fail, and they are not counted again.
    """
    current, *building = read_editions(resources, tenant)
    for part in _split_for_transactions({record.key: record for record in records if record.postings}.values()):
        on_counted(_count_in_transaction(resources, current, part))
        for edition in building:
            _count_in_transaction(resources, edition, part)


def count_records_into(resources: Resources, edition: RollupEdition, records: Iterable[RollupRecord]) -> None:
    for part in _split_for_transactions(records):
        _count_in_transaction(resources, edition, part)


def _split_for_transactions(records: Iterable[RollupRecord]) -> Iterator[list[RollupRecord]]:
    """As many records as one transaction takes."""
    part: list[RollupRecord] = []
    for record in records:
        if part and sum(len(each.postings) for each in part) + len(record.postings) > MAX_POSTINGS_PER_TRANSACTION:
            yield part
            part = []
        part.append(record)
    if part:
        yield part


def _count_in_transaction(
    resources: Resources, edition: RollupEdition, records: list[RollupRecord]
) -> list[RollupRecord]:
    """What is marked already is left out, what somebody else changed meanwhile is read again. Returns the rest."""
    for _ in range(MAX_COUNT_ATTEMPTS):
        if not records:
            return []
        try:
            resources.tables.write_items(
                *_build_counted_marks(resources, edition, records), *_build_changes(resources, edition, records)
            )
        except TransactionCanceled as refused:
            marked = [reason.condition_failed for reason in refused.reasons[: len(records)]]
            records = [record for record, is_marked in zip(records, marked, strict=True) if not is_marked]
            if not any(marked):
                resources.clock.sleep(random.uniform(0, 0.05))  # noqa: S311 (jitter, not a secret)
        else:
            return records
    raise RollupContention(
        f"The rollups of {edition.tenant} changed {MAX_COUNT_ATTEMPTS} times "
        f"before {len(records)} records were counted."
    )


def _build_counted_marks(resources: Resources, edition: RollupEdition, records: Iterable[RollupRecord]) -> list[Write]:
    table, until = resources.settings.usage_table, int(resources.clock.time()) + COUNTED_MARK_TTL_SECONDS
    rows = [
        {"pk": edition.counted_mark_partition(record.key), "sk": "counted", "v": 1, "ttl": until} for record in records
    ]
    return [Put(table, row, if_absent=True) for row in rows]


def _build_changes(resources: Resources, edition: RollupEdition, records: Iterable[RollupRecord]) -> list[Write]:
    books = RollupDelta(
        load_activities(resources, edition, {record.conversation for record in records if record.conversation})
    )
    for record in records:
        books.add_record(record)
    sheets = [_build_rollup_put(resources, edition, *place, sheet) for place, sheet in books.rollups.items()]
    chats = [
        build_activity_put(resources, edition, name, chat) for name, chat in books.activities.items() if chat.is_changed
    ]
    return [*sheets, *chats]


def load_activities(
    resources: Resources, edition: RollupEdition, conversations: Iterable[str]
) -> dict[str, ConversationActivity]:
    """Those that are known."""
    places = {(edition.activity_partition(name), "chat"): name for name in conversations}
    keys = list(places)
    found: dict[tuple[str, str], Item] = {}
    for start in range(0, len(keys), _READ_BATCH_SIZE):
        found |= resources.tables.batch_get_items(
            resources.settings.usage_table, keys[start : start + _READ_BATCH_SIZE]
        )
    return {places[place]: ConversationActivity.unpack(item) for place, item in found.items()}


def build_activity_put(
    resources: Resources, edition: RollupEdition, conversation: str, activity: ConversationActivity
) -> Put:
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
    """Added to the newest segment, or begun as the next one when that is full."""
    pk, table = edition.period_partition(level), resources.settings.usage_table
    newest = resources.tables.query_items(
        table, pk, min_sk=f"{period}#", max_sk=f"{period}#~", descending=True, limit=1
    )
    if not newest:
        return _build_versioned_put(resources, to_rollup_item(edition, level, period, 0, changes), 0)
    item = newest[0]
    segment = int(item["sk"].rpartition("#")[2])
    if len(bytes(item["data"])) >= FULL_SEGMENT_BYTES:
        return _build_versioned_put(resources, to_rollup_item(edition, level, period, segment + 1, changes), 0)
    sheet = PeriodRollup.unpack(bytes(item["data"]))
    sheet.add(changes)
    return _build_versioned_put(
        resources, to_rollup_item(edition, level, period, segment, sheet, item["version"] + 1), item["version"]
    )


def to_rollup_item(
    edition: RollupEdition, level: RollupLevel, period: str, segment: int, rollup: PeriodRollup, version: int = 1
) -> Item:
    sk = f"{period}#{segment:04d}"
    return {"pk": edition.period_partition(level), "sk": sk, "v": 1, "version": version, "data": rollup.pack()}


def _build_versioned_put(resources: Resources, item: Item, expected_version: int) -> Put:
    if not expected_version:
        return Put(resources.settings.usage_table, item, if_absent=True)
    return Put(
        resources.settings.usage_table,
        item,
        condition="#version = :was",
        values={":was": expected_version},
        names={"#version": "version"},
    )


def load_rollups(
    resources: Resources, edition: RollupEdition, level: RollupLevel, first: str, last: str
) -> Iterator[tuple[str, PeriodRollup]]:
    """Every segment from period `first` to `last`, both included: a period may come several times."""
    table = resources.settings.usage_table
    for item in resources.tables.query_items(
        table, edition.period_partition(level), min_sk=first, max_sk=f"{last}~", consistent=False
    ):
        yield item["sk"].rpartition("#")[0], PeriodRollup.unpack(bytes(item["data"]))
