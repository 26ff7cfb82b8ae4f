"""Compare the ledger with its rollups and with the log lines, and name each difference in a sentence (decision 0057).

A row of the last minute may not be counted yet; then a second comparison finds no difference.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.usage.audit.audit_from_ledger import audit_ledger_rows
from fermata.usage.audit.audit_from_rollups import audit_usage
from fermata.usage.audit.local_days import LocalDays
from fermata.usage.audit.query_parameters import format_instant, parse_since, parse_time_zone
from fermata.usage.ledger.ledger_parsing import MAX_SECONDS_AHEAD, find_row_defect
from fermata.usage.ledger.ledger_store import ledger_row_key, read_ledger_rows
from fermata.usage.ledger.log_lines import (
    COMPARED_LINE_FIELDS,
    OPTIONAL_LINE_FIELDS,
    TAKEN_BACK_EVENT,
    UsageLogLine,
    describe_usage_row,
    log_line_from_row,
    select_logged_rows,
)

_KEY_MEMBERS = {"byUser": ("userId",), "byScope": ("scope",), "byModel": ("providerId", "modelId"), "byDay": ("day",)}


def reconcile_usage(
    resources: Resources, tenant: str, since: str | None, time_zone: str | None, lines: Iterable[UsageLogLine]
) -> list[str]:
    """Return the differences since an instant, a sentence each.

    Args:
        since: Instant as the operator wrote it; 30 days ago when it is missing or malformed.
        time_zone: IANA name; UTC when it is missing.
        lines: Usage lines since that instant, of any tenant, in any order.
    """
    start = format_instant(parse_since(since, resources.clock.time()))
    now = resources.clock.time()
    end = iso_from_epoch(now + MAX_SECONDS_AHEAD)
    rows = list(read_ledger_rows(resources, tenant, start, end))
    defects = {ledger_row_key(row): defect for row in rows if (defect := find_row_defect(row, now))}
    readable = [row for row in rows if ledger_row_key(row) not in defects]
    days = LocalDays(parse_time_zone(time_zone))
    expected = audit_ledger_rows(readable, start, days, with_billable=True)
    actual = audit_usage(resources, tenant, start, time_zone, with_billable=True)
    logged_rows = list(select_logged_rows(resources, readable))
    return [
        *(f"{key}: in the ledger, and cannot be read: {defect}." for key, defect in defects.items()),
        *_compare_audits(expected, actual),
        *_compare_lines(logged_rows, _group_lines(lines, tenant, start)),
    ]


def _compare_audits(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> Iterator[str]:
    yield from _compare_audit_rows("totals", expected["totals"], actual["totals"])
    for section, members in _KEY_MEMBERS.items():
        expected_rows = _rows_by_key(expected[section], members)
        actual_rows = _rows_by_key(actual[section], members)
        for key in sorted(expected_rows.keys() | actual_rows.keys()):
            yield from _compare_audit_rows(f"{section} {key}", expected_rows.get(key, {}), actual_rows.get(key, {}))


def _rows_by_key(rows: Iterable[Mapping[str, Any]], members: tuple[str, ...]) -> dict[str, Mapping[str, Any]]:
    return {"/".join(str(row[member]) for member in members): row for row in rows}


def _compare_audit_rows(name: str, ledger_row: Mapping[str, Any], rollup_row: Mapping[str, Any]) -> Iterator[str]:
    """Compare the numbers of two rows; texts only identify a row."""
    for member in sorted(ledger_row.keys() | rollup_row.keys()):
        expected = ledger_row.get(member, 0)
        actual = rollup_row.get(member, 0)
        if expected != actual and not isinstance(expected or actual, str):
            yield f"{name}: {member} is {expected} by the ledger and {actual} in the rollups."


def _group_lines(lines: Iterable[UsageLogLine], tenant: str, start: str) -> dict[str, list[UsageLogLine]]:
    """Return the tenant's lines since `start`, by the row they describe."""
    lines_by_row: dict[str, list[UsageLogLine]] = defaultdict(list)
    for line in lines:
        if line.get("tenant") == tenant and str(line.get("at", "")) >= start:
            lines_by_row[describe_usage_row(line)].append(line)
    return lines_by_row


def _compare_lines(rows: Iterable[Item], lines_by_row: Mapping[str, list[UsageLogLine]]) -> Iterator[str]:
    unmatched = dict(lines_by_row)
    for row in rows:
        name = describe_usage_row(row)
        lines = unmatched.pop(name, [])
        if not lines:
            yield f"{name}: in the ledger, and no line in the logs."
        for line in lines[:1]:
            yield from _compare_line(name, log_line_from_row(row), line)
        if len(lines) > 1:
            yield f"{name}: {len(lines)} lines in the logs, and one row in the ledger."
    for name, lines in sorted(unmatched.items()):
        if lines[0].get("event") == TAKEN_BACK_EVENT:
            yield f"{name}: reversed in the logs, and not in the ledger."
        else:
            yield f"{name}: a line in the logs, and not in the ledger."


def _compare_line(name: str, expected: UsageLogLine, actual: UsageLogLine) -> Iterator[str]:
    for field in COMPARED_LINE_FIELDS:
        is_left_out = field in OPTIONAL_LINE_FIELDS and field not in actual
        if expected.get(field) != actual.get(field) and not is_left_out:
            yield f"{name}: {field} is {expected.get(field)} in the ledger and {actual.get(field)} in the logs."
