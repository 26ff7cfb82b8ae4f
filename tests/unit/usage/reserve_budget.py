"""Hold budgets without the log entry that a turn writes together with the hold."""

from collections.abc import Sequence
from decimal import Decimal

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, TransactionCanceled, Write
from fermata.aws.resources import Resources
from fermata.usage.budgets.holds import AccountsChanged, BudgetedRequest, reserve_budget_and_commit


def reserve_budget(resources: Resources, request: BudgetedRequest, amount: Decimal) -> None:
    def commit(hold_writes: Sequence[Write]) -> None:
        if not hold_writes:
            return
        try:
            resources.tables.write_items(*hold_writes)
        except (ConditionFailed, TransactionCanceled) as error:
            raise AccountsChanged from error

    reserve_budget_and_commit(resources, request, amount, commit)
