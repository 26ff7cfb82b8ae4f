"""Account for requests to models that belong to no conversation, as those of a turn that is stored nowhere."""

from collections.abc import Sequence
from functools import partial

from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import TransactionCanceled, Write
from fermata.aws.resources import Resources
from fermata.credentials.model_choice import ModelChoice
from fermata.domain.caller import Caller
from fermata.domain.errors import ApiError, BadGateway, ProviderError, ServiceUnavailable
from fermata.domain.events import DoneEvent, ErrorEvent, TerminalEvent
from fermata.domain.model_io import TokenUsage
from fermata.drivers.registry import get_model_traits
from fermata.turns.accounting import (
    ESTIMATED_CHARS_PER_TOKEN,
    build_request_usage,
    build_turn_outcome,
    commit_with_budget_hold,
)
from fermata.turns.turn import Turn
from fermata.turns.turn_state_from_log import TurnState
from fermata.usage.budgets.budget_limits import get_budgets
from fermata.usage.ledger.ledger_store import RequestUsage
from fermata.usage.usage_writes import build_turn_end_writes

UNSTORED_HOLD_SECONDS = 300
"""How long a budget is held for such a turn, if its function dies: no request of it takes longer than a minute."""


class UnstoredAccounting:
    """The requests of such a turn, one after another, and its end."""

    def __init__(self, resources: Resources, turn: Turn) -> None:
        self._resources, self._turn = resources, turn
        self.usages: list[RequestUsage] = []

    def add(self, tokens: TokenUsage, outcome: str, *, is_estimated: bool = False) -> None:
        """Note a request.

        Args:
            tokens: What it has used.
            outcome: `ok`, or the code of the error.
            is_estimated: Whether the provider has reported nothing.
        """
        usage = build_request_usage(
            self._resources,
            self._turn,
            tokens,
            round_=1,
            attempt=1,
            request_number=len(self.usages) + 1,
            outcome=outcome,
            billable=outcome == "ok",
            estimated=is_estimated,
        )
        self.usages.append(usage)

    def end(self, terminal: TerminalEvent | ProviderError | None = None) -> None:
        """Write the ledger rows of all requests and of their end. What was held and not used is released.

        Args:
            terminal: How the turn ends, or with which failure of its provider; None if it is done.
        """
        if terminal is None:
            terminal = DoneEvent()
        elif isinstance(terminal, ProviderError):
            terminal = ErrorEvent(message=terminal.message, code=terminal.code, retryable=terminal.retryable)
        outcome = build_turn_outcome(self._resources, self._turn, terminal, TurnState(round=1))
        self._resources.tables.write_items(*build_turn_end_writes(self._resources, outcome, self.usages))


def hold_budget_of_unstored_turn(resources: Resources, turn: Turn, chars: int, answer_tokens: int) -> None:
    """Hold the highest possible cost of the only request of a turn that is stored nowhere.

    Args:
        resources: Of the process.
        turn: The turn.
        chars: How many characters are sent.
        answer_tokens: The limit of the answer.

    Raises:
        PaymentRequired: A budget does not cover it.
    """
    commit = partial(write_unstored_hold, resources)
    commit_with_budget_hold(
        resources,
        turn,
        chars // ESTIMATED_CHARS_PER_TOKEN,
        commit,
        answer_tokens=answer_tokens,
        hold_seconds=UNSTORED_HOLD_SECONDS,
    )


def write_unstored_hold(resources: Resources, hold_writes: Sequence[Write]) -> None:
    """Write a hold that goes along with nothing else.

    Args:
        resources: Of the process.
        hold_writes: As `reserve_budget_and_commit` builds them.

    Raises:
        AccountsChanged: The accounts have changed since they were read.
    """
    if not hold_writes:
        return
    try:
        resources.tables.write_items(*hold_writes)
    except TransactionCanceled as refused:
        from fermata.usage.budgets.holds import AccountsChanged  # imported here because it is rare

        raise AccountsChanged from refused


def build_unstored_turn(resources: Resources, caller: Caller, scope: str, choice: ModelChoice) -> Turn:
    """Return the turn that a request without a conversation counts as. It is never stored.

    Args:
        resources: Of the process.
        caller: Who asks, and for whom it counts.
        scope: As which the ledger lists it.
        choice: The model.
    """
    now = resources.clock.time()
    budgets = get_budgets(resources, caller.tenant, refresh=True)
    accounts = budgets.list_accounts(caller.tenant, caller.user, resources.clock.now_iso()[:7])
    return Turn(
        id=new_id(),
        tenant=caller.tenant,
        user=caller.user,
        scope=scope,
        conversation="",
        provider=choice.provider,
        model=choice.model,
        credential=choice.credential_id,
        credential_version=choice.version,
        capabilities=(),
        dialect="fermata",
        prompt_version="",
        situation="",
        max_rounds=1,
        has_budget=bool(accounts) and not get_model_traits(choice.provider).are_free,
        started_ms=int(now * 1000),
        expires=int(now) + resources.settings.turn_lifetime_seconds,
    )


def to_answer_error(error: ProviderError) -> ApiError:
    """Return the error with which the API answers for a provider that has refused or failed."""
    if error.retryable:
        return ServiceUnavailable(error.message, retry_after=max(1, int(error.retry_after or 1)))
    return BadGateway(error.message)
