"""List the open turns from the index `open`, and choose the order in which a sweep looks at them (decision 0248)."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from fermata.aws.resources import Resources
from fermata.domain.fair_order import interleave_owners
from fermata.turns.generate.request_mark import REQUEST_SORT_KEY
from fermata.turns.turn import OPEN_SHARDS

MAX_PERIOD_MINUTES = 256
"""How long at most a turn is left alone, however old it is."""
AGE_PARTS = 8
"""A turn is left alone for at most this part of its age."""


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn as the index lists it, which holds keys only; the partition key names tenant and turn."""

    tenant: str
    id: str
    started_at: float
    """Epoch seconds."""


@dataclass(frozen=True, slots=True)
class OpenTurns:
    """What the index lists, oldest first.

    Attributes:
        stored: Turns.
        unstored: Turns that are stored nowhere, of which a request was marked (turns/generate/request_mark.py).
    """

    stored: list[OpenTurn]
    unstored: list[OpenTurn]


def list_open_turns(resources: Resources, newest_start: str) -> OpenTurns:
    """Return the open turns that were started until `newest_start` (an ISO instant)."""
    table = resources.settings.bridges_table
    found = OpenTurns([], [])
    for shard in range(OPEN_SHARDS):
        rows = resources.tables.query_index(
            table, "open", ("open", f"open#{shard}"), max_sort=("openSince", newest_start)
        )
        for row in rows:
            turns = found.unstored if row["sk"] == REQUEST_SORT_KEY else found.stored
            turns.append(_open_turn_from_keys(row["pk"], row["openSince"]))
    for turns in (found.stored, found.unstored):
        turns.sort(key=lambda turn: turn.started_at)
    return found


def _open_turn_from_keys(pk: str, open_since: str) -> OpenTurn:
    _, tenant, _, turn_id = pk.split("#", 3)
    return OpenTurn(tenant, turn_id, datetime.fromisoformat(open_since).timestamp())


def interleave_tenants(turns: Iterable[OpenTurn]) -> list[OpenTurn]:
    """Order the first turn of each tenant before the second of any, so that no tenant waits for all of another's."""
    return interleave_owners(turns, lambda turn: turn.tenant)


def draw_turns_to_look_at(turns: Iterable[OpenTurn], now: float) -> list[OpenTurn]:
    """Return the turns whose minute has come, in an order that differs from sweep to sweep.

    Nothing has to be stored: a turn's minutes follow from its id and age. When a sweep cannot look at all of them, the
    order decides by lot, so that each gets its chance.
    """
    minute = int(now // 60)
    drawn = [turn for turn in turns if (minute + _hash_text(turn.id)) % _get_period_minutes(now - turn.started_at) == 0]
    return interleave_tenants(sorted(drawn, key=lambda turn: _hash_text(f"{minute}#{turn.id}")))


def _get_period_minutes(age_seconds: float) -> int:
    """Return a power of two, at most the `AGE_PARTS`-th part of the age: 1 in the first quarter of an hour."""
    parts = max(int(age_seconds // 60) // AGE_PARTS, 1)
    return min(1 << (parts.bit_length() - 1), MAX_PERIOD_MINUTES)


def _hash_text(text: str) -> int:
    return zlib.crc32(text.encode())
