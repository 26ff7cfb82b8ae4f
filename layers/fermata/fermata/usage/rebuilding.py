"""Rebuild a tenant's rollups from its ledger, while the stream goes on counting.

The rows that no stream repeats any more are summed in memory and written as they come out. From then on the stream
counts into both editions, and the recent rows are counted again into the new one, where each counts once as ever.
Then the new edition is the current one, and the old one is deleted.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from fermata.aws.clock import instant
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Delete, Item, Put, Write
from fermata.usage import ledger
from fermata.usage.books import Books
from fermata.usage.records import records_of, unreadable
from fermata.usage.rollups import FULL, Edition, count_into, put_chat, sheet_item
from fermata.usage.sheets import Sheet

SETTLED_SECONDS = 2 * 86400
"""A stream keeps its records for a day."""
INDEX_SECONDS = 5
"""By then the index holds what was written before."""
AT_ONCE = 100


def rebuild(desk: Desk, tenant: str, pass_over: Callable[[str], None] = lambda _: None) -> int:
    """Returns how many rows of the ledger were counted. `pass_over` hears of each that cannot be read."""

    def readable(first: str, behind: str) -> Iterator[Item]:
        for row in ledger.between(desk, tenant, first, behind):
            if why := unreadable(row):
                pass_over(f"{ledger.key(row)}: {why}")
            else:
                yield row

    old, new = _begin(desk, tenant)
    settled, now = instant(desk.clock.time() - SETTLED_SECONDS), instant(desk.clock.time() + SETTLED_SECONDS)
    books, chats, rows = Books(), set[str](), 0
    for row in readable(ledger.FIRST_MONTH, settled):
        rows += 1
        for record in records_of(desk, row):
            books.post(record)
    install(desk, new, books)
    _set(desk, tenant, current=old.number, building=new.number, last=new.number)
    desk.clock.sleep(INDEX_SECONDS)
    for recent in _batches(readable(settled, now)):
        rows += len(recent)
        records = [record for row in recent for record in records_of(desk, row)]
        count_into(desk, new, records)
        chats |= {record.conversation for record in records}
    _set(desk, tenant, current=new.number, last=new.number)
    _delete(desk, old, chats | set(books.chats))
    return rows


def install(desk: Desk, edition: Edition, books: Books) -> None:
    """Write an edition that nobody counts into yet."""
    puts: list[Write] = []
    for (level, period), sheet in books.sheets.items():
        for segment, page in enumerate(pages(sheet)):
            puts.append(Put(desk.settings.usage_table, sheet_item(edition, level, period, segment, page)))
    puts += [put_chat(desk, edition, name, chat) for name, chat in books.chats.items()]
    _write(desk, puts)


def pages(sheet: Sheet) -> list[Sheet]:
    """A sheet in segments of a bearable size: its users are many, everything else is few."""
    if len(sheet.pack()) < 2 * FULL or len(sheet.users) < 2:
        return [sheet]
    names = sorted(sheet.users)
    first, second = Sheet(scopes=sheet.scopes, models=sheet.models, quarters=sheet.quarters, gaps=sheet.gaps), Sheet()
    for number, name in enumerate(names):
        (first if number < len(names) // 2 else second).users[name] = sheet.users[name]
    return [*pages(first), *pages(second)]


def _begin(desk: Desk, tenant: str) -> tuple[Edition, Edition]:
    """The number of an attempt is never used again, so that one that broke off leaves nothing in the next one's way."""
    item = desk.tables.get(desk.settings.usage_table, f"t#{tenant}#rollup", "edition") or {"current": 1}
    old: int = item["current"]
    number = int(item.get("last") or old) + 1
    _set(desk, tenant, current=old, last=number)
    return Edition(tenant, old), Edition(tenant, number)


def _set(desk: Desk, tenant: str, **numbers: int) -> None:
    item = {"pk": f"t#{tenant}#rollup", "sk": "edition", "v": 1, **numbers}
    desk.tables.write(Put(desk.settings.usage_table, item))


def _delete(desk: Desk, edition: Edition, conversations: Iterable[str]) -> None:
    table = desk.settings.usage_table
    places = [(edition.chat(name), "chat") for name in conversations]
    for pk in (edition.sheets("day"), edition.sheets("quarter")):
        places += [(pk, item["sk"]) for item in desk.tables.query(table, pk)]
    _write(desk, [Delete(table, pk, sk) for pk, sk in places])


def _write(desk: Desk, writes: Sequence[Write]) -> None:
    """Many in one request."""
    for start in range(0, len(writes), AT_ONCE):
        desk.tables.write(*writes[start : start + AT_ONCE])


def _batches(rows: Iterator[Item]) -> Iterator[list[Item]]:
    while batch := list(islice(rows, AT_ONCE)):
        yield batch
