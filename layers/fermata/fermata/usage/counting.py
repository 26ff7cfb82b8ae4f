"""What the stream of the ledger brings is counted, and told: one line for every row, and metrics of the money.

Nothing is told before it is counted, and what was counted before is not told again.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item
from fermata.aws.trouble import is_passing
from fermata.usage import ledger, rollups
from fermata.usage.books import Record
from fermata.usage.lines import USAGE, line_of
from fermata.usage.records import Unreadable, records_of
from fermata.usage.rollups import TooBusy


@dataclass(frozen=True)
class Arrived:
    """A row of the ledger as the stream brings it, and the number the stream knows it by."""

    number: str
    row: Item


def count(desk: Desk, arrived: Sequence[Arrived]) -> str:
    """The number of the first row that cannot be counted; empty when all are.

    Trouble that passes is raised: the stream brings all of them again, and those that are counted by then are left out.
    """
    stuck: set[str] = set()
    tenants: dict[str, list[Arrived]] = defaultdict(list)
    for one in arrived:
        tenants[str(one.row.get("tenant", ""))].append(one)
    for tenant, part in tenants.items():
        stuck |= _count(desk, tenant, part)
    return next((one.number for one in arrived if one.number in stuck), "")


def _count(desk: Desk, tenant: str, arrived: Sequence[Arrived]) -> set[str]:
    """All at once, or one by one when one of them is not as we wrote it.

    One that cannot be read will not be better the next time: it is told of, and those behind it do not wait for it.
    """
    try:
        rollups.count(desk, tenant, _records(desk, arrived), lambda counted: _tell(arrived, counted))
    except Unreadable as error:
        if len(arrived) > 1:
            return {number for one in arrived for number in _count(desk, tenant, [one])}
        signals.warn("rollup.unreadable", tenant=tenant, row=ledger.key(arrived[0].row), why=str(error))
    except Exception as error:
        if is_passing(error) or isinstance(error, TooBusy):
            raise
        if len(arrived) > 1:
            return {number for one in arrived for number in _count(desk, tenant, [one])}
        signals.failed("rollup.failed", tenant=tenant, row=ledger.key(arrived[0].row))
        return {arrived[0].number}
    return set()


def _records(desk: Desk, arrived: Iterable[Arrived]) -> list[Record]:
    return [record for one in arrived for record in records_of(desk, one.row)]


def _tell(arrived: Iterable[Arrived], counted: Iterable[Record]) -> None:
    """An end is counted in records of its own (records.py), and told with the first of them."""
    new = {record.key.removesuffix(".0") for record in counted}
    rows = {ledger.key(one.row): one.row for one in arrived}
    requests = []
    for line in (line_of(row) for key, row in rows.items() if key in new):
        signals.tell(**line)
        requests += [line] if line["event"] == USAGE else []
    if requests:
        signals.count({"ProviderRequests": len(requests), "CostUsd": sum(line["cost_usd"] for line in requests)})
