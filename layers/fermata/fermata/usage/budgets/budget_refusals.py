"""Refuse requests that a budget does not cover, in words that say what is left, and what can be done."""

from collections.abc import Sequence
from decimal import Decimal

from fermata.domain.errors import PaymentRequired
from fermata.usage.budgets.budget_accounts import AccountState, BudgetAccount, BudgetPeriod
from fermata.usage.usage_totals import ZERO_USD

MAX_SHOWN_MODEL_CHARS = 200


def require_budget(states: Sequence[AccountState], model: str, amount: Decimal | None) -> None:
    """Raise PaymentRequired unless each account covers the amount of a request, in its day and in its month.

    Args:
        states: The accounts, with the sums of their items.
        model: The model's name, for the message.
        amount: USD; 0 for a free model, None when the price is unknown: a limited account does not cover that.
    """
    for state in states:
        for period in state.day_and_month_periods:
            if amount is None and period.limit is not None:
                raise PaymentRequired(_unpriced_message(state.account, period, model), reason="unpriced_model")
            if not period.can_cover(amount or ZERO_USD):
                raise PaymentRequired(_refusal_message(state.account, period, amount or ZERO_USD))


def build_refusal(state: AccountState, amount: Decimal) -> PaymentRequired:
    """Build the error of a request for which the period with the least money has too little left."""
    limited = [period for period in state.day_and_month_periods if period.remaining is not None]
    return PaymentRequired(
        _refusal_message(state.account, min(limited, key=lambda it: it.remaining or ZERO_USD), amount)
    )


def _unpriced_message(account: BudgetAccount, period: BudgetPeriod, model: str) -> str:
    name = model[:MAX_SHOWN_MODEL_CHARS]
    return (
        f"The price of the model {name} is not known, so {account.possessive.lower()} {period.name} budget cannot "
        "cover it. Choose a model with a known price. An administrator can remove the budget, or let models without a "
        "known price count at the dearest known one (UnpricedModels=dearest)."
    )


def _refusal_message(account: BudgetAccount, period: BudgetPeriod, amount: Decimal) -> str:
    remaining = _format_usd(max(period.remaining or ZERO_USD, ZERO_USD))
    limit = _format_usd(period.limit or ZERO_USD)
    held = f" ({_format_usd(period.held)} is held for requests under way)" if period.held else ""
    price = f"this request may take {_format_usd(amount)}" if amount else "something has to be left"
    return (
        f"{account.possessive} {period.name} budget of {limit} has {remaining} left{held}, and {price}. "
        f"It renews at {period.renews_at:%Y-%m-%dT%H:%MZ}."
    )


def _format_usd(amount: Decimal) -> str:
    """Format an amount in cents, or with as many decimals as a smaller amount needs."""
    return f"${amount:,.2f}" if not amount or amount >= Decimal("0.01") else f"${amount.normalize():f}"
