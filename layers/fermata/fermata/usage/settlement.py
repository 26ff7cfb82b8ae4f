"""Into the books: what is written together with the log entry that ends a request, or a turn."""

from collections.abc import Sequence

from fermata.aws.dynamodb import Write
from fermata.aws.resources import Resources
from fermata.usage.budgets.holds import build_settlement_writes
from fermata.usage.ledger.ledger_store import RequestUsage, TurnOutcome, build_request_put, build_turn_end_put


def build_request_writes(resources: Resources, usages: Sequence[RequestUsage]) -> list[Write]:
    """Rows of requests, and where their turn has a budget, the end of what was held for them."""
    writes: list[Write] = [build_request_put(resources, told) for told in usages]
    if usages and usages[0].budgeted:
        writes += build_settlement_writes(resources, usages[0].tenant, usages[0].turn, usages)
    return writes


def build_turn_end_writes(resources: Resources, outcome: TurnOutcome, usages: Sequence[RequestUsage]) -> list[Write]:
    """The same, and the row that says how the turn ended. A hold that was never used is given back."""
    writes: list[Write] = [
        *(build_request_put(resources, told) for told in usages),
        build_turn_end_put(resources, outcome),
    ]
    if outcome.budgeted:
        writes += build_settlement_writes(resources, outcome.tenant, outcome.turn, usages)
    return writes
