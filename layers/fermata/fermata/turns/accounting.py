"""Account for model requests: hold their budget, build their ledger entries, add their usage to the turn's state."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

from fermata.aws.dynamodb_items_and_writes import Write
from fermata.aws.resources import Resources
from fermata.conversations.history.token_estimate import MAX_TOKENS_PER_IMAGE
from fermata.domain.blocks import Block, TextBlock
from fermata.domain.events import ErrorEvent, TerminalEvent
from fermata.domain.model_io import TokenUsage
from fermata.drivers.registry import get_model_traits
from fermata.pricing.image_cost import get_image_cost
from fermata.pricing.request_cost import find_price, find_price_of_unpriced_models, get_request_cost
from fermata.pricing.token_cost import compute_max_cost
from fermata.turns.turn import Turn
from fermata.turns.turn_state_from_log import TurnState
from fermata.usage.ledger.ledger_store import RequestUsage, TurnOutcome

if TYPE_CHECKING:
    from fermata.remote_tools.paid_request_report import PaidRequest

_Committed = TypeVar("_Committed")
ESTIMATED_CHARS_PER_TOKEN = 4
MIN_HOLD_USD = Decimal("0.0001")
BILLABLE_ERROR_CODES = ("refused", "no_answer", "budget_exhausted")
"""Errors that neither the service nor the provider caused: usage before them is billable (decision 0053)."""


def commit_with_budget_hold(
    resources: Resources,
    turn: Turn,
    prompt_tokens: int,
    commit: Callable[[Sequence[Write]], _Committed],
    *,
    round_: int = 1,
    attempt: int = 1,
    answer_tokens: int | None = None,
    hold_seconds: int | None = None,
) -> _Committed:
    """Call `commit` with the writes that hold the highest possible cost of a request (decision 0055).

    A model without a known price is refused where a limit counts, unless such models count at the dearest price
    (decision 0243).

    Args:
        commit: As for `reserve_budget_and_commit`.
        answer_tokens: The limit of the answer, where it is not the deployment's; 0 for a request without one.
        hold_seconds: As `BudgetedRequest.lifetime_seconds`; None for that of rounds.

    Raises:
        PaymentRequired: A budget does not cover it.
    """
    if not turn.has_budget:
        return commit(())
    from fermata.usage.budgets import holds  # imported here because most turns have no budget

    lifetime = hold_seconds or holds.HOLD_LIFETIME_SECONDS
    request = holds.BudgetedRequest(turn.tenant, turn.user, turn.id, round_, attempt, turn.model, lifetime)
    return holds.reserve_budget_and_commit(
        resources, request, _compute_max_cost(resources, turn, prompt_tokens, answer_tokens), commit
    )


def estimate_prompt_tokens(content: Sequence[Block], situation: str, context_tokens: int) -> int:
    """Estimate the prompt of the first request. Its hold lets a turn without budget be refused, not broken off.

    Args:
        context_tokens: Of the conversation until then.
    """
    prompt_chars = sum(len(block.text) for block in content if isinstance(block, TextBlock))
    text_tokens = (prompt_chars + len(situation)) // ESTIMATED_CHARS_PER_TOKEN
    image_tokens = sum(block.kind == "image" for block in content) * MAX_TOKENS_PER_IMAGE
    return context_tokens + text_tokens + image_tokens


def _compute_max_cost(
    resources: Resources, turn: Turn, prompt_tokens: int, answer_tokens: int | None
) -> Decimal | None:
    """Return the USD that the request costs at most; None if that is unknown."""
    if get_model_traits(turn.provider).are_free:
        return Decimal(0)
    price = find_price(resources, turn.provider, turn.model) or find_price_of_unpriced_models(resources)
    if price is None:
        return None
    thinking_tokens = get_model_traits(turn.provider).thinking_allowance(turn.model, turn.thinking_tokens)
    if answer_tokens is None:
        answer_tokens = resources.settings.max_answer_tokens
    return max(compute_max_cost(price, prompt_tokens, answer_tokens + thinking_tokens), MIN_HOLD_USD)


def build_turn_outcome(resources: Resources, turn: Turn, terminal: TerminalEvent, state: TurnState) -> TurnOutcome:
    """Return the ledger entry that says how the turn ended and whether it is billable (decision 0053)."""
    code = (terminal.code or "") if isinstance(terminal, ErrorEvent) else ""
    return TurnOutcome(
        tenant=turn.tenant,
        user=turn.user,
        scope=turn.scope,
        conversation=turn.root_conversation,
        turn=turn.id,
        provider=turn.provider,
        model=turn.model,
        end_type=terminal.type,
        error_code=code,
        is_billable=not isinstance(terminal, ErrorEvent) or code in BILLABLE_ERROR_CODES,
        rounds=state.round,
        has_budget=turn.has_budget or turn.has_tool_budget,
        recorded_at=resources.clock.now_iso(),
    )


def build_request_usage(
    resources: Resources,
    turn: Turn,
    tokens: TokenUsage,
    *,
    round_: int,
    attempt: int,
    request_number: int,
    outcome: str,
    billable: bool = True,
    estimated: bool = False,
    model: str = "",
) -> RequestUsage:
    """Return the ledger entry of one model request.

    Args:
        attempt: Counts how often the round's request was begun, by any invocation.
        request_number: Counts the requests of that attempt from 1; 0 for an estimate.
        outcome: `ok`, or the code of the error.
        model: The model that was asked, if it is not the turn's.
    """
    model = model or turn.model
    charge = get_request_cost(resources, turn.provider, model, tokens)
    return RequestUsage(
        tenant=turn.tenant,
        user=turn.user,
        scope=turn.scope,
        conversation=turn.root_conversation,
        turn=turn.id,
        round=round_,
        attempt=attempt,
        request_number=request_number,
        provider=turn.provider,
        model=model,
        credential=turn.credential,
        tokens=tokens,
        cost=charge.cost,
        price=charge.price,
        is_priced=charge.is_known or not (tokens.context_tokens or tokens.completion or estimated),
        outcome=outcome,
        is_billable=billable,
        is_estimated=estimated,
        has_budget=turn.has_budget,
        recorded_at=resources.clock.now_iso(),
    )


def build_tool_request_usage(
    resources: Resources, turn: Turn, effect_key: str, paid: "PaidRequest", *, number_offset: int = 0
) -> RequestUsage:
    """Return the ledger entry of a request that a tool has paid for (decision 0400).

    It has no attempt of the round's request, and the number of its call, so that the call is charged once.

    Args:
        resources: The clock.
        turn: The turn.
        effect_key: Of the call.
        paid: What the provider has reported.
        number_offset: Is added to the number, for a request whose call gets its result from another one.
    """
    _, round_, call = effect_key.rsplit("/", 2)
    charge = get_image_cost(paid.provider, paid.model, paid.tokens)
    return RequestUsage(
        tenant=turn.tenant,
        user=turn.user,
        scope=turn.scope,
        conversation=turn.root_conversation,
        turn=turn.id,
        round=int(round_),
        attempt=0,
        request_number=int(call) + 1 + number_offset,
        provider=paid.provider,
        model=paid.model,
        credential="",
        tokens=paid.tokens,
        cost=charge.cost,
        price=charge.price,
        is_priced=charge.is_known,
        is_billable=not paid.is_estimated,
        is_estimated=paid.is_estimated,
        outcome="unanswered" if paid.is_estimated else "ok",
        has_budget=turn.has_tool_budget,
        recorded_at=resources.clock.now_iso(),
    )


def estimate_dead_request(resources: Resources, turn: Turn, state: TurnState, *, outcome: str) -> RequestUsage:
    """Return the ledger entry of a request whose function died or was stopped (decision 0006).

    Its tokens are estimated from the expected prompt and the characters that were streamed. Unless something was
    streamed, it is unknown whether the provider accepted it, so it is not billable (decision 0147).
    """
    completion_tokens = estimate_tokens_of_chars(state.streamed_chars)
    return build_request_usage(
        resources,
        turn,
        TokenUsage(prompt=state.expected_prompt_tokens, completion=completion_tokens),
        round_=state.round,
        attempt=state.request_attempts,
        request_number=0,
        outcome=outcome,
        billable=outcome == "cancelled" and state.streamed_chars > 0,
        estimated=True,
    )


def estimate_tokens_of_chars(chars: int) -> int:
    """Return the estimated tokens of a text with so many characters, rounded up."""
    return -(-chars // ESTIMATED_CHARS_PER_TOKEN)


def add_usage(state: TurnState, usages: Sequence[RequestUsage]) -> TurnState:
    """Return the state with the tokens and costs of these requests added to the turn's totals."""
    tokens = [usage.tokens for usage in usages]
    of_models = [usage.tokens for usage in usages if usage.attempt]  # a tool's request fills no context
    newest_context = next((used.context_tokens for used in reversed(of_models) if used.context_tokens), 0)
    return replace(
        state,
        prompt_tokens=state.prompt_tokens + sum(used.prompt for used in tokens),
        completion_tokens=state.completion_tokens + sum(used.completion for used in tokens),
        cache_read_tokens=state.cache_read_tokens + sum(used.cache_read for used in tokens),
        cache_creation_tokens=state.cache_creation_tokens + sum(used.cache_creation for used in tokens),
        cost=str(state.cost_usd + sum(usage.cost for usage in usages)),
        context_tokens=newest_context or state.context_tokens,
    )
