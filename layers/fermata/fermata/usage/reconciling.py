"""Three books of the same money: the ledger, its rollups, and the lines the functions wrote. Do they agree?

Whatever differs is said in a sentence. A row of the last minute may not be counted yet: look again.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fermata.aws.clock import instant
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item
from fermata.usage import ledger, window
from fermata.usage.audit import audit
from fermata.usage.lines import FACTS, LATER, TAKEN_BACK, Line, line_of, name_of, to_tell
from fermata.usage.reckoning import reckon
from fermata.usage.records import unreadable
from fermata.usage.window import LocalDays

AHEAD = 86_400
NAMED_BY = {"byUser": ("userId",), "byScope": ("scope",), "byModel": ("providerId", "modelId"), "byDay": ("day",)}


def reconcile(desk: Desk, tenant: str, since: str | None, tz: str | None, lines: Iterable[Line]) -> list[str]:
    """The differences from `since` on. `lines` are the usage lines from then on, of any tenant, in any order."""
    start = window.written(window.since(since, desk.clock.time()))
    items = list(ledger.between(desk, tenant, start, instant(desk.clock.time() + AHEAD)))
    broken = {ledger.key(row): why for row in items if (why := unreadable(row))}
    items = [row for row in items if ledger.key(row) not in broken]
    told = audit(desk, tenant, start, tz, with_billable=True)
    expected = reckon(items, start, LocalDays(window.zone(tz)), with_billable=True)
    named = [f"{row}: in the ledger, and cannot be read: {why}." for row, why in broken.items()]
    rows = list(to_tell(desk, items))
    return [*named, *_of_rollups(expected, told), *_of_lines(rows, _by_name(lines, tenant, start))]


def _of_rollups(expected: Mapping[str, Any], told: Mapping[str, Any]) -> Iterator[str]:
    yield from _of_row("totals", expected["totals"], told["totals"])
    for part, names in NAMED_BY.items():
        ours, theirs = _named(expected[part], names), _named(told[part], names)
        for name in sorted(ours.keys() | theirs.keys()):
            yield from _of_row(f"{part} {name}", ours.get(name, {}), theirs.get(name, {}))


def _named(rows: Iterable[Mapping[str, Any]], names: tuple[str, ...]) -> dict[str, Mapping[str, Any]]:
    return {"/".join(str(row[name]) for name in names): row for row in rows}


def _of_row(name: str, ledger_row: Mapping[str, Any], rollup_row: Mapping[str, Any]) -> Iterator[str]:
    for number in sorted(ledger_row.keys() | rollup_row.keys()):
        ours, theirs = ledger_row.get(number, 0), rollup_row.get(number, 0)
        if ours != theirs and not isinstance(ours or theirs, str):
            yield f"{name}: {number} is {ours} by the ledger and {theirs} in the rollups."


def _by_name(lines: Iterable[Line], tenant: str, start: str) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        if line.get("tenant") == tenant and str(line.get("at", "")) >= start:
            found[name_of(line)].append(line)
    return found


def _of_lines(rows: Iterable[Item], lines: dict[str, list[Line]]) -> Iterator[str]:
    left = dict(lines)
    for row in rows:
        name = name_of(row)
        told = left.pop(name, [])
        if not told:
            yield f"{name}: in the ledger, and no line in the logs."
        for line in told[:1]:
            yield from _of_line(name, line_of(row), line)
        if len(told) > 1:
            yield f"{name}: {len(told)} lines in the logs, and one row in the ledger."
    for name, told in sorted(left.items()):
        if told[0].get("event") == TAKEN_BACK:
            yield f"{name}: at nobody's expense in the logs, and not in the ledger."
        else:
            yield f"{name}: a line in the logs, and not in the ledger."


def _of_line(name: str, ours: Line, theirs: Line) -> Iterator[str]:
    """Everything that a line says of its row."""
    for fact in FACTS:
        if ours.get(fact) != theirs.get(fact) and not (fact in LATER and fact not in theirs):
            yield f"{name}: {fact} is {ours.get(fact)} in the ledger and {theirs.get(fact)} in the logs."
