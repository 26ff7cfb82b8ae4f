"""Parsing of `since`: the forms that JavaScript's dates accept, and the default."""

from datetime import UTC, datetime, timedelta

import pytest

from fermata.usage.audit.query_parameters import DEFAULT_AUDIT_DAYS, parse_since

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
def test_an_instant_is_parsed_as_javascript_parses_it(text: str, instant: str) -> None:
    since = parse_since(text, NOW.timestamp())
    assert since.isoformat(timespec="milliseconds").replace("+00:00", "Z") == instant


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
def test_what_javascript_does_not_parse_means_thirty_days_ago(text: str | None) -> None:
    assert parse_since(text, NOW.timestamp()) == NOW - timedelta(days=DEFAULT_AUDIT_DAYS)
