"""What the stream of the ledger brings is counted, and told: one line for every row, and metrics of the money.

Nothing is told before it is counted, and what was counted before is not told again.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fermata.aws import observability
from fermata.aws.dynamodb import Item
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import is_transient_error
from fermata.usage.ledger import ledger_store
from fermata.usage.ledger.ledger_parsing import UnreadableRow, load_rollup_records
from fermata.usage.ledger.log_lines import USAGE_EVENT, log_line_from_row
from fermata.usage.rollups import rollup_store
from fermata.usage.rollups.rollup_delta import RollupRecord
from fermata.usage.rollups.rollup_store import RollupContention


@dataclass(frozen=True)
class LedgerStreamRecord:
    """A row of the ledger as the stream brings it, and the number the stream knows it by."""

    sequence_number: str
    row: Item


def count_stream_records(resources: Resources, stream_records: Sequence[LedgerStreamRecord]) -> str:
    """The number of the first row that cannot be counted; empty when all are.

    Trouble that passes is raised: the stream brings all of them again, and those that are counted by then are left out.
    """
    stuck: set[str] = set()
    tenants: dict[str, list[LedgerStreamRecord]] = defaultdict(list)
    for one in stream_records:
        tenants[str(one.row.get("tenant", ""))].append(one)
    for tenant, part in tenants.items():
        stuck |= _count_tenant_records(resources, tenant, part)
    return next((one.sequence_number for one in stream_records if one.sequence_number in stuck), "")


def _count_tenant_records(resources: Resources, tenant: str, stream_records: Sequence[LedgerStreamRecord]) -> set[str]:
    """All at once, or one by one when one of them is not as we wrote it.

    One that cannot be read will not be better the next time: it is told of, and those behind it do not wait for it.
    """
    try:
        rollup_store.count_records(
            resources,
            tenant,
            _parse_stream_records(resources, stream_records),
            lambda counted: _log_counted_rows(stream_records, counted),
        )
    except UnreadableRow as error:
        if len(stream_records) > 1:
            return {number for one in stream_records for number in _count_tenant_records(resources, tenant, [one])}
        observability.log_warning(
            "rollup.unreadable", tenant=tenant, row=ledger_store.ledger_row_key(stream_records[0].row), why=str(error)
        )
    except Exception as error:
        if is_transient_error(error) or isinstance(error, RollupContention):
            raise
        if len(stream_records) > 1:
            return {number for one in stream_records for number in _count_tenant_records(resources, tenant, [one])}
        observability.log_exception(
            "rollup.failed", tenant=tenant, row=ledger_store.ledger_row_key(stream_records[0].row)
        )
        return {stream_records[0].sequence_number}
    return set()


def _parse_stream_records(resources: Resources, stream_records: Iterable[LedgerStreamRecord]) -> list[RollupRecord]:
    return [record for one in stream_records for record in load_rollup_records(resources, one.row)]


def _log_counted_rows(stream_records: Iterable[LedgerStreamRecord], counted: Iterable[RollupRecord]) -> None:
    """An end is counted in records of its own (records.py), and told with the first of them."""
    new = {record.key.removesuffix(".0") for record in counted}
    rows = {ledger_store.ledger_row_key(one.row): one.row for one in stream_records}
    requests = []
    for line in (log_line_from_row(row) for key, row in rows.items() if key in new):
        observability.log_event(**line)
        requests += [line] if line["event"] == USAGE_EVENT else []
    if requests:
        observability.emit_metrics(
            {"ProviderRequests": len(requests), "CostUsd": sum(line["cost_usd"] for line in requests)}
        )
