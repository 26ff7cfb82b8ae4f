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

from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item, Put, TransactionRefused, Write
from fermata.usage.books import AT_ONCE, Books, Level, Record
from fermata.usage.chats import Chat
from fermata.usage.sheets import Sheet

FULL = 16 * 1024
"""Bytes from which a sheet goes on in a new segment: every change writes the whole segment."""
MARK_SECONDS = 14 * 86400
"""A stream repeats itself for a day at most."""
TRIES = 30
MOST_KEYS = 100
"""Items in one BatchGetItem."""


class TooBusy(Exception):
    """Others changed the same sheets again and again; the records are to be counted later."""


@dataclass(frozen=True)
class Edition:
    """One complete set of a tenant's rollups. A rebuild makes the next one."""

    tenant: str
    number: int

    @property
    def pk(self) -> str:
        return f"t#{self.tenant}#rollup#{self.number}"

    def sheets(self, level: Level) -> str:
        return f"{self.pk}#{level}"

    def chat(self, conversation: str) -> str:
        return f"{self.pk}#chat#{conversation}"

    def counted(self, key: str) -> str:
        return f"{self.pk}#counted#{key}"


def editions(desk: Desk, tenant: str) -> list[Edition]:
    """The current one first, then the one that is being built, if any."""
    item = desk.tables.get(desk.settings.usage_table, f"t#{tenant}#rollup", "edition") or {"current": 1}
    numbers = [item["current"], *([item["building"]] if "building" in item else [])]
    return [Edition(tenant, number) for number in numbers]


def count(
    desk: Desk, tenant: str, records: Iterable[Record], tell: Callable[[Sequence[Record]], None] = lambda _: None
) -> None:
    """Count records into every edition. Of those that the current one did not have yet, `tell` hears as soon as they
    are counted: what comes after them may fail, and they are not counted again.
    """
    current, *building = editions(desk, tenant)
    for part in _parts({record.key: record for record in records if record.postings}.values()):
        tell(_count(desk, current, part))
        for edition in building:
            _count(desk, edition, part)


def count_into(desk: Desk, edition: Edition, records: Iterable[Record]) -> None:
    for part in _parts(records):
        _count(desk, edition, part)


def _parts(records: Iterable[Record]) -> Iterator[list[Record]]:
    """As many records as one transaction takes."""
    part: list[Record] = []
    for record in records:
        if part and sum(len(each.postings) for each in part) + len(record.postings) > AT_ONCE:
            yield part
            part = []
        part.append(record)
    if part:
        yield part


def _count(desk: Desk, edition: Edition, records: list[Record]) -> list[Record]:
    """What is marked already is left out, what somebody else changed meanwhile is read again. Returns the rest."""
    for _ in range(TRIES):
        if not records:
            return []
        try:
            desk.tables.write(*_marks(desk, edition, records), *_changes(desk, edition, records))
        except TransactionRefused as refused:
            marked = [reason.failed for reason in refused.reasons[: len(records)]]
            records = [record for record, is_marked in zip(records, marked, strict=True) if not is_marked]
            if not any(marked):
                desk.clock.sleep(random.uniform(0, 0.05))  # noqa: S311 (jitter, not a secret)
        else:
            return records
    raise TooBusy(f"The rollups of {edition.tenant} changed {TRIES} times before {len(records)} records were counted.")


def _marks(desk: Desk, edition: Edition, records: Iterable[Record]) -> list[Write]:
    table, until = desk.settings.usage_table, int(desk.clock.time()) + MARK_SECONDS
    rows = [{"pk": edition.counted(record.key), "sk": "counted", "v": 1, "ttl": until} for record in records]
    return [Put(table, row, absent=True) for row in rows]


def _changes(desk: Desk, edition: Edition, records: Iterable[Record]) -> list[Write]:
    books = Books(load_chats(desk, edition, {record.conversation for record in records if record.conversation}))
    for record in records:
        books.post(record)
    sheets = [_sheet(desk, edition, *place, sheet) for place, sheet in books.sheets.items()]
    chats = [put_chat(desk, edition, name, chat) for name, chat in books.chats.items() if chat.changed]
    return [*sheets, *chats]


def load_chats(desk: Desk, edition: Edition, conversations: Iterable[str]) -> dict[str, Chat]:
    """Those that are known."""
    places = {(edition.chat(name), "chat"): name for name in conversations}
    keys = list(places)
    found: dict[tuple[str, str], Item] = {}
    for start in range(0, len(keys), MOST_KEYS):
        found |= desk.tables.batch_get(desk.settings.usage_table, keys[start : start + MOST_KEYS])
    return {places[place]: Chat.unpack(item) for place, item in found.items()}


def put_chat(desk: Desk, edition: Edition, name: str, chat: Chat) -> Put:
    item = {"pk": edition.chat(name), "sk": "chat", "v": 1, "version": chat.version + 1, "data": chat.pack()}
    return _versioned(desk, item, chat.version)


def _sheet(desk: Desk, edition: Edition, level: Level, period: str, changes: Sheet) -> Put:
    """Added to the newest segment, or begun as the next one when that is full."""
    pk, table = edition.sheets(level), desk.settings.usage_table
    newest = desk.tables.query(table, pk, low=f"{period}#", high=f"{period}#~", descending=True, limit=1)
    if not newest:
        return _versioned(desk, sheet_item(edition, level, period, 0, changes), 0)
    item = newest[0]
    segment = int(item["sk"].rpartition("#")[2])
    if len(bytes(item["data"])) >= FULL:
        return _versioned(desk, sheet_item(edition, level, period, segment + 1, changes), 0)
    sheet = Sheet.unpack(bytes(item["data"]))
    sheet.add(changes)
    return _versioned(desk, sheet_item(edition, level, period, segment, sheet, item["version"] + 1), item["version"])


def sheet_item(edition: Edition, level: Level, period: str, segment: int, sheet: Sheet, version: int = 1) -> Item:
    sk = f"{period}#{segment:04d}"
    return {"pk": edition.sheets(level), "sk": sk, "v": 1, "version": version, "data": sheet.pack()}


def _versioned(desk: Desk, item: Item, was: int) -> Put:
    if not was:
        return Put(desk.settings.usage_table, item, absent=True)
    return Put(
        desk.settings.usage_table,
        item,
        condition="#version = :was",
        values={":was": was},
        names={"#version": "version"},
    )


def load_sheets(desk: Desk, edition: Edition, level: Level, first: str, last: str) -> Iterator[tuple[str, Sheet]]:
    """Every segment from period `first` to `last`, both included: a period may come several times."""
    table = desk.settings.usage_table
    for item in desk.tables.query(table, edition.sheets(level), low=first, high=f"{last}~", consistent=False):
        yield item["sk"].rpartition("#")[0], Sheet.unpack(bytes(item["data"]))
