"""Compute what ledger records add to the rollups. Pure, and independent of the order of the records.

Distinct conversations are counted by addition (decision 0051):

- A conversation counts in the quarter of its latest activity. So those active since a quarter are the sum over the
  quarters from there on.
- Within a day, it counts in each quarter of its activity, together with the gap before it. So those active in a day are
  the ones whose gap reaches back beyond the start of the day.
"""

from collections.abc import Mapping

from fermata.usage.ledger.usage_increments import LedgerRecord, UsageIncrement
from fermata.usage.quarter_hours import QUARTERS_PER_DAY, quarter_day, quarter_label
from fermata.usage.rollups.conversation_activity import MAX_GAP_QUARTERS, ConversationActivity
from fermata.usage.rollups.period_rollup import PeriodRollup
from fermata.usage.rollups.rollup_version import RollupLevel
from fermata.usage.usage_totals import UsageDimension


class RollupDelta:
    """Changes that records make.

    Attributes:
        rollups: What to add, by level and period (a day or a quarter label).
        activities: Each conversation's activity afterwards.
    """

    def __init__(self, activities: Mapping[str, ConversationActivity] | None = None) -> None:
        self.rollups: dict[tuple[RollupLevel, str], PeriodRollup] = {}
        self.activities = dict(activities or {})

    def add_record(self, record: LedgerRecord) -> None:
        """Add what one ledger record changes, in its day and in its quarter of an hour."""
        for increment in record.increments:
            self._add_increment(increment)
            if record.conversation:
                self._add_activity(self.activities.setdefault(record.conversation, ConversationActivity()), increment)

    def _add_increment(self, increment: UsageIncrement) -> None:
        for rollup in self._rollups_at(increment.quarter):
            for dimension, name in increment.names:
                rollup.get_totals(dimension)[name].add(increment.totals)
        self._rollup_at("day", increment.quarter).quarters[increment.quarter % QUARTERS_PER_DAY].add(increment.totals)

    def _add_activity(self, activity: ConversationActivity, increment: UsageIncrement) -> None:
        quarter = increment.quarter
        before, after = activity.find_neighbours(quarter)
        if after != quarter:
            self._count_gap(quarter, before, 1)
            if after is not None:
                self._count_gap(after, before, -1)
                self._count_gap(after, quarter, 1)
            activity.add_quarter(quarter)
        for dimension, name in increment.names:
            latest = activity.get_latest(dimension, name)
            if latest is None or latest < quarter:
                self._move_conversation(dimension, name, latest, quarter)
                activity.set_latest(dimension, name, quarter)

    def _count_gap(self, quarter: int, before: int | None, count: int) -> None:
        gap = 0 if before is None or quarter - before > MAX_GAP_QUARTERS else quarter - before
        self._rollup_at("day", quarter).gaps[quarter % QUARTERS_PER_DAY][gap] += count

    def _move_conversation(self, dimension: UsageDimension, name: str, before: int | None, now: int) -> None:
        """Move the count of a conversation from the quarter of its latest activity so far to that of its new one."""
        for quarter, count in ((before, -1), (now, 1)):
            for rollup in self._rollups_at(quarter) if quarter is not None else ():
                rollup.get_totals(dimension)[name].conversations += count

    def _rollups_at(self, quarter: int) -> tuple[PeriodRollup, PeriodRollup]:
        return self._rollup_at("day", quarter), self._rollup_at("quarter", quarter)

    def _rollup_at(self, level: RollupLevel, quarter: int) -> PeriodRollup:
        period = quarter_day(quarter) if level == "day" else quarter_label(quarter)
        return self.rollups.setdefault((level, period), PeriodRollup())
