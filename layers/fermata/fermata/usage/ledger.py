"""The ledger: one immutable row per provider request, and one that says how its turn ended (design §4).

    t#<tenant>#turn#<turn>    r<round>#a<attempt>#t<try>   written in the transaction that ends the request
    t#<tenant>#ended#<turn>   end                          written in the transaction that ends the turn

Index `byTime`: t#<tenant>#<month>, by the instant of each row.
"""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item, Put
from fermata.pricing.prices import Price
from fermata.words.base import Word
from fermata.words.model import Tokens

END = "end"
MOST_KEYS = 100
FIRST_MONTH = "2026-01"
"""No deployment has rows from before."""


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
    priced: bool = True
    """False when nobody could say what it cost: `cost` is 0 then, and only its tokens are known."""
    billable: bool = True
    """False when the request came to nothing. The turn's own end has the last word (`Closed`)."""
    estimated: bool = False
    outcome: str = "ok"
    budgeted: bool = False
    """Whether something may be held for it (holds.py)."""
    at: str


class Closed(Word):
    """How a turn ended. Not `billable`: in our own or the provider's error, so that none of it is anybody's to pay."""

    tenant: str
    user: str
    scope: str
    conversation: str
    turn: str
    provider: str
    model: str
    how: str
    code: str = ""
    billable: bool
    rounds: int
    budgeted: bool = False
    at: str


def row(desk: Desk, spent: Spent) -> Put:
    """A second row for the same request is refused: `absent` keeps the first."""
    item: dict[str, Any] = {
        **spent.model_dump(exclude_none=True, exclude={"tokens", "price"}),
        "prompt": spent.tokens.prompt,
        "completion": spent.tokens.completion,
        "cacheRead": spent.tokens.cache_read,
        "cacheCreation": spent.tokens.cache_creation,
    }
    if spent.tokens.cached_within:
        item["cachedWithin"] = True
    if spent.price is not None:
        item["price"] = spent.price.model_dump(exclude_none=True)
    sk = f"r{spent.round:06d}#a{spent.attempt:03d}#t{spent.tried:02d}"
    return _put(desk, partition(spent.tenant, spent.turn), sk, item)


def end_row(desk: Desk, closed: Closed) -> Put:
    return _put(desk, _ended(closed.tenant, closed.turn), END, closed.model_dump(exclude_none=True))


def _put(desk: Desk, pk: str, sk: str, item: Item) -> Put:
    at = item["at"]
    keys = {"pk": pk, "sk": sk, "gpk": _month(item["tenant"], at[:7]), "gsk": f"{at}#{item['turn']}#{sk}"}
    return Put(desk.settings.usage_table, {**item, **keys, "v": 1}, absent=True)


def partition(tenant: str, turn: str) -> str:
    return f"t#{tenant}#turn#{turn}"


def _ended(tenant: str, turn: str) -> str:
    return f"t#{tenant}#ended#{turn}"


def key(item: Item) -> str:
    """What tells a tenant's rows apart."""
    return f"{item.get('turn')}#{item['sk']}"


def of_turn(desk: Desk, tenant: str, turn: str) -> list[Item]:
    """Its requests."""
    return desk.tables.query(desk.settings.usage_table, partition(tenant, turn))


def ends_of(desk: Desk, tenant: str, turns: Iterable[str]) -> dict[str, bool]:
    """Of those turns that have ended, whether they are billable."""
    keys = [(_ended(tenant, turn), END) for turn in turns]
    parts = [keys[start : start + MOST_KEYS] for start in range(0, len(keys), MOST_KEYS)]
    found = [item for part in parts for item in desk.tables.batch_get(desk.settings.usage_table, part).values()]
    return {item["turn"]: bool(item.get("billable", True)) for item in found}


def between(desk: Desk, tenant: str, first: str, behind: str) -> Iterator[Item]:
    """Rows with first <= at < behind (ISO instants), in order. The index is a moment behind the table."""
    table = desk.settings.usage_table
    for month in _months(first, behind):
        yield from desk.tables.query_span(table, "byTime", ("gpk", _month(tenant, month)), "gsk", first, behind)


def _month(tenant: str, month: str) -> str:
    return f"t#{tenant}#{month}"


def _months(first: str, behind: str) -> Iterator[str]:
    found = max(first[:7], FIRST_MONTH)
    while found <= behind[:7]:
        yield found
        year, month = int(found[:4]), int(found[5:])
        found = f"{year + month // 12:04d}-{month % 12 + 1:02d}"
