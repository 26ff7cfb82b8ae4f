"""Hold what images may cost in the budget of the turn that asks for them (decisions 0438, 0516)."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, TransactionCanceled, Write
from fermata.aws.resources import Resources
from fermata.domain.errors import PaymentRequired, ServiceUnavailable
from fermata.domain.tools import ToolOutput
from fermata.domain.value_dataclass import value_dataclass
from fermata.pricing.image_cost import IMAGE_PRICES
from fermata.pricing.request_cost import find_price_of_unpriced_models
from fermata.pricing.token_cost import compute_cost
from fermata.remote_tools.built_in.image_generation import estimate_image_tokens, select_image_model
from fermata.remote_tools.tool_definition import ToolDefinition
from fermata.turns.turn import Turn
from fermata.usage.budgets.holds import AccountsChanged, BudgetedRequest, reserve_budget_and_commit
from fermata.usage.ledger.ledger_store import RequestUsage, get_tool_hold_attempt

_ADVICE = "Go on without the image."


@value_dataclass(frozen=True)
class ImageRequest:
    """An image that is to be made.

    Attributes:
        definition: The tool.
        arguments: Of the call, as they were validated.
        effect_key: Of the call.
    """

    definition: ToolDefinition
    arguments: Mapping[str, Any]
    effect_key: str


def hold_image_budget(
    resources: Resources,
    turn: Turn,
    images: Sequence[ImageRequest],
    effect_key: str,
    unsettled: Sequence[RequestUsage] = (),
) -> tuple[int, ToolOutput | None]:
    """Hold the cost of images before they are asked for, in one hold, since a turn has one at a time.

    The hold replaces that of the images before them, so it covers what was paid for and is in no account yet. The
    ledger row of the call settles it, or the turn's next request or end.

    Args:
        resources: Of the process.
        turn: The turn.
        images: In the order in which they matter.
        effect_key: Of the call for which they are made: their own, or that of the plan which they are for.
        unsettled: The ledger rows of the round that are not written yet.

    Returns:
        How many of them, from the first one on, may be made, and the failure that the model reads of the others.
    """
    paid, failure = _sum_costs(resources, unsettled), None
    amounts, unknown = _list_amounts(resources, images)
    for number in range(len(amounts), 0, -1):
        try:
            _hold(resources, turn, effect_key, sum(amounts[:number], paid), images[0])
        except (PaymentRequired, ServiceUnavailable) as refused:
            failure = ToolOutput.failure(f"{refused.message} {_ADVICE}")
        else:
            return number, failure or unknown
    return 0, failure or unknown


def _list_amounts(resources: Resources, images: Sequence[ImageRequest]) -> tuple[list[Decimal], ToolOutput | None]:
    """Return what images cost, up to the first one whose price is not known, and the failure of that one."""
    amounts: list[Decimal] = []
    for image in images:
        provider, model = select_image_model(image.definition.options)
        amount = _compute_image_amount(resources, provider, model, image.arguments)
        if amount is None:
            text = f"The price of the image model {model} is not known, so no budget covers it. {_ADVICE}"
            return amounts, ToolOutput.failure(text)
        amounts.append(amount)
    return amounts, None


def _hold(resources: Resources, turn: Turn, effect_key: str, amount: Decimal, first: ImageRequest) -> None:
    _, round_, call = effect_key.rsplit("/", 2)
    _, model = select_image_model(first.definition.options)
    request = BudgetedRequest(turn.tenant, turn.user, turn.id, int(round_), get_tool_hold_attempt(int(call) + 1), model)

    def commit(writes: Sequence[Write]) -> None:
        try:
            if writes:
                resources.tables.write_items(*writes)
        except (ConditionFailed, TransactionCanceled) as refused:
            raise AccountsChanged from refused

    reserve_budget_and_commit(resources, request, amount, commit)


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
