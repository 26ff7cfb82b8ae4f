"""Ledger rows of a turn: what its provider requests used, known or estimated."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from fermata.aws.desk import Desk
from fermata.drivers.thinking import room
from fermata.pricing.charging import price_of, price_usage
from fermata.pricing.prices import most
from fermata.turns.standing import Standing
from fermata.turns.turn import Turn
from fermata.usage import holds
from fermata.usage.ledger import Closed, Spent
from fermata.words.events import End, TurnError
from fermata.words.model import Tokens

CHARS_PER_TOKEN = 4
LEAST_HELD = Decimal("0.0001")
NOT_OUR_FAULT = ("refused", "no_answer", "budget_exhausted")
"""Errors that are neither ours nor the provider's: what was used until then is to be paid."""


def hold(desk: Desk, turn: Turn, round_: int, attempt: int, prompt: int) -> None:
    """Reserve what a request may cost at most; raises PaymentRequired. Without a known price, nothing is reserved."""
    if turn.budgeted:
        price = price_of(desk, turn.provider, turn.model)
        completion = desk.settings.longest_answer + room(turn.provider, turn.model, turn.thinking_tokens)
        request = holds.Request(turn.tenant, turn.user, turn.id, round_, attempt)
        holds.reserve(desk, request, max(most(price, prompt, completion), LEAST_HELD) if price else Decimal(0))


def closed(desk: Desk, turn: Turn, terminal: End, standing: Standing) -> Closed:
    code = (terminal.code or "") if isinstance(terminal, TurnError) else ""
    return Closed(
        tenant=turn.tenant,
        user=turn.user,
        scope=turn.scope,
        conversation=turn.conversation,
        turn=turn.id,
        provider=turn.provider,
        model=turn.model,
        how=terminal.type,
        code=code,
        billable=not isinstance(terminal, TurnError) or code in NOT_OUR_FAULT,
        rounds=standing.round,
        budgeted=turn.budgeted,
        at=desk.clock.instant(),
    )


def spent(
    desk: Desk,
    turn: Turn,
    tokens: Tokens,
    *,
    round_: int,
    attempt: int,
    tried: int,
    outcome: str,
    billable: bool = True,
    estimated: bool = False,
) -> Spent:
    charged = price_usage(desk, turn.provider, turn.model, tokens)
    return Spent(
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
        priced=charged.known or not (tokens.context or tokens.completion or estimated),
        outcome=outcome,
        billable=billable,
        estimated=estimated,
        budgeted=turn.budgeted,
        at=desk.clock.instant(),
    )


def dead_request(desk: Desk, turn: Turn, standing: Standing, *, outcome: str) -> Spent:
    """A request whose function died or was stopped: estimated from what went out and what was shown."""
    tokens = Tokens(prompt=standing.expected_prompt, completion=-(-standing.shown // CHARS_PER_TOKEN))
    return spent(
        desk,
        turn,
        tokens,
        round_=standing.round,
        attempt=standing.tries,
        tried=0,
        outcome=outcome,
        billable=outcome == "cancelled",
        estimated=True,
    )


def charge(standing: Standing, requests: Sequence[Spent]) -> dict[str, Any]:
    """The standing's changes that add what these requests used."""
    tokens = [told.tokens for told in requests]
    return {
        "prompt": standing.prompt + sum(used.prompt for used in tokens),
        "completion": standing.completion + sum(used.completion for used in tokens),
        "cache_read": standing.cache_read + sum(used.cache_read for used in tokens),
        "cache_creation": standing.cache_creation + sum(used.cache_creation for used in tokens),
        "cost": str(standing.cost_usd + sum(told.cost for told in requests)),
        "context": next((used.context for used in reversed(tokens) if used.context), standing.context),
    }
