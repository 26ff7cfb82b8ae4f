"""Remember that the last reader of a turn has left, for the function that starts the next one (decision 0211).

Only the service on one machine sees a reader leave. A row says so, because functions run in processes of their own.
"""

from fermata.aws.dynamodb_items_and_writes import Delete, Put
from fermata.aws.resources import Resources
from fermata.turns.turn import Turn

_SORT_KEY = "departed"


def is_departure_detectable(resources: Resources, turn: Turn) -> bool:
    """Return whether the service sees when a client of this turn closes its connection, and what that means."""
    return turn.dialect == "instatic" and resources.settings.fermata_stage == "local"


def mark_reader_departed(resources: Resources, turn: Turn) -> None:
    """Write that nobody reads the turn. Safe to repeat."""
    item = {"pk": turn.pk, "sk": _SORT_KEY, "v": 1, "ttl": turn.expires}
    resources.tables.write_items(Put(resources.settings.bridges_table, item))


def mark_reader_returned(resources: Resources, turn: Turn) -> None:
    """Write that somebody reads the turn again. Safe to repeat."""
    resources.tables.write_items(Delete(resources.settings.bridges_table, turn.pk, _SORT_KEY))


def has_reader_departed(resources: Resources, turn: Turn) -> bool:
    return resources.tables.get_item(resources.settings.bridges_table, turn.pk, _SORT_KEY) is not None
