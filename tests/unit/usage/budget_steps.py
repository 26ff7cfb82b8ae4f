"""Set budgets in tests, make requests under them, and read what is held and spent."""

from decimal import Decimal
from typing import Any

from fermata.aws.resources import Resources
from fermata.domain.caller import Caller, Capability
from fermata.usage.budgets.account_shards import list_account_keys
from fermata.usage.budgets.budget_accounts import BudgetAccount
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from fermata.usage.budgets.budget_status import load_budget_status
from fermata.usage.budgets.holds import BudgetedRequest, build_settlement_writes
from fermata.usage.usage_writes import build_request_writes
from tests.unit.usage.ledger_factories import TENANT, make_usage

ADMIN = Caller(tenant=TENANT, user="boss", capabilities=frozenset({Capability.PROVIDERS}))
CENT = Decimal("0.01")


def make_limits(daily: Any = None, monthly: Any = None) -> BudgetLimits:
    return BudgetLimits(
        daily_usd=None if daily is None else Decimal(str(daily)),
        monthly_usd=None if monthly is None else Decimal(str(monthly)),
    )


def set_budget(resources: Resources, **limits: Any) -> None:
    set_budgets(resources, ADMIN, Budgets(**limits))


def make_request(number: int = 1, user: str = "ada", round_: int = 1, attempt: int = 1) -> BudgetedRequest:
    return BudgetedRequest(TENANT, user, f"turn-{number}", round_, attempt)


def settle_request(resources: Resources, number: int, cost: Decimal) -> None:
    """Write the ledger row of a request and whatever settles with it."""
    usage = make_usage(resources.clock.time(), turn=f"turn-{number}", cost=cost, has_budget=True)
    resources.tables.write_items(*build_request_writes(resources, [usage]))


def release_hold(resources: Resources, number: int) -> None:
    """Settle a turn's hold as its end does when no request was made."""
    if writes := build_settlement_writes(resources, TENANT, f"turn-{number}", (), ends_turn=True):
        resources.tables.write_items(*writes)


def read_today(resources: Resources) -> dict[str, Any]:
    today: dict[str, Any] = load_budget_status(resources, TENANT)["tenant"]["today"]
    return today


def read_account(resources: Resources, month: str) -> tuple[Decimal, Decimal]:
    """Return what the tenant's account has spent and held in a month."""
    keys = list_account_keys(BudgetAccount.for_tenant(TENANT), month)
    items = resources.tables.batch_get_items(resources.settings.bridges_table, keys).values()
    return sum(item.get("spent", Decimal(0)) for item in items), sum(item.get("held", Decimal(0)) for item in items)
