"""Local days in quarters of an hour, around the instants at which clocks change."""

from collections import Counter
from datetime import date, timedelta, tzinfo
from zoneinfo import ZoneInfo, available_timezones

import pytest

from fermata.usage.audit.local_days import LocalDays
from fermata.usage.quarter_hours import quarter_from_instant, quarter_start
from tests.unit.usage.ledger_strategies import CLOCK_CHANGES, DAYS, ZONES

HOURS_OF_DAY = {
    ("Europe/Berlin", "2026-03-29"): 23.0,
    ("Europe/Berlin", "2026-10-25"): 25.0,
    ("Australia/Lord_Howe", "2026-04-05"): 24.5,
    ("Australia/Lord_Howe", "2026-10-04"): 23.5,
    ("Pacific/Chatham", "2026-04-05"): 25.0,
    ("Pacific/Chatham", "2026-09-27"): 23.0,
    ("America/St_Johns", "2026-03-08"): 23.0,
    ("America/Havana", "2026-03-08"): 23.0,  # midnight itself is skipped
    ("America/Havana", "2026-11-01"): 25.0,  # midnight comes twice
    ("Asia/Kathmandu", "2026-03-29"): 24.0,
    ("Pacific/Kiritimati", "2026-10-25"): 24.0,
}


def find_quarters_of_day(zone: str, day: str) -> list[int]:
    """Return the quarters that have this date on a clock of the zone."""
    noon = quarter_from_instant(f"{day}T12:00Z")
    near = range(noon - 3 * 96, noon + 3 * 96)
    return [quarter for quarter in near if local_date(quarter, ZoneInfo(zone)).isoformat() == day]


def local_date(quarter: int, zone: tzinfo) -> date:
    return quarter_start(quarter).astimezone(zone).date()


@pytest.mark.parametrize(("zone", "day"), HOURS_OF_DAY)
def test_a_day_has_as_many_hours_as_the_clocks_of_its_zone_show(zone: str, day: str) -> None:
    quarters = find_quarters_of_day(zone, day)
    days = LocalDays(ZoneInfo(zone))
    assert len(quarters) / 4 == HOURS_OF_DAY[zone, day]
    assert {days.day_of_quarter(quarter).label for quarter in quarters} == {day}
    local_day = days.day_of_quarter(quarters[0])
    assert (local_day.first_quarter, local_day.end_quarter) == (quarters[0], quarters[-1] + 1)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("change", CLOCK_CHANGES)
def test_every_quarter_is_in_the_day_that_a_clock_of_its_zone_shows(zone: str, change: str) -> None:
    days = LocalDays(ZoneInfo(zone))
    begin = quarter_from_instant(change)
    for quarter in range(begin, begin + DAYS * 96):
        assert days.day_of_quarter(quarter).label == local_date(quarter, ZoneInfo(zone)).isoformat()


@pytest.mark.exhaustive
def test_in_every_zone_of_the_world_days_follow_one_another_without_a_gap_for_a_year() -> None:
    """So no row is in two days or in none. And every day begins with a quarter."""
    first = quarter_from_instant("2026-01-01T00:00Z")
    offsets = Counter[int]()
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        days = LocalDays(zone)
        quarter = first
        while quarter < first + 366 * 96:
            day = days.day_of_quarter(quarter)
            assert day.first_quarter <= quarter < day.end_quarter
            assert local_date(day.end_quarter, zone) == date.fromisoformat(day.label) + timedelta(days=1)
            quarter = day.end_quarter
        offset = quarter_start(first).astimezone(zone).utcoffset() or timedelta()
        offsets[int(offset.total_seconds()) % 900] += 1
    assert set(offsets) == {0}
