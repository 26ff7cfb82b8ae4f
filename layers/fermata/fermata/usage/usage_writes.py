"""Build the usage writes of a commit: ledger rows, and the settlement of the hold that their turn has.

A turn writes them in the transaction that ends a request or the turn, so its log and its money cannot disagree.
"""

from collections.abc import Sequence

from fermata.aws.dynamodb_items_and_writes import Write
from fermata.aws.resources import Resources
from fermata.usage.ledger.ledger_store import RequestUsage, TurnOutcome, build_request_put, build_turn_end_put


def build_request_writes(resources: Resources, usages: Sequence[RequestUsage]) -> list[Write]:
    """Build the ledger rows of one turn's requests; where the turn has a budget, also charge them to its accounts."""
    writes: list[Write] = [build_request_put(resources, usage) for usage in usages]
    if any(usage.has_budget for usage in usages):
        from fermata.usage.budgets.holds import build_settlement_writes  # imported here because most turns have none

        writes += build_settlement_writes(resources, usages[0].tenant, usages[0].turn, usages)
    return writes


def build_turn_end_writes(resources: Resources, outcome: TurnOutcome, usages: Sequence[RequestUsage]) -> list[Write]:
    """Build the ledger rows of the turn's last requests and of its end. A hold that was never used is released.

    Args:
        outcome: How the turn ended, and whether its requests are billable.
        usages: The requests that have no ledger row yet; may be empty.
    """
    writes: list[Write] = [build_request_put(resources, usage) for usage in usages]
    writes.append(build_turn_end_put(resources, outcome))
    if outcome.has_budget:
        from fermata.usage.budgets.holds import build_settlement_writes  # imported here because most turns have none

        writes += build_settlement_writes(resources, outcome.tenant, outcome.turn, usages, ends_turn=True)
    return writes
