"""Hold budgets without the log entry that a turn writes together with the hold."""

from collections.abc import Sequence
from decimal import Decimal

from fermata.aws.dynamodb import ConditionFailed, TransactionCanceled, Write
from fermata.aws.resources import Resources
from fermata.usage.budgets.holds import BudgetedRequest, HoldOutdated, commit_with_hold


def reserve_budget(resources: Resources, request: BudgetedRequest, amount: Decimal) -> None:
    def commit(hold_writes: Sequence[Write]) -> None:
        if not hold_writes:
            return
        try:
            resources.tables.write_items(*hold_writes)
        except (ConditionFailed, TransactionCanceled) as error:
            raise HoldOutdated from error

    commit_with_hold(resources, request, amount, commit)
