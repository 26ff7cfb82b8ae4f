"""Hypothesis strategies for whole ledgers: a few conversations around days on which clocks change."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from hypothesis import strategies as st

from fermata.aws.clock import iso_from_epoch
from fermata.usage.ledger.ledger_store import RequestUsage, TurnOutcome
from tests.unit.usage.ledger_factories import make_turn_outcome, make_usage

ZONES = (
    "UTC",
    "Europe/Berlin",
    "Asia/Kathmandu",
    "Pacific/Chatham",
    "Australia/Lord_Howe",
    "America/St_Johns",
    "Asia/Kolkata",
    "Pacific/Kiritimati",
    "America/Havana",
)
CLOCK_CHANGES = (
    "2026-03-28T12:00Z",
    "2026-04-04T06:00Z",
    "2026-10-03T06:00Z",
    "2026-10-24T12:00Z",
    "2026-10-31T20:00Z",
)
"""Instants shortly before clocks change in one of ZONES."""
DAYS = 4


@st.composite
def timestamps(draw: st.DrawFn, begin: float) -> float:
    """Draw an instant that is often on a quarter of an hour or right beside it."""
    seconds = draw(st.integers(0, DAYS * 96)) * 900 + draw(st.sampled_from([0, 0, 1, 450, 899.999]))
    return begin + seconds


class LedgerCase(NamedTuple):
    """Ledger entries, and the `since` and time zone to audit them with."""

    entries: list[RequestUsage | TurnOutcome]
    since: str
    zone: str


@st.composite
def ledgers(draw: st.DrawFn, max_requests: int = 40) -> LedgerCase:
    begin = datetime.fromisoformat(draw(st.sampled_from(CLOCK_CHANGES))).timestamp()
    usages: list[RequestUsage] = []
    for number in range(draw(st.integers(1, max_requests))):
        conversation = draw(st.integers(1, 5))
        usages.append(_draw_usage(draw, number, conversation, draw(timestamps(begin))))
    ended = draw(st.lists(st.sampled_from(usages), unique_by=id))
    outcomes = [make_turn_outcome(usage, billable=draw(st.booleans())) for usage in ended]
    since = iso_from_epoch(draw(timestamps(begin)))
    return LedgerCase([*usages, *outcomes], since, draw(st.sampled_from(ZONES)))


def _draw_usage(draw: st.DrawFn, number: int, conversation: int, at: float) -> RequestUsage:
    """Draw a request. A conversation has one user and one scope, and any models."""
    fields: dict[str, Any] = {
        "turn": f"turn-{number}",
        "conversation": f"chat-{conversation}",
        "user": f"user-{conversation % 3}",
        "scope": ("site", "content")[conversation % 2],
        "model": draw(st.sampled_from(["small", "large"])),
        "prompt": draw(st.integers(0, 1000)),
        "cost": Decimal(draw(st.integers(0, 10_000))) / 1_000_000,
        "is_billable": draw(st.booleans()),
        "is_priced": draw(st.booleans()),
    }
    return make_usage(at, **fields)


def draw_stream_batches(draw: Any, rows: Sequence[Any]) -> list[list[Any]]:
    """Draw batches as a stream may deliver rows: in any order, some repeatedly, in batches of any size."""
    order = list(draw(st.permutations(rows)))
    for repeated in draw(st.lists(st.sampled_from(rows), max_size=5)):
        order.insert(draw(st.integers(0, len(order))), repeated)
    batches: list[list[Any]] = [[]]
    for row in order:
        if draw(st.booleans()):
            batches.append([])
        batches[-1].append(row)
    return [batch for batch in batches if batch]
