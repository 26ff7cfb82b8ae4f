"""Keep an ended turn in the index `open` until its execution was told, where that waits without a heartbeat.

An execution in the state Hold would wait for as long as the call may take, if the function that has ended the turn died
before it resumed the execution. As long as the turn is listed, the sweep resumes it (decision 0644).
"""

import contextlib

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Update
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.turns.turn import Turn

_NAMES = {"#state": "state", "#open": "open"}


def build_ended_turn_update(resources: Resources, turn: Turn, state: str, *, is_held: bool) -> Update:
    """Build the write of END to the turn's row.

    Args:
        resources: The table, and the time.
        turn: The turn.
        state: The type of its terminal event.
        is_held: Whether its execution waits in Hold: the turn then stays listed, from now on, as a young one.
    """
    values = {":state": state, ":now": int(resources.clock.time() * 1000)}
    expression = "SET #state = :state, endedMs = :now"
    table = resources.settings.bridges_table
    if is_held:
        since = {":since": resources.clock.now_iso()}
        return Update(
            table, turn.pk, "turn", f"{expression}, openSince = :since", values | since, names={"#state": "state"}
        )
    return Update(table, turn.pk, "turn", f"{expression} REMOVE #open, openSince", values, names=_NAMES)


def delist_ended_turn(resources: Resources, turn: Turn) -> None:
    """Take a turn out of the index whose execution was told that it has ended. Where AWS refuses, the sweep does it."""
    removal = Update(
        resources.settings.bridges_table,
        turn.pk,
        "turn",
        "REMOVE #open, openSince",
        {":running": "open"},
        condition="attribute_exists(#open) AND #state <> :running",
        names=_NAMES,
    )
    with contextlib.suppress(ConditionFailed, *AWS_ERRORS):
        resources.tables.write_items(removal)
