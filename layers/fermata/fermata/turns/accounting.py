"""Ledger rows of a turn: what its provider requests used, known or estimated."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from fermata.aws.resources import Resources
from fermata.domain.events import ErrorEvent, TerminalEvent
from fermata.domain.model_io import TokenUsage
from fermata.drivers.registry import get_model_traits
from fermata.pricing.prices import compute_max_cost
from fermata.pricing.request_cost import find_price, get_request_cost
from fermata.turns.state import TurnState
from fermata.turns.turn import Turn
from fermata.usage.budgets import holds
from fermata.usage.ledger.ledger_store import RequestUsage, TurnOutcome

ESTIMATED_CHARS_PER_TOKEN = 4
MIN_HOLD_USD = Decimal("0.0001")
BILLABLE_ERROR_CODES = ("refused", "no_answer", "budget_exhausted")
"""Errors that are neither ours nor the provider's: what was used until then is to be paid."""


def hold_request_budget(resources: Resources, turn: Turn, round_: int, attempt: int, prompt_tokens: int) -> None:
    """Reserve what a request may cost at most; raises PaymentRequired. Without a known price, nothing is reserved."""
    if turn.budgeted:
        price = find_price(resources, turn.provider, turn.model)
        allowance = get_model_traits(turn.provider).thinking_allowance(turn.model, turn.thinking_tokens)
        completion = resources.settings.max_answer_tokens + allowance
        request = holds.BudgetedRequest(turn.tenant, turn.user, turn.id, round_, attempt)
        holds.reserve_budget(
            resources,
            request,
            max(compute_max_cost(price, prompt_tokens, completion), MIN_HOLD_USD) if price else Decimal(0),
        )


def build_turn_end_entry(resources: Resources, turn: Turn, terminal: TerminalEvent, state: TurnState) -> TurnOutcome:
    code = (terminal.code or "") if isinstance(terminal, ErrorEvent) else ""
    return TurnOutcome(
        tenant=turn.tenant,
        user=turn.user,
        scope=turn.scope,
        conversation=turn.conversation,
        turn=turn.id,
        provider=turn.provider,
        model=turn.model,
        how=terminal.type,
        code=code,
        billable=not isinstance(terminal, ErrorEvent) or code in BILLABLE_ERROR_CODES,
        rounds=state.round,
        budgeted=turn.budgeted,
        at=resources.clock.now_iso(),
    )


def build_request_entry(
    resources: Resources,
    turn: Turn,
    tokens: TokenUsage,
    *,
    round_: int,
    attempt: int,
    tried: int,
    outcome: str,
    billable: bool = True,
    estimated: bool = False,
) -> RequestUsage:
    charged = get_request_cost(resources, turn.provider, turn.model, tokens)
    return RequestUsage(
        tenant=turn.tenant,
        user=turn.user,
        scope=turn.scope,
        conversation=turn.conversation,
        turn=turn.id,
        round=round_,
        attempt=attempt,
        tried=tried,
        provider=turn.provider,
        model=turn.model,
        credential=turn.credential,
        tokens=tokens,
        cost=charged.cost,
        price=charged.price,
        priced=charged.known or not (tokens.context_tokens or tokens.completion or estimated),
        outcome=outcome,
        billable=billable,
        estimated=estimated,
        budgeted=turn.budgeted,
        at=resources.clock.now_iso(),
    )


def estimate_dead_request(resources: Resources, turn: Turn, state: TurnState, *, outcome: str) -> RequestUsage:
    """A request whose function died or was stopped: estimated from what went out and what was shown."""
    tokens = TokenUsage(
        prompt=state.expected_prompt_tokens, completion=-(-state.shown_chars // ESTIMATED_CHARS_PER_TOKEN)
    )
    return build_request_entry(
        resources,
        turn,
        tokens,
        round_=state.round,
        attempt=state.tries,
        tried=0,
        outcome=outcome,
        billable=outcome == "cancelled",
        estimated=True,
    )


def add_usage(state: TurnState, requests: Sequence[RequestUsage]) -> dict[str, Any]:
    """The standing's changes that add what these requests used."""
    tokens = [told.tokens for told in requests]
    return {
        "prompt": state.prompt + sum(used.prompt for used in tokens),
        "completion": state.completion + sum(used.completion for used in tokens),
        "cache_read": state.cache_read + sum(used.cache_read for used in tokens),
        "cache_creation": state.cache_creation + sum(used.cache_creation for used in tokens),
        "cost": str(state.cost_usd + sum(told.cost for told in requests)),
        "context": next((used.context_tokens for used in reversed(tokens) if used.context_tokens), state.context),
    }
