"""One immutable row per provider request, written in the transaction that ends it (design §4)."""

from decimal import Decimal
from typing import Any

from fermata.aws.desk import Desk
from fermata.aws.dynamo import Put
from fermata.pricing.prices import Price
from fermata.words.base import Word
from fermata.words.model import Tokens


class Spent(Word):
    """What one provider request used. `attempt` counts functions, `tried` requests within one of them."""

    tenant: str
    user: str
    scope: str
    conversation: str
    turn: str
    round: int
    attempt: int
    tried: int
    provider: str
    model: str
    credential: str
    tokens: Tokens
    cost: Decimal
    price: Price | None = None
    billable: bool = True
    estimated: bool = False
    outcome: str = "ok"
    at: str


def row(desk: Desk, spent: Spent) -> Put:
    """A second row for the same request is refused: `absent` keeps the first."""
    item: dict[str, Any] = {
        **spent.model_dump(exclude_none=True, exclude={"tokens", "price"}),
        "pk": f"t#{spent.tenant}#turn#{spent.turn}",
        "sk": f"r{spent.round:06d}#a{spent.attempt:03d}#t{spent.tried:02d}",
        "v": 1,
        "prompt": spent.tokens.prompt,
        "completion": spent.tokens.completion,
        "cacheRead": spent.tokens.cache_read,
        "cacheCreation": spent.tokens.cache_creation,
    }
    if spent.price is not None:
        item["price"] = spent.price.model_dump(exclude_none=True)
    return Put(desk.settings.usage_table, item, absent=True)
