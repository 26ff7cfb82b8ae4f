"""Ledger rows in DynamoDB: one immutable row per provider request, and one row for the end of each turn.

    t#<tenant>#turn#<turn>    r<round>#a<attempt>#t<try>   written in the transaction that ends the request
    t#<tenant>#ended#<turn>   end                          written in the transaction that ends the turn

The index `byTime` has one partition per tenant and month, t#<tenant>#<month>, sorted by the instant of each row.
"""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from fermata.aws.dynamodb_items_and_writes import Item, Put
from fermata.aws.resources import Resources
from fermata.domain.base import StoredModel, StoredNames
from fermata.domain.model_io import TokenUsage
from fermata.pricing.token_cost import Price

FIRST_TOOL_HOLD_ATTEMPT = 1_000
"""More than the attempts of a model request, and the calls of a round."""
TURN_END_SORT_KEY = "end"
FIRST_LEDGER_MONTH = "2026-01"
"""No deployment has older rows."""
_READ_BATCH_SIZE = 100
"""Keys that one BatchGetItem accepts."""


_STORED_REQUEST_NAMES = StoredNames(
    {
        "request_number": "tried",
        "is_priced": "priced",
        "is_billable": "billable",
        "is_estimated": "estimated",
        "has_budget": "budgeted",
        "recorded_at": "at",
    }
)
_STORED_OUTCOME_NAMES = StoredNames(
    {
        "end_type": "how",
        "error_code": "code",
        "is_billable": "billable",
        "has_budget": "budgeted",
        "recorded_at": "at",
    }
)


class RequestUsage(StoredModel, alias_generator=_STORED_REQUEST_NAMES, defer_build=False):
    """Usage and cost of one provider request.

    Attributes:
        attempt: Number of the function invocation that ran the round; 0 for a request of a tool, whose
            `request_number` is that of its call.
        request_number: Number of the request within that invocation, from 1; 0 when it is estimated after the function
            died (decision 0006).
        cost: USD; 0 when `is_priced` is False.
        is_priced: False when the price is unknown, so that only the tokens are known (decision 0085).
        is_billable: False when the request produced nothing. The end of the turn may overrule True (`TurnOutcome`).
        has_budget: Whether a hold may exist for the request.
        recorded_at: ISO instant.
    """

    tenant: str
    user: str
    scope: str
    conversation: str
    turn: str
    round: int
    attempt: int
    request_number: int
    provider: str
    model: str
    credential: str
    tokens: TokenUsage
    cost: Decimal
    price: Price | None = None
    is_priced: bool = True
    is_billable: bool = True
    is_estimated: bool = False
    outcome: str = "ok"
    has_budget: bool = False
    recorded_at: str

    @property
    def hold_attempt(self) -> int:
        """The attempt under which its hold is taken."""
        return self.attempt or get_tool_hold_attempt(self.request_number)


def get_tool_hold_attempt(request_number: int) -> int:
    """Return the attempt under which a tool's request is held: after those of its round's model request.

    It is 0 for the request of a superseded function, whose row settles no hold of its successor.
    """
    return FIRST_TOOL_HOLD_ATTEMPT + request_number if 0 < request_number < FIRST_TOOL_HOLD_ATTEMPT else 0


class TurnOutcome(StoredModel, alias_generator=_STORED_OUTCOME_NAMES, defer_build=False):
    """How a turn ended. `is_billable` is False when it ended in an error of ours or of the provider (decision 0053)."""

    tenant: str
    user: str
    scope: str
    conversation: str
    turn: str
    provider: str
    model: str
    end_type: str
    error_code: str = ""
    is_billable: bool
    rounds: int
    has_budget: bool = False
    recorded_at: str


def build_request_put(resources: Resources, usage: RequestUsage) -> Put:
    """Build the write of a request's row. It fails when the row exists, because ledger rows never change."""
    item: dict[str, Any] = {
        **usage.to_stored(exclude=frozenset({"tokens", "price"})),
        "prompt": usage.tokens.prompt,
        "completion": usage.tokens.completion,
        "cacheRead": usage.tokens.cache_read,
        "cacheCreation": usage.tokens.cache_creation,
    }
    if usage.tokens.cached_within:
        item["cachedWithin"] = True
    if usage.price is not None:
        item["price"] = usage.price.to_stored()
    sk = f"r{usage.round:06d}#a{usage.attempt:03d}#t{usage.request_number:02d}"
    return _build_put(resources, ledger_partition(usage.tenant, usage.turn), sk, item)


def build_turn_end_put(resources: Resources, outcome: TurnOutcome) -> Put:
    """Build the write of a turn's end row. It fails when the row exists."""
    pk = _turn_end_partition(outcome.tenant, outcome.turn)
    return _build_put(resources, pk, TURN_END_SORT_KEY, outcome.to_stored())


def _build_put(resources: Resources, pk: str, sk: str, item: Item) -> Put:
    at = item["at"]
    keys = {"pk": pk, "sk": sk, "gpk": _month_partition(item["tenant"], at[:7]), "gsk": f"{at}#{item['turn']}#{sk}"}
    return Put(resources.settings.usage_table, {**item, **keys, "v": 1}, if_absent=True)


def move_to_tenant(row: Item, tenant: str) -> Item:
    """Return a ledger row as a row of another tenant."""
    is_end = row["sk"] == TURN_END_SORT_KEY
    pk = _turn_end_partition(tenant, row["turn"]) if is_end else ledger_partition(tenant, row["turn"])
    return {**row, "tenant": tenant, "pk": pk, "gpk": _month_partition(tenant, row["at"][:7])}


def is_ledger_row(row: Item) -> bool:
    """Return whether a row of the usage table belongs to the ledger: only these are in the index `byTime`."""
    return "gsk" in row


def ledger_partition(tenant: str, turn: str) -> str:
    """Return the partition of the ledger rows of a turn."""
    return f"t#{tenant}#turn#{turn}"


def _turn_end_partition(tenant: str, turn: str) -> str:
    return f"t#{tenant}#ended#{turn}"


def ledger_row_key(item: Item) -> str:
    """Return a key that is unique among a tenant's ledger rows."""
    return f"{item.get('turn')}#{item['sk']}"


def read_turn_requests(resources: Resources, tenant: str, turn: str) -> list[Item]:
    """Read the request rows of a turn, without its end row.

    Args:
        tenant: The tenant's name.
        turn: The id of the turn.
    """
    return resources.tables.query_items(resources.settings.usage_table, ledger_partition(tenant, turn))


def read_turn_billability(resources: Resources, tenant: str, turns: Iterable[str]) -> dict[str, bool]:
    """Return whether each turn is billable, for those of `turns` that have ended."""
    ends = read_turn_ends(resources, tenant, turns)
    return {turn: bool(item.get("billable", True)) for turn, item in ends.items()}


def read_turn_ends(resources: Resources, tenant: str, turns: Iterable[str]) -> dict[str, Item]:
    """Return the end rows of those of `turns` that have ended, by turn."""
    keys = [(_turn_end_partition(tenant, turn), TURN_END_SORT_KEY) for turn in turns]
    ends: dict[str, Item] = {}
    for start in range(0, len(keys), _READ_BATCH_SIZE):
        batch = keys[start : start + _READ_BATCH_SIZE]
        items = resources.tables.batch_get_items(resources.settings.usage_table, batch).values()
        ends |= {item["turn"]: item for item in items}
    return ends


def read_month_rows(
    resources: Resources, tenant: str, month: str, *, limit: int, start_after: Item | None
) -> list[Item]:
    """Return rows of a month, the newest first. The index is eventually consistent, as in `read_ledger_rows`.

    Args:
        start_after: The key of the row after which to start, from `build_time_index_key`.
    """
    partition = ("gpk", _month_partition(tenant, month))
    return resources.tables.query_index(
        resources.settings.usage_table, "byTime", partition, descending=True, limit=limit, start_after=start_after
    )


def build_time_index_key(tenant: str, time_sort_key: str) -> Item:
    """Build the key in the index `byTime` of the row with this sort key."""
    instant, turn, sk = time_sort_key.split("#", 2)
    pk = _turn_end_partition(tenant, turn) if sk == TURN_END_SORT_KEY else ledger_partition(tenant, turn)
    return {"pk": pk, "sk": sk, "gpk": _month_partition(tenant, instant[:7]), "gsk": time_sort_key}


def read_ledger_rows(resources: Resources, tenant: str, start: str, end: str) -> Iterator[Item]:
    """Read the rows of a time in order.

    The index is eventually consistent: rows of the last moments may be missing.

    Args:
        tenant: The tenant's name.
        start: The ISO instant of the first rows.
        end: The ISO instant before which the last rows are.
    """
    table = resources.settings.usage_table
    for month in _list_months(start, end):
        partition = ("gpk", _month_partition(tenant, month))
        yield from resources.tables.iter_index_range(table, "byTime", partition, "gsk", start, end)


def _month_partition(tenant: str, month: str) -> str:
    return f"t#{tenant}#{month}"


def _list_months(start: str, end: str) -> Iterator[str]:
    name = max(start[:7], FIRST_LEDGER_MONTH)
    while name <= end[:7]:
        yield name
        year = int(name[:4])
        month = int(name[5:])
        name = f"{year + month // 12:04d}-{month % 12 + 1:02d}"
