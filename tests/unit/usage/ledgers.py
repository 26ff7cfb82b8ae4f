"""Whole ledgers for property tests: a few conversations around days on which clocks change."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from fermata.aws.clock import instant
from fermata.usage.ledger import Closed, Spent
from tests.unit.usage.spending import closed, spent

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
CHANGES = ("2026-03-28T12:00Z", "2026-04-04T06:00Z", "2026-10-03T06:00Z", "2026-10-24T12:00Z", "2026-10-31T20:00Z")
"""Shortly before clocks change somewhere among ZONES."""
DAYS = 4


@st.composite
def moments(draw: st.DrawFn, begin: float) -> float:
    """Often on a quarter or right beside it."""
    seconds = draw(st.integers(0, DAYS * 96)) * 900 + draw(st.sampled_from([0, 0, 1, 450, 899.999]))
    return begin + seconds


@st.composite
def ledgers(draw: st.DrawFn, most: int = 40) -> tuple[list[Spent | Closed], str, str]:
    """Rows, and a `since` and `tz` to audit them with."""
    begin = datetime.fromisoformat(draw(st.sampled_from(CHANGES))).timestamp()
    told: list[Spent | Closed] = []
    for number in range(draw(st.integers(1, most))):
        chat = draw(st.integers(1, 5))
        told.append(_spent(draw, number, chat, draw(moments(begin))))
    ended = draw(st.lists(st.sampled_from(told), unique_by=id))
    ends = [closed(one, billable=draw(st.booleans())) for one in ended if isinstance(one, Spent)]
    return [*told, *ends], instant(draw(moments(begin))), draw(st.sampled_from(ZONES))


def _spent(draw: st.DrawFn, number: int, chat: int, at: float) -> Spent:
    """A conversation has one user and one scope, and any models."""
    facts: dict[str, Any] = {
        "turn": f"turn-{number}",
        "conversation": f"chat-{chat}",
        "user": f"user-{chat % 3}",
        "scope": ("site", "content")[chat % 2],
        "model": draw(st.sampled_from(["small", "large"])),
        "prompt": draw(st.integers(0, 1000)),
        "cost": Decimal(draw(st.integers(0, 10_000))) / 1_000_000,
        "billable": draw(st.booleans()),
        "priced": draw(st.booleans()),
    }
    return spent(at, **facts)


def arrivals(draw: Any, rows: Sequence[Any]) -> list[list[Any]]:
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
