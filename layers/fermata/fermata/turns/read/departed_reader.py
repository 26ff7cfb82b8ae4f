"""Remember that the last reader of a turn has left, for the function that starts the next one (decision 0211).

Only the service on one machine sees a reader leave. A row says so, because functions run in processes of their own.
"""

from fermata.aws.resources import Resources
from fermata.turns.turn import Turn

_SORT_KEY = "departed"


def is_departure_detectable(resources: Resources, turn: Turn) -> bool:
    """Return whether the service sees when a client of this turn closes its connection, and what that means."""
    return turn.dialect == "instatic" and resources.settings.fermata_stage == "local"


def mark_reader_departed(resources: Resources, turn: Turn, since: float) -> None:
    """Write that nobody reads the turn since an instant in epoch seconds. Safe to repeat."""
    _store(resources, turn, since, is_departed=True)


def mark_reader_returned(resources: Resources, turn: Turn, since: float) -> None:
    """Write that somebody reads the turn again since an instant in epoch seconds. Safe to repeat."""
    _store(resources, turn, since, is_departed=False)


def _store(resources: Resources, turn: Turn, since: float, *, is_departed: bool) -> None:
    """Store what became of the turn's readers, unless something newer is stored (decision 0143)."""
    item = {"pk": turn.pk, "sk": _SORT_KEY, "v": 1, "departed": is_departed, "ttl": turn.expires}
    item["at_us"] = int(since * 1_000_000)
    resources.tables.put_newest(resources.settings.bridges_table, item, "at_us")


def has_reader_departed(resources: Resources, turn: Turn) -> bool:
    item = resources.tables.get_item(resources.settings.bridges_table, turn.pk, _SORT_KEY)
    return item is not None and bool(item["departed"])
