"""Three books of the same money: the ledger, its rollups, and the lines the functions wrote. Do they agree?

Whatever differs is said in a sentence. A row of the last minute may not be counted yet: look again.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb import Item
from fermata.aws.resources import Resources
from fermata.usage.audit import query_parameters
from fermata.usage.audit.audit_from_ledger import audit_ledger_rows
from fermata.usage.audit.audit_from_rollups import audit_usage
from fermata.usage.audit.query_parameters import LocalDays
from fermata.usage.ledger import ledger_store
from fermata.usage.ledger.ledger_parsing import find_row_defect
from fermata.usage.ledger.log_lines import (
    COMPARED_LINE_FIELDS,
    OPTIONAL_LINE_FIELDS,
    TAKEN_BACK_EVENT,
    UsageLogLine,
    describe_usage_row,
    log_line_from_row,
    select_logged_rows,
)

_AHEAD_SECONDS = 86_400
_KEY_MEMBERS = {"byUser": ("userId",), "byScope": ("scope",), "byModel": ("providerId", "modelId"), "byDay": ("day",)}


def reconcile_usage(
    resources: Resources, tenant: str, since: str | None, time_zone: str | None, lines: Iterable[UsageLogLine]
) -> list[str]:
    """The differences from `since` on. `lines` are the usage lines from then on, of any tenant, in any order."""
    start = query_parameters.format_instant(query_parameters.parse_since(since, resources.clock.time()))
    items = list(
        ledger_store.read_ledger_rows(resources, tenant, start, iso_from_epoch(resources.clock.time() + _AHEAD_SECONDS))
    )
    broken = {ledger_store.ledger_row_key(row): why for row in items if (why := find_row_defect(row))}
    items = [row for row in items if ledger_store.ledger_row_key(row) not in broken]
    told = audit_usage(resources, tenant, start, time_zone, with_billable=True)
    expected = audit_ledger_rows(
        items, start, LocalDays(query_parameters.parse_time_zone(time_zone)), with_billable=True
    )
    named = [f"{row}: in the ledger, and cannot be read: {why}." for row, why in broken.items()]
    rows = list(select_logged_rows(resources, items))
    return [*named, *_compare_audits(expected, told), *_compare_lines(rows, _group_lines(lines, tenant, start))]


def _compare_audits(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> Iterator[str]:
    yield from _compare_audit_rows("totals", expected["totals"], actual["totals"])
    for part, names in _KEY_MEMBERS.items():
        ours, theirs = _rows_by_key(expected[part], names), _rows_by_key(actual[part], names)
        for name in sorted(ours.keys() | theirs.keys()):
            yield from _compare_audit_rows(f"{part} {name}", ours.get(name, {}), theirs.get(name, {}))


def _rows_by_key(rows: Iterable[Mapping[str, Any]], names: tuple[str, ...]) -> dict[str, Mapping[str, Any]]:
    return {"/".join(str(row[name]) for name in names): row for row in rows}


def _compare_audit_rows(name: str, ledger_row: Mapping[str, Any], rollup_row: Mapping[str, Any]) -> Iterator[str]:
    for number in sorted(ledger_row.keys() | rollup_row.keys()):
        ours, theirs = ledger_row.get(number, 0), rollup_row.get(number, 0)
        if ours != theirs and not isinstance(ours or theirs, str):
            yield f"{name}: {number} is {ours} by the ledger and {theirs} in the rollups."


def _group_lines(lines: Iterable[UsageLogLine], tenant: str, start: str) -> dict[str, list[UsageLogLine]]:
    found: dict[str, list[UsageLogLine]] = defaultdict(list)
    for line in lines:
        if line.get("tenant") == tenant and str(line.get("at", "")) >= start:
            found[describe_usage_row(line)].append(line)
    return found


def _compare_lines(rows: Iterable[Item], lines: dict[str, list[UsageLogLine]]) -> Iterator[str]:
    left = dict(lines)
    for row in rows:
        name = describe_usage_row(row)
        told = left.pop(name, [])
        if not told:
            yield f"{name}: in the ledger, and no line in the logs."
        for line in told[:1]:
            yield from _compare_line(name, log_line_from_row(row), line)
        if len(told) > 1:
            yield f"{name}: {len(told)} lines in the logs, and one row in the ledger."
    for name, told in sorted(left.items()):
        if told[0].get("event") == TAKEN_BACK_EVENT:
            yield f"{name}: at nobody's expense in the logs, and not in the ledger."
        else:
            yield f"{name}: a line in the logs, and not in the ledger."


def _compare_line(name: str, ours: UsageLogLine, theirs: UsageLogLine) -> Iterator[str]:
    """Everything that a line says of its row."""
    for fact in COMPARED_LINE_FIELDS:
        if ours.get(fact) != theirs.get(fact) and not (fact in OPTIONAL_LINE_FIELDS and fact not in theirs):
            yield f"{name}: {fact} is {ours.get(fact)} in the ledger and {theirs.get(fact)} in the logs."
