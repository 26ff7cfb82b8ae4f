"""Consume the DynamoDB stream of the ledger: count each row into the rollups, then log a line for it.

A row is logged only after it is counted, and a row that was counted before is not logged again (decision 0057).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import is_transient_error
from fermata.domain.value_dataclass import value_dataclass
from fermata.usage.ledger.ledger_parsing import UnreadableRow, load_ledger_records
from fermata.usage.ledger.ledger_store import ledger_row_key
from fermata.usage.ledger.log_lines import USAGE_LOG_EVENT, log_line_from_row
from fermata.usage.ledger.usage_increments import LedgerRecord
from fermata.usage.rollups import rollup_store
from fermata.usage.rollups.rollup_store import RollupContention


@value_dataclass(frozen=True)
class LedgerStreamRecord:
    """New ledger row in the stream, with the sequence number of its stream record."""

    sequence_number: str
    row: Item


def count_stream_records(resources: Resources, stream_records: Sequence[LedgerStreamRecord]) -> str:
    """Count and log the rows of a batch.

    Returns:
        The sequence number of the first row that cannot be counted; empty when all are counted.

    Raises:
        Exception: Any transient error, `RollupContention` among them. The stream then repeats the batch, and rows that
            are counted by then are left out.
    """
    records_by_tenant: dict[str, list[LedgerStreamRecord]] = defaultdict(list)
    for record in stream_records:
        records_by_tenant[str(record.row.get("tenant", ""))].append(record)
    failed: set[str] = set()
    for tenant, tenant_records in records_by_tenant.items():
        failed |= _count_tenant_records(resources, tenant, tenant_records)
    return next((record.sequence_number for record in stream_records if record.sequence_number in failed), "")


def _count_tenant_records(resources: Resources, tenant: str, stream_records: Sequence[LedgerStreamRecord]) -> set[str]:
    """Count one tenant's rows together, or one by one when that fails. Return the sequence numbers that failed.

    A malformed row is logged and not retried, because a retry cannot repair it; the rows behind it do not wait
    (decision 0089).
    """
    first = stream_records[0]
    try:
        records = [record for new in stream_records for record in load_ledger_records(resources, new.row)]
        rollup_store.count_records(
            resources, tenant, records, lambda counted: _log_counted_rows(stream_records, counted)
        )
    except UnreadableRow as error:
        if len(stream_records) > 1:
            return _count_one_by_one(resources, tenant, stream_records)
        observability.log_warning("rollup.unreadable", tenant=tenant, row=ledger_row_key(first.row), why=str(error))
    except Exception as error:
        if is_transient_error(error) or isinstance(error, RollupContention):
            raise
        if len(stream_records) > 1:
            return _count_one_by_one(resources, tenant, stream_records)
        observability.log_exception("rollup.failed", tenant=tenant, row=ledger_row_key(first.row))
        return {first.sequence_number}
    return set()


def _count_one_by_one(resources: Resources, tenant: str, stream_records: Iterable[LedgerStreamRecord]) -> set[str]:
    return {number for record in stream_records for number in _count_tenant_records(resources, tenant, [record])}


def _log_counted_rows(stream_records: Iterable[LedgerStreamRecord], counted: Iterable[LedgerRecord]) -> None:
    """Log a line for each counted row, and emit the metrics of its requests."""
    # The end of a turn has numbered records (parse_turn_end_row); its line goes with the first of them.
    counted_keys = {record.key.removesuffix(".0") for record in counted}
    row_by_key = {ledger_row_key(record.row): record.row for record in stream_records}
    lines = [log_line_from_row(row) for key, row in row_by_key.items() if key in counted_keys]
    for line in lines:
        observability.log_event(**line)
    costs = [line["cost_usd"] for line in lines if line["event"] == USAGE_LOG_EVENT]
    if costs:
        observability.emit_metrics({"ProviderRequests": len(costs), "CostUsd": sum(costs)})
