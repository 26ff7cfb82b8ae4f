"""Read what the ledger of a stage's tenant holds."""

from typing import Any

from fermata.usage.ledger.ledger_store import TURN_END_SORT_KEY, read_ledger_rows
from tests.unit.turns.stage import Stage


def read_turn_end_row(stage: Stage) -> dict[str, Any]:
    (row,) = [row for row in read_ledger(stage) if row["sk"] == TURN_END_SORT_KEY]
    return row


def read_ledger(stage: Stage) -> list[dict[str, Any]]:
    return list(read_ledger_rows(stage.resources, stage.caller.tenant, "2026-01", "2030-01"))
