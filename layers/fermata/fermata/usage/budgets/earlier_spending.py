"""Read from the rollups what was spent before an account was opened."""

from decimal import Decimal

from fermata.aws.resources import Resources
from fermata.usage.budgets.budget_accounts import BudgetAccount, BudgetDate
from fermata.usage.rollups.period_rollup import PeriodRollup
from fermata.usage.usage_totals import ZERO_USD


def load_spending_rollups(resources: Resources, tenant: str, date: BudgetDate) -> tuple[PeriodRollup, PeriodRollup]:
    """Return the tenant's rollups of the month up to this day, and of this day."""
    # Imported here because few turns open an account; the others need no rollups.
    from fermata.usage.rollups.rollup_store import load_rollups
    from fermata.usage.rollups.rollup_version import RollupEdition, read_from_current_edition

    today = f"{date.month}-{date.day}"

    def add_up(edition: RollupEdition) -> tuple[PeriodRollup, PeriodRollup]:
        month_rollup, day_rollup = PeriodRollup(), PeriodRollup()
        for day, rollup in load_rollups(resources, edition, "day", date.month, today):
            month_rollup.add(rollup)
            if day == today:
                day_rollup.add(rollup)
        return month_rollup, day_rollup

    return read_from_current_edition(resources, tenant, add_up)


def compute_account_spending(rollup: PeriodRollup, account: BudgetAccount) -> Decimal:
    """Return the USD in a tenant's rollup that count for the account: the user's, or all."""
    if account.user:
        return rollup.users[account.user].cost
    return sum((totals.cost for totals in rollup.scopes.values()), ZERO_USD)
