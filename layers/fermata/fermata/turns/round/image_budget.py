"""Hold what an image may cost in the budget of the turn that asks for it (decision 0438)."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, TransactionCanceled, Write
from fermata.aws.resources import Resources
from fermata.domain.errors import PaymentRequired, ServiceUnavailable
from fermata.domain.tools import ToolOutput
from fermata.pricing.image_cost import IMAGE_PRICES
from fermata.pricing.request_cost import find_price_of_unpriced_models
from fermata.pricing.token_cost import compute_cost
from fermata.remote_tools.built_in.image_generation import estimate_image_tokens, select_image_model
from fermata.turns.turn import Turn
from fermata.usage.budgets.holds import AccountsChanged, BudgetedRequest, reserve_budget_and_commit
from fermata.usage.ledger.ledger_store import RequestUsage, get_tool_hold_attempt

_ADVICE = "Go on without the image."


def hold_image_budget(
    resources: Resources,
    turn: Turn,
    options: Mapping[str, str],
    arguments: Mapping[str, Any],
    effect_key: str,
    unsettled: Sequence[RequestUsage] = (),
) -> ToolOutput | None:
    """Hold the cost of an image before it is asked for. Return None, or the failure that the model reads.

    The hold replaces that of the image before it, so it covers what was paid for and is in no account yet. The image's
    ledger row settles it, or the turn's next request or end.

    Args:
        options: What the administrator has set for the tool.
        arguments: Of the call, as they were validated.
        effect_key: Of the call.
        unsettled: The ledger rows of the round that are not written yet.
    """
    provider, model = select_image_model(options)
    amount = _compute_image_amount(resources, provider, model, arguments)
    if amount is None:
        return ToolOutput.failure(
            f"The price of the image model {model} is not known, so no budget covers it. {_ADVICE}"
        )
    _, round_, call = effect_key.rsplit("/", 2)
    request = BudgetedRequest(turn.tenant, turn.user, turn.id, int(round_), get_tool_hold_attempt(int(call) + 1), model)

    def commit(writes: Sequence[Write]) -> None:
        try:
            if writes:
                resources.tables.write_items(*writes)
        except (ConditionFailed, TransactionCanceled) as refused:
            raise AccountsChanged from refused

    try:
        reserve_budget_and_commit(resources, request, amount + _sum_costs(resources, unsettled), commit)
    except (PaymentRequired, ServiceUnavailable) as refused:
        return ToolOutput.failure(f"{refused.message} {_ADVICE}")
    return None


def _compute_image_amount(
    resources: Resources, provider: str, model: str, arguments: Mapping[str, Any]
) -> Decimal | None:
    """Return the USD that the image takes mostly; None if no price is known and none is to be assumed."""
    price = IMAGE_PRICES.get((provider, model)) or find_price_of_unpriced_models(resources)
    return None if price is None else compute_cost(price, estimate_image_tokens(provider, arguments))


def _sum_costs(resources: Resources, usages: Sequence[RequestUsage]) -> Decimal:
    """Return what ledger rows will be charged to the accounts as."""
    costs = (
        usage.cost if usage.is_priced else compute_cost(find_price_of_unpriced_models(resources), usage.tokens)
        for usage in usages
    )
    return sum(costs, Decimal(0))
