"""Posting: what ledger rows add to the sheets. Pure, and in any order the same.

Distinct conversations are counted by addition. One is counted where its latest activity is, so those active since
some quarter are the sum over the quarters from there on. Within a day, it is counted at each quarter of its activity
together with the gap before it: those active in the day are the ones whose gap reaches back beyond its beginning.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fermata.usage.chats import LONGEST_GAP, Chat, Dimension
from fermata.usage.quarters import A_DAY, day_of, name_of
from fermata.usage.sheets import Sheet, Totals

AT_ONCE = 24
"""Postings in one transaction of at most 100 writes: each may bring its row's mark, a chat and two sheets."""

Level = Literal["day", "quarter"]


@dataclass(frozen=True, slots=True)
class Posting:
    """`model` is `provider/model`."""

    quarter: int
    user: str
    scope: str
    model: str
    totals: Totals

    @property
    def names(self) -> tuple[tuple[Dimension, str], ...]:
        return (("users", self.user), ("scopes", self.scope), ("models", self.model))


@dataclass(frozen=True, slots=True)
class Record:
    """A row of the ledger, as the sheets see it. `conversation`: the one that was active with it, if any."""

    key: str
    postings: tuple[Posting, ...]
    conversation: str = ""


class Books:
    """The changes of some records: sheets to be added to those that are kept, and chats as they are afterwards."""

    def __init__(self, chats: Mapping[str, Chat] | None = None) -> None:
        self.sheets: dict[tuple[Level, str], Sheet] = {}
        self.chats = dict(chats or {})

    def post(self, record: Record) -> None:
        for posting in record.postings:
            self._add(posting)
            if record.conversation:
                self._see(self.chats.setdefault(record.conversation, Chat()), posting)

    def _add(self, posting: Posting) -> None:
        for sheet in self._both(posting.quarter):
            for dimension, name in posting.names:
                sheet.sums(dimension)[name].add(posting.totals)
        self._sheet("day", posting.quarter).quarters[posting.quarter % A_DAY].add(posting.totals)

    def _see(self, chat: Chat, posting: Posting) -> None:
        quarter = posting.quarter
        before, after = chat.around(quarter)
        if after != quarter:
            self._gap(quarter, before, 1)
            if after is not None:
                self._gap(after, before, -1)
                self._gap(after, quarter, 1)
            chat.add(quarter)
        for dimension, name in posting.names:
            last = chat.last(dimension, name)
            if last is None or last < quarter:
                self._move(dimension, name, last, quarter)
                chat.use(dimension, name, quarter)

    def _gap(self, quarter: int, before: int | None, count: int) -> None:
        size = 0 if before is None or quarter - before > LONGEST_GAP else quarter - before
        self._sheet("day", quarter).gaps[quarter % A_DAY][size] += count

    def _move(self, dimension: Dimension, name: str, was: int | None, now: int) -> None:
        """A conversation's latest activity is `now`."""
        for quarter, count in ((was, -1), (now, 1)):
            for sheet in self._both(quarter) if quarter is not None else ():
                sheet.sums(dimension)[name].chats += count

    def _both(self, quarter: int) -> tuple[Sheet, Sheet]:
        return self._sheet("day", quarter), self._sheet("quarter", quarter)

    def _sheet(self, level: Level, quarter: int) -> Sheet:
        period = day_of(quarter) if level == "day" else name_of(quarter)
        return self.sheets.setdefault((level, period), Sheet())
