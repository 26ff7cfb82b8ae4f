"""A month of a busy workspace, as its ledger would have it."""

import random
from collections.abc import Iterator
from decimal import Decimal

from fermata.aws.clock import instant
from fermata.aws.dynamo import Item
from fermata.usage.ledger import Spent
from fermata.words.model import Tokens

ROWS = 100_000
DAYS = 30


def rows(
    now: float, *, users: int, chats: int, rounds: int, tenant: str = "bakery", count: int = ROWS
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
                "at": instant(at + number * 20),
            }


def spent(row: Item) -> Spent:
    """The row as a turn would tell it to the ledger."""
    tokens = {"cache_read": row["cacheRead"], "cache_creation": row["cacheCreation"]}
    tokens["cached_within"] = row.get("cachedWithin", False)
    facts = {name: row[name] for name in Spent.model_fields.keys() & row.keys()}
    whole = Tokens(prompt=row["prompt"], completion=row["completion"], **tokens)
    return Spent(**facts, attempt=1, tried=1, credential="key", tokens=whole)
