"""Generate the ledger rows of a busy workspace's month."""

import random
from collections.abc import Iterator
from decimal import Decimal

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.domain.model_io import TokenUsage
from fermata.usage.ledger.ledger_store import RequestUsage

ROW_COUNT = 100_000
LEDGER_DAYS = 30
DAY_SECONDS = 86_400
ROUND_SECONDS = 20
SCOPES = ("site", "content", "data", "plugin")
MODEL_COUNT = 5


def generate_ledger_rows(
    now: float, *, users: int, chats: int, rounds: int, tenant: str = "bakery", row_count: int = ROW_COUNT
) -> Iterator[Item]:
    """Yield rows of turns at random times in the thirty days before `now`, with all that the rollups read.

    The same arguments yield the same rows.

    Args:
        now: epoch seconds.
        rounds: rounds of each turn, one row each.
    """
    generator = random.Random(users)
    for turn_number in range(row_count // rounds):
        chat = generator.randrange(chats)
        started_at = now - generator.random() * LEDGER_DAYS * DAY_SECONDS
        for round_number in range(rounds):
            yield {
                "sk": f"r{round_number:06d}#a001#t01",
                "tenant": tenant,
                "turn": f"turn-{turn_number}",
                "round": round_number,
                "conversation": f"chat-{chat}",
                "user": f"user-{chat % users}",
                "scope": SCOPES[chat % len(SCOPES)],
                "provider": "anthropic",
                "model": f"model-{generator.randrange(MODEL_COUNT)}",
                "prompt": generator.randrange(40_000),
                "completion": generator.randrange(2_000),
                "cacheRead": generator.randrange(40_000),
                "cacheCreation": generator.randrange(4_000),
                "cost": Decimal(generator.randrange(900_000)) / 10_000_000,
                "billable": True,
                "at": iso_from_epoch(started_at + round_number * ROUND_SECONDS),
            }


def usage_from_row(row: Item) -> RequestUsage:
    """Return what a turn would write to the ledger as this row."""
    tokens = TokenUsage(
        prompt=row["prompt"],
        completion=row["completion"],
        cache_read=row["cacheRead"],
        cache_creation=row["cacheCreation"],
        cached_within=row.get("cachedWithin", False),
    )
    return RequestUsage.from_stored(row | {"attempt": 1, "tried": 1, "credential": "key", "tokens": tokens})
