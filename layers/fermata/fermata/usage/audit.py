"""One audit: what a tenant used since some instant, by user, scope, model and the viewer's days.

It reads a sheet for each day, and for the day it begins in the sheets of its quarters. Where it begins in the middle
of a quarter, the rest of that quarter is read from the ledger, so that every row counts exactly by its instant.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fermata.aws.clock import instant
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item
from fermata.usage import ledger, window
from fermata.usage.books import Posting
from fermata.usage.chats import Chat, Dimension
from fermata.usage.labels import labels_of
from fermata.usage.quarters import A_DAY, SECONDS, begins, day_of, name_of, quarter_of
from fermata.usage.records import request, unreadable
from fermata.usage.rollups import Edition, editions, load_chats, load_sheets
from fermata.usage.rows import phrased
from fermata.usage.sheets import Sheet, Sums, Totals
from fermata.usage.window import LocalDays

LAST_DAY = "9999"


def audit(
    desk: Desk, tenant: str, since: str | None = None, tz: str | None = None, *, with_billable: bool = False
) -> dict[str, Any]:
    start = window.since(since, desk.clock.time())
    if start > window.LAST:
        return phrased(window.written(start), {}, {}, {}, {}, {}, with_billable=with_billable)
    first = -(-round(start.timestamp() * 1000) // (SECONDS * 1000))
    found = Found(first, LocalDays(window.zone(tz)))
    edition = editions(desk, tenant)[0]
    for day, sheet in load_sheets(desk, edition, "day", day_of(first), LAST_DAY):
        found.take_day(day, sheet)
    if first % A_DAY:
        for _, sheet in load_sheets(desk, edition, "quarter", name_of(first), f"{day_of(first)}T"):
            found.take(sheet)
    if start < begins(first):
        rows = _requests(desk, tenant, window.written(start), instant(first * SECONDS))
        _take_beginning(desk, edition, found, rows)
    return phrased(
        window.written(start),
        found.users,
        found.scopes,
        found.models,
        found.days,
        labels_of(desk, tenant),
        with_billable=with_billable,
    )


def _sums() -> Sums:
    return defaultdict(Totals)


@dataclass
class Found:
    """What was found so far. `first` is the first quarter that counts wholly."""

    first: int
    local: LocalDays
    users: Sums = field(default_factory=_sums)
    scopes: Sums = field(default_factory=_sums)
    models: Sums = field(default_factory=_sums)
    days: Sums = field(default_factory=_sums)

    def take_day(self, name: str, sheet: Sheet) -> None:
        midnight = quarter_of(f"{name}T00:00Z")
        if midnight >= self.first:
            self.take(sheet)
        for number, totals in sheet.quarters.items():
            if midnight + number >= self.first:
                self.days[self.local.of(midnight + number).label].add(totals)
        for number, gaps in sheet.gaps.items():
            if midnight + number >= self.first:
                self._take_gaps(midnight + number, gaps)

    def take(self, sheet: Sheet) -> None:
        for mine, theirs in ((self.users, sheet.users), (self.scopes, sheet.scopes), (self.models, sheet.models)):
            for name, totals in theirs.items():
                mine[name].add(totals)

    def _take_gaps(self, quarter: int, gaps: Mapping[int, int]) -> None:
        """A conversation counts in a day at its first activity there: where the gap before reaches out of the day."""
        day = self.local.of(quarter)
        begin = max(day.first, self.first)
        self.days[day.label].chats += sum(count for gap, count in gaps.items() if not gap or quarter - gap < begin)

    def take_row(self, posting: Posting) -> None:
        for dimension, name in posting.names:
            self._sums(dimension)[name].add(posting.totals)
        self.days[self.local.of(posting.quarter).label].add(posting.totals)

    def take_chat(self, chat: Chat, postings: Iterable[Posting]) -> None:
        """A conversation that was active right before `first`; it counts there unless it does later."""
        day = self.local.of(self.first - 1)
        if not chat.is_active(self.first, day.behind):
            self.days[day.label].chats += 1
        for dimension, name in {pair for posting in postings for pair in posting.names}:
            if (chat.last(dimension, name) or 0) < self.first:
                self._sums(dimension)[name].chats += 1

    def _sums(self, dimension: Dimension) -> Sums:
        sums: Sums = getattr(self, dimension)
        return sums


def _requests(desk: Desk, tenant: str, first: str, behind: str) -> list[Item]:
    """Rows of requests that can be read; what the end of their turn took back is not billable in them."""
    found = ledger.between(desk, tenant, first, behind)
    rows = [row for row in found if row["sk"] != ledger.END and not unreadable(row)]
    ends = ledger.ends_of(desk, tenant, {row["turn"] for row in rows})
    return [row | {"billable": row["billable"] and ends.get(row["turn"], True)} for row in rows]


def _take_beginning(desk: Desk, edition: Edition, found: Found, rows: list[Item]) -> None:
    chats: dict[str, list[Posting]] = defaultdict(list)
    for row in rows:
        record = request(row)
        for posting in record.postings:
            found.take_row(posting)
            chats[record.conversation].append(posting)
    known = load_chats(desk, edition, chats)
    for conversation, postings in chats.items():
        found.take_chat(known.get(conversation, Chat()), postings)
