"""Add counters of usage (requests, tokens, cost), and convert them to JSON."""

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

ZERO_USD = Decimal(0)

UsageDimension = Literal["users", "scopes", "models"]


@dataclass(slots=True)
class UsageTotals:
    """Sums over provider requests. Costs are exact, in USD.

    Attributes:
        conversations: Conversations whose latest activity is in this sum (decision 0051).
        unbillable: The part of `cost` that the tenant does not pay (decision 0053).
        unpriced: Requests whose cost is unknown; `cost` counts them as 0 (decision 0085).
    """

    conversations: int = 0
    requests: int = 0
    prompt: int = 0
    completion: int = 0
    cost: Decimal = ZERO_USD
    cache_read: int = 0
    cache_creation: int = 0
    unbillable: Decimal = ZERO_USD
    unpriced: int = 0

    def add(self, other: "UsageTotals") -> None:
        """Add other totals to these, in place."""
        self.conversations += other.conversations
        self.requests += other.requests
        self.prompt += other.prompt
        self.completion += other.completion
        self.cost += other.cost
        self.cache_read += other.cache_read
        self.cache_creation += other.cache_creation
        self.unbillable += other.unbillable
        self.unpriced += other.unpriced

    def to_list(self) -> list[Any]:
        """Return the counters for JSON: costs as decimal text, trailing zeros left out."""
        values: list[Any] = [self.conversations, self.requests, self.prompt, self.completion, _cost_to_json(self.cost)]
        values += [self.cache_read, self.cache_creation, _cost_to_json(self.unbillable), self.unpriced]
        while values and not values[-1]:
            values.pop()
        return values

    @classmethod
    def from_list(cls, values: list[Any]) -> "UsageTotals":
        totals = cls(*values)
        totals.cost = Decimal(totals.cost or 0)
        totals.unbillable = Decimal(totals.unbillable or 0)
        return totals


TotalsByName = dict[str, UsageTotals]


def new_totals_by_name() -> TotalsByName:
    return defaultdict(UsageTotals)


def _cost_to_json(cost: Decimal) -> str | int:
    return f"{cost.normalize():f}" if cost else 0
