"""The ledger: one immutable row per provider request, and one that says how its turn ended (design §4).

    t#<tenant>#turn#<turn>    r<round>#a<attempt>#t<try>   written in the transaction that ends the request
    t#<tenant>#ended#<turn>   end                          written in the transaction that ends the turn

Index `byTime`: t#<tenant>#<month>, by the instant of each row.
"""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from fermata.aws.dynamodb import Item, Put
from fermata.aws.resources import Resources
from fermata.domain.base import DomainModel
from fermata.domain.model_io import TokenUsage
from fermata.pricing.prices import Price

TURN_END_SORT_KEY = "end"
_READ_BATCH_SIZE = 100
FIRST_LEDGER_MONTH = "2026-01"
"""No deployment has rows from before."""


class RequestUsage(DomainModel):
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
    tokens: TokenUsage
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


class TurnOutcome(DomainModel):
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


def build_request_put(resources: Resources, usage: RequestUsage) -> Put:
    """A second row for the same request is refused: `absent` keeps the first."""
    item: dict[str, Any] = {
        **usage.model_dump(exclude_none=True, exclude={"tokens", "price"}),
        "prompt": usage.tokens.prompt,
        "completion": usage.tokens.completion,
        "cacheRead": usage.tokens.cache_read,
        "cacheCreation": usage.tokens.cache_creation,
    }
    if usage.tokens.cached_within:
        item["cachedWithin"] = True
    if usage.price is not None:
        item["price"] = usage.price.model_dump(exclude_none=True)
    sk = f"r{usage.round:06d}#a{usage.attempt:03d}#t{usage.tried:02d}"
    return _build_put(resources, ledger_partition(usage.tenant, usage.turn), sk, item)


def build_turn_end_put(resources: Resources, outcome: TurnOutcome) -> Put:
    return _build_put(
        resources,
        _turn_end_partition(outcome.tenant, outcome.turn),
        TURN_END_SORT_KEY,
        outcome.model_dump(exclude_none=True),
    )


def _build_put(resources: Resources, pk: str, sk: str, item: Item) -> Put:
    at = item["at"]
    keys = {"pk": pk, "sk": sk, "gpk": _month_partition(item["tenant"], at[:7]), "gsk": f"{at}#{item['turn']}#{sk}"}
    return Put(resources.settings.usage_table, {**item, **keys, "v": 1}, if_absent=True)


def ledger_partition(tenant: str, turn: str) -> str:
    return f"t#{tenant}#turn#{turn}"


def _turn_end_partition(tenant: str, turn: str) -> str:
    return f"t#{tenant}#ended#{turn}"


def ledger_row_key(item: Item) -> str:
    """What tells a tenant's rows apart."""
    return f"{item.get('turn')}#{item['sk']}"


def read_turn_requests(resources: Resources, tenant: str, turn: str) -> list[Item]:
    """Its requests."""
    return resources.tables.query_items(resources.settings.usage_table, ledger_partition(tenant, turn))


def read_turn_billability(resources: Resources, tenant: str, turns: Iterable[str]) -> dict[str, bool]:
    """Of those turns that have ended, whether they are billable."""
    keys = [(_turn_end_partition(tenant, turn), TURN_END_SORT_KEY) for turn in turns]
    parts = [keys[start : start + _READ_BATCH_SIZE] for start in range(0, len(keys), _READ_BATCH_SIZE)]
    found = [
        item
        for part in parts
        for item in resources.tables.batch_get_items(resources.settings.usage_table, part).values()
    ]
    return {item["turn"]: bool(item.get("billable", True)) for item in found}


def read_ledger_rows(resources: Resources, tenant: str, start: str, end: str) -> Iterator[Item]:
    """Rows with first <= at < behind (ISO instants), in order. The index is a moment behind the table."""
    table = resources.settings.usage_table
    for month in _list_months(start, end):
        yield from resources.tables.iter_index_range(
            table, "byTime", ("gpk", _month_partition(tenant, month)), "gsk", start, end
        )


def _month_partition(tenant: str, month: str) -> str:
    return f"t#{tenant}#{month}"


def _list_months(start: str, end: str) -> Iterator[str]:
    found = max(start[:7], FIRST_LEDGER_MONTH)
    while found <= end[:7]:
        yield found
        year, month = int(found[:4]), int(found[5:])
        found = f"{year + month // 12:04d}-{month % 12 + 1:02d}"
