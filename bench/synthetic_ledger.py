"""A month of a busy workspace, as its ledger would have it."""

import random
from collections.abc import Iterator
from decimal import Decimal

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb import Item
from fermata.domain.model_io import TokenUsage
from fermata.usage.ledger.ledger_store import RequestUsage

ROW_COUNT = 100_000
DAYS = 30


def generate_ledger_rows(
    now: float, *, users: int, chats: int, rounds: int, tenant: str = "bakery", count: int = ROW_COUNT
) -> Iterator[Item]:
    """Turns of some rounds each, spread over the thirty days before `now`: all that the rollups read of a row."""
    dice = random.Random(users)
    for turn in range(count // rounds):
        chat, at = dice.randrange(chats), now - dice.random() * DAYS * 86400
        for number in range(rounds):
            yield {
                "sk": f"r{number:06d}#a001#t01",
                "tenant": tenant,
                "turn": f"turn-{turn}",
                "round": number,
                "conversation": f"chat-{chat}",
                "user": f"user-{chat % users}",
                "scope": ("site", "content", "data", "plugin")[chat % 4],
                "provider": "anthropic",
                "model": f"model-{dice.randrange(5)}",
                "prompt": dice.randrange(40_000),
                "completion": dice.randrange(2_000),
                "cacheRead": dice.randrange(40_000),
                "cacheCreation": dice.randrange(4_000),
                "cost": Decimal(dice.randrange(900_000)) / 10_000_000,
                "billable": True,
                "at": iso_from_epoch(at + number * 20),
            }


def spent_from_row(row: Item) -> RequestUsage:
    """The row as a turn would tell it to the ledger."""
    tokens = {"cache_read": row["cacheRead"], "cache_creation": row["cacheCreation"]}
    tokens["cached_within"] = row.get("cachedWithin", False)
    facts = {name: row[name] for name in RequestUsage.model_fields.keys() & row.keys()}
    whole = TokenUsage(prompt=row["prompt"], completion=row["completion"], **tokens)
    return RequestUsage(**facts, attempt=1, tried=1, credential="key", tokens=whole)
