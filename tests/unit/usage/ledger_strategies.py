"""Whole ledgers for property tests: a few conversations around days on which clocks change."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

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
"""Shortly before clocks change somewhere among ZONES."""
DAYS = 4


@st.composite
def timestamps(draw: st.DrawFn, begin: float) -> float:
    """Often on a quarter or right beside it."""
    seconds = draw(st.integers(0, DAYS * 96)) * 900 + draw(st.sampled_from([0, 0, 1, 450, 899.999]))
    return begin + seconds


@st.composite
def ledgers(draw: st.DrawFn, most: int = 40) -> tuple[list[RequestUsage | TurnOutcome], str, str]:
    """Rows, and a `since` and `tz` to audit them with."""
    begin = datetime.fromisoformat(draw(st.sampled_from(CLOCK_CHANGES))).timestamp()
    told: list[RequestUsage | TurnOutcome] = []
    for number in range(draw(st.integers(1, most))):
        chat = draw(st.integers(1, 5))
        told.append(_draw_usage(draw, number, chat, draw(timestamps(begin))))
    ended = draw(st.lists(st.sampled_from(told), unique_by=id))
    ends = [make_turn_outcome(one, billable=draw(st.booleans())) for one in ended if isinstance(one, RequestUsage)]
    return [*told, *ends], iso_from_epoch(draw(timestamps(begin))), draw(st.sampled_from(ZONES))


def _draw_usage(draw: st.DrawFn, number: int, conversation: int, at: float) -> RequestUsage:
    """A conversation has one user and one scope, and any models."""
    facts: dict[str, Any] = {
        "turn": f"turn-{number}",
        "conversation": f"chat-{conversation}",
        "user": f"user-{conversation % 3}",
        "scope": ("site", "content")[conversation % 2],
        "model": draw(st.sampled_from(["small", "large"])),
        "prompt": draw(st.integers(0, 1000)),
        "cost": Decimal(draw(st.integers(0, 10_000))) / 1_000_000,
        "billable": draw(st.booleans()),
        "priced": draw(st.booleans()),
    }
    return make_usage(at, **facts)


def draw_stream_batches(draw: Any, rows: Sequence[Any]) -> list[list[Any]]:
    """As a stream may bring them: in any order, some of them again, in batches of any size."""
    order = list(draw(st.permutations(rows)))
    for again in draw(st.lists(st.sampled_from(rows), max_size=5)):
        order.insert(draw(st.integers(0, len(order))), again)
    batches: list[list[Any]] = [[]]
    for row in order:
        if draw(st.booleans()):
            batches.append([])
        batches[-1].append(row)
    return [batch for batch in batches if batch]
