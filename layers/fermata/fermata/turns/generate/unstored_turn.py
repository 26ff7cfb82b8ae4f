"""Account for requests to models that belong to no conversation, as those of a turn that is stored nowhere."""

from collections.abc import Callable, Sequence

from fermata.aws import observability
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
from fermata.turns.generate.request_mark import (
    DEAD_REQUEST_OUTCOME,
    DEAD_TURN_CODE,
    MARKED_REQUEST_SECONDS,
    RequestMark,
)
from fermata.turns.turn import Turn
from fermata.turns.turn_state_from_log import TurnState
from fermata.usage.budgets.budget_limits import get_budgets
from fermata.usage.ledger.ledger_store import TURN_END_SORT_KEY, RequestUsage, TurnOutcome
from fermata.usage.usage_writes import build_turn_end_writes

UNSTORED_HOLD_SECONDS = 2 * MARKED_REQUEST_SECONDS
"""How long a budget is held for such a turn, if its function dies and no sweep accounts for it before."""
_DEAD = ErrorEvent(message="The request was interrupted.", code=DEAD_TURN_CODE, retryable=True)


class UnstoredAccounting:
    """The requests of such a turn, one after another, and its end.

    Each request is announced before it is sent, and added when it is over.
    """

    def __init__(self, resources: Resources, turn: Turn) -> None:
        self._resources, self._turn = resources, turn
        self._mark = RequestMark(resources, self._build_outcome(_DEAD))
        self._estimate = TokenUsage()
        self.usages: list[RequestUsage] = []

    def announce(self, chars: int, answer_tokens: int, *, requests: int = 1) -> None:
        """Hold the highest possible cost, and note that the first request is sent.

        Args:
            chars: How many characters are sent, in all requests.
            answer_tokens: The limit of the answers.
            requests: How many requests are meant to be sent.

        Raises:
            PaymentRequired: A budget does not cover it.
        """
        prompt_tokens = chars // ESTIMATED_CHARS_PER_TOKEN
        commit_with_budget_hold(
            self._resources,
            self._turn,
            prompt_tokens,
            self.build_announcement(TokenUsage(prompt=prompt_tokens // requests)),
            answer_tokens=answer_tokens,
            hold_seconds=UNSTORED_HOLD_SECONDS,
        )

    def build_announcement(self, estimate: TokenUsage) -> Callable[[Sequence[Write]], None]:
        """Return what notes that the first request is sent, together with the writes of a hold.

        Args:
            estimate: What a request has used if its function dies.
        """
        self._estimate = estimate
        put = self._mark.build_put(self._build_dead_usage())

        def commit(hold_writes: Sequence[Write]) -> None:
            try:
                self._resources.tables.write_items(*hold_writes, put)
            except TransactionCanceled as refused:
                from fermata.usage.budgets.holds import AccountsChanged  # imported here because it is rare

                raise AccountsChanged from refused

        return commit

    def announce_next(self) -> None:
        """Note that one more request is sent, as those before it are accounted for.

        Raises:
            ServiceUnavailable: The turn took too long.
        """
        self._mark.note_next([*self.usages, self._build_dead_usage()])

    def add(self, tokens: TokenUsage, outcome: str, *, is_estimated: bool = False) -> None:
        """Note that a request is over.

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
        writes = build_turn_end_writes(self._resources, self._build_outcome(terminal), self.usages)
        try:
            self._resources.tables.write_items(*writes, self._mark.build_close())
        except TransactionCanceled as refused:
            self._log_refused_end(refused)

    def _log_refused_end(self, refused: TransactionCanceled) -> None:
        """Log why the end was not written: the sweep has taken the function for dead, or whatever else the rows say."""
        items = [reason.item for reason in refused.reasons if reason.item is not None]
        ended = next((item for item in items if item["sk"] == TURN_END_SORT_KEY), None)
        if ended is not None and ended.get("code") == DEAD_TURN_CODE:
            observability.log_warning("request.accounted_as_dead", turn=self._turn.id)
            return
        # Its turn has ended otherwise, as by a copy of this write; or its mark was erased, or never written.
        ended_as = ended["how"] if ended else ""
        observability.log_warning("request.end_refused", turn=self._turn.id, ended_as=ended_as)

    def _build_outcome(self, terminal: TerminalEvent) -> TurnOutcome:
        return build_turn_outcome(self._resources, self._turn, terminal, TurnState(round=1))

    def _build_dead_usage(self) -> RequestUsage:
        """Return the ledger row of a request whose function dies. It is not billable, as nobody was answered."""
        return build_request_usage(
            self._resources,
            self._turn,
            self._estimate,
            round_=1,
            attempt=1,
            request_number=0,
            outcome=DEAD_REQUEST_OUTCOME,
            billable=False,
            estimated=True,
        )


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
