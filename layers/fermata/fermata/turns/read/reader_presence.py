"""Store whether a turn's reader is present or has left, for the function that starts the next turn (decision 0211).

Only the service on one machine sees a reader leave. A row says so, because functions run in processes of their own.
While somebody reads, the row is renewed: a process that was killed says nothing any more (decision 0217).
"""

from fermata.aws.resources import Resources
from fermata.turns.turn import Turn

PRESENCE_SECONDS = 25
"""How long a reader counts as present after a process has said so, or after the turn's start."""
PRESENCE_RENEWAL_SECONDS = 10
_SORT_KEY = "departed"


def is_departure_detectable(resources: Resources, turn: Turn) -> bool:
    """Return whether the service sees when a client of this turn closes its connection, and what that means."""
    return turn.dialect == "instatic" and resources.settings.fermata_stage == "local"


def mark_reader_departed(resources: Resources, turn: Turn, since: float) -> None:
    """Write that nobody reads the turn since an instant in epoch seconds. Safe to repeat."""
    _store(resources, turn, since, is_departed=True)


def mark_reader_present(resources: Resources, turn: Turn, since: float) -> None:
    """Write that somebody reads the turn at an instant in epoch seconds. Safe to repeat."""
    _store(resources, turn, since, is_departed=False)


def _store(resources: Resources, turn: Turn, since: float, *, is_departed: bool) -> None:
    """Store what became of the turn's readers, unless something newer is stored (decision 0143)."""
    item = {"pk": turn.pk, "sk": _SORT_KEY, "v": 1, "departed": is_departed, "ttl": turn.expires}
    item["at_us"] = int(since * 1_000_000)
    resources.tables.put_newest(resources.settings.bridges_table, item, "at_us")


def has_reader_departed(resources: Resources, turn: Turn) -> bool:
    """Return whether the last reader has left, or is in a process that was killed."""
    item = resources.tables.get_item(resources.settings.bridges_table, turn.pk, _SORT_KEY)
    if item is not None and item["departed"]:
        return True
    present_at = turn.started_ms / 1000 if item is None else int(item["at_us"]) / 1_000_000
    return resources.clock.time() - present_at > PRESENCE_SECONDS
