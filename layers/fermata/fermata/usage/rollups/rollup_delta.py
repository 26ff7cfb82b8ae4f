"""Posting: what ledger rows add to the sheets. Pure, and in any order the same.

Distinct conversations are counted by addition. One is counted where its latest activity is, so those active since
some quarter are the sum over the quarters from there on. Within a day, it is counted at each quarter of its activity
together with the gap before it: those active in the day are the ones whose gap reaches back beyond its beginning.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fermata.usage.quarter_hours import QUARTERS_PER_DAY, quarter_day, quarter_label
from fermata.usage.rollups.conversation_activity import MAX_GAP_QUARTERS, ConversationActivity, RollupDimension
from fermata.usage.rollups.period_rollup import PeriodRollup, UsageTotals

MAX_POSTINGS_PER_TRANSACTION = 24
"""Postings in one transaction of at most 100 writes: each may bring its row's mark, a chat and two sheets."""

RollupLevel = Literal["day", "quarter"]


@dataclass(frozen=True, slots=True)
class Posting:
    """`model` is `provider/model`."""

    quarter: int
    user: str
    scope: str
    model: str
    totals: UsageTotals

    @property
    def names(self) -> tuple[tuple[RollupDimension, str], ...]:
        return (("users", self.user), ("scopes", self.scope), ("models", self.model))


@dataclass(frozen=True, slots=True)
class RollupRecord:
    """A row of the ledger, as the sheets see it. `conversation`: the one that was active with it, if any."""

    key: str
    postings: tuple[Posting, ...]
    conversation: str = ""


class RollupDelta:
    """The changes of some records: sheets to be added to those that are kept, and chats as they are afterwards."""

    def __init__(self, activities: Mapping[str, ConversationActivity] | None = None) -> None:
        self.rollups: dict[tuple[RollupLevel, str], PeriodRollup] = {}
        self.activities = dict(activities or {})

    def add_record(self, record: RollupRecord) -> None:
        for posting in record.postings:
            self._add_posting(posting)
            if record.conversation:
                self._add_activity(self.activities.setdefault(record.conversation, ConversationActivity()), posting)

    def _add_posting(self, posting: Posting) -> None:
        for sheet in self._rollups_at(posting.quarter):
            for dimension, name in posting.names:
                sheet.get_totals(dimension)[name].add(posting.totals)
        self._rollup_at("day", posting.quarter).quarters[posting.quarter % QUARTERS_PER_DAY].add(posting.totals)

    def _add_activity(self, activity: ConversationActivity, posting: Posting) -> None:
        quarter = posting.quarter
        before, after = activity.find_neighbours(quarter)
        if after != quarter:
            self._count_gap(quarter, before, 1)
            if after is not None:
                self._count_gap(after, before, -1)
                self._count_gap(after, quarter, 1)
            activity.add_quarter(quarter)
        for dimension, name in posting.names:
            last = activity.get_latest(dimension, name)
            if last is None or last < quarter:
                self._move_conversation(dimension, name, last, quarter)
                activity.set_latest(dimension, name, quarter)

    def _count_gap(self, quarter: int, before: int | None, count: int) -> None:
        size = 0 if before is None or quarter - before > MAX_GAP_QUARTERS else quarter - before
        self._rollup_at("day", quarter).gaps[quarter % QUARTERS_PER_DAY][size] += count

    def _move_conversation(self, dimension: RollupDimension, name: str, before: int | None, now: int) -> None:
        """A conversation's latest activity is `now`."""
        for quarter, count in ((before, -1), (now, 1)):
            for sheet in self._rollups_at(quarter) if quarter is not None else ():
                sheet.get_totals(dimension)[name].conversations += count

    def _rollups_at(self, quarter: int) -> tuple[PeriodRollup, PeriodRollup]:
        return self._rollup_at("day", quarter), self._rollup_at("quarter", quarter)

    def _rollup_at(self, level: RollupLevel, quarter: int) -> PeriodRollup:
        period = quarter_day(quarter) if level == "day" else quarter_label(quarter)
        return self.rollups.setdefault((level, period), PeriodRollup())
