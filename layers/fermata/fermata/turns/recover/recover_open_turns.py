"""Recover all open turns that may have stalled. Run once a minute."""

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.turns.recover.recover_turn import recover_turn
from fermata.turns.turn import OPEN_SHARDS


def recover_open_turns(resources: Resources, start_grace_seconds: float | None = None) -> int:
    """Recover every open turn that is older than `start_grace_seconds`.

    Args:
        start_grace_seconds: How long a turn is given to start by itself; None for the setting of that name. 0 when
            nothing can be starting it, because the whole service has just been started (decision 0161).

    Returns:
        How many turns were looked at.
    """
    table = resources.settings.bridges_table
    grace = resources.settings.start_grace_seconds if start_grace_seconds is None else start_grace_seconds
    newest_start = resources.clock.now_iso(-grace)
    turn_count = 0
    for shard in range(OPEN_SHARDS):
        for row in resources.tables.query_index(table, "open", ("open", f"open#{shard}")):
            if row["openSince"] > newest_start:
                break
            turn_count += 1
            _recover_row(resources, row["pk"], grace)
    return turn_count


def _recover_row(resources: Resources, pk: str, start_grace_seconds: float) -> None:
    """Log a failure and go on, so that one turn does not keep the others from being recovered.

    The index holds keys only; the partition key names tenant and turn.
    """
    try:
        _, tenant, _, turn_id = pk.split("#", 3)
        recover_turn(resources, tenant, turn_id, start_grace_seconds=start_grace_seconds)
    except Exception:  # noqa: BLE001 - logged whole; the next run tries again
        observability.log_exception("turn.recovery_failed", row=pk)
