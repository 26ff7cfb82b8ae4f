"""Whose days: by every quarter of an hour, around the moments when clocks change."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest

from fermata.usage.audit.local_days import LocalDays
from fermata.usage.audit.query_parameters import DEFAULT_AUDIT_DAYS as USUAL_DAYS
from fermata.usage.audit.query_parameters import parse_since
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
    """All that have this date on a clock there."""
    noon = quarter_from_instant(f"{day}T12:00Z")
    near = range(noon - 3 * 96, noon + 3 * 96)
    return [quarter for quarter in near if quarter_start(quarter).astimezone(ZoneInfo(zone)).date().isoformat() == day]


@pytest.mark.parametrize(("zone", "day"), HOURS_OF_DAY)
def test_a_day_has_as_many_hours_as_the_clocks_there_show(zone: str, day: str) -> None:
    quarters, days = find_quarters_of_day(zone, day), LocalDays(ZoneInfo(zone))
    assert len(quarters) / 4 == HOURS_OF_DAY[zone, day]
    assert {days.day_of_quarter(quarter).label for quarter in quarters} == {day}
    found = days.day_of_quarter(quarters[0])
    assert (found.first_quarter, found.end_quarter) == (quarters[0], quarters[-1] + 1)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("change", CLOCK_CHANGES)
def test_every_quarter_is_on_the_day_that_a_clock_there_shows(zone: str, change: str) -> None:
    days, begin = LocalDays(ZoneInfo(zone)), quarter_from_instant(change)
    for quarter in range(begin, begin + DAYS * 96):
        assert (
            days.day_of_quarter(quarter).label == quarter_start(quarter).astimezone(ZoneInfo(zone)).date().isoformat()
        )


def test_in_every_zone_of_the_world_days_follow_one_another_without_a_gap_for_a_year() -> None:
    """So that no row is on two days, or on none; and all of them begin with a quarter."""
    first, offsets = quarter_from_instant("2026-01-01T00:00Z"), Counter[int]()
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        days, quarter = LocalDays(zone), first
        while quarter < first + 366 * 96:
            day = days.day_of_quarter(quarter)
            assert day.first_quarter <= quarter < day.end_quarter
            assert quarter_start(day.end_quarter).astimezone(zone).date() == date.fromisoformat(day.label) + timedelta(
                days=1
            )
            quarter = day.end_quarter
        offset = quarter_start(first).astimezone(zone).utcoffset() or timedelta()
        offsets[int(offset.total_seconds()) % 900] += 1
    assert set(offsets) == {0}


NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026", "2026-01-01T00:00:00.000Z"),
        ("2026-11", "2026-11-01T00:00:00.000Z"),
        ("2026-11-28", "2026-11-28T00:00:00.000Z"),
        ("2026-11T10:30Z", "2026-11-01T10:30:00.000Z"),
        ("2026-11-28T10:30", "2026-11-28T10:30:00.000Z"),
        ("2026-11-28 10:30", "2026-11-28T10:30:00.000Z"),
        ("2026-11-28T10:30:15.1239Z", "2026-11-28T10:30:15.123Z"),
        ("2026-11-28T10:30:15+05:45", "2026-11-28T04:45:15.000Z"),
        ("2026-11-28T10:30:15 05:45", "2026-11-28T04:45:15.000Z"),
        ("2026-11-28t10:30:15z", "2026-11-28T10:30:15.000Z"),
        ("2026-11-28T24:00Z", "2026-11-29T00:00:00.000Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000Z"),
        ("9999-12-31T23:59:59-05:00", "9999-12-31T23:59:59.999Z"),
        ("9999-12-31T24:00Z", "9999-12-31T23:59:59.999Z"),
        ("0001-01-01T00:00+05:00", "0001-01-01T00:00:00.000Z"),
    ],
)
def test_an_instant_is_read_as_javascript_reads_it(text: str, instant: str) -> None:
    found = parse_since(text, NOW.timestamp())
    assert found.isoformat(timespec="milliseconds").replace("+00:00", "Z") == instant


@pytest.mark.parametrize(
    "text",
    [
        "20261128",
        "2026-W48-6",
        "2026-W48",
        "2026-332",
        "202611",
        "2026-13",
        "2026-02-30",
        "2026-11-28T10",
        "2026-11-28T1030",
        "2026-11-28T25:00",
        "2026-11-28T24:01",
        "2026-11-28T10:30:15,5Z",
        "2026-11-28T10:30+99:00",
        "2026-11-28Z",
        "\u0662026-11-28",
        "yesterday",
        "",
        None,
    ],
)
def test_what_is_no_instant_there_is_thirty_days_ago(text: str | None) -> None:
    assert parse_since(text, NOW.timestamp()) == NOW - timedelta(days=USUAL_DAYS)
