"""Ask the provider: one request (and its silent retries), its text flowing into the log as it comes."""

import contextlib
from dataclasses import dataclass, field

from fermata.aws.dynamodb import ConditionFailed
from fermata.credentials import endpoints
from fermata.domain.errors import ApiError, PaymentRequired, ProviderError
from fermata.domain.events import ReasoningEvent, TextEvent
from fermata.domain.model_io import ModelRequest, ModelResponse, TextDelta, TokenUsage
from fermata.drivers.registry import Endpoint, get_provider
from fermata.drivers.retry_policy import stream_with_retries
from fermata.drivers.transport.connection import ProviderConnection
from fermata.turns.accounting import ESTIMATED_CHARS_PER_TOKEN, build_request_entry, hold_request_budget
from fermata.turns.round.stream_writer import StreamWriter
from fermata.turns.round.turn_context import TurnContext
from fermata.usage.ledger.ledger_store import RequestUsage, build_request_put

NO_RESPONSE_MESSAGE = "The provider ended its answer without a last word."


@dataclass
class ModelRequestOutcome:
    """How far it came: a reply or an error, text not yet in the log, and what each request used."""

    response: ModelResponse | None = None
    error: ProviderError | None = None
    unwritten_events: tuple[TextEvent | ReasoningEvent, ...] = ()
    failed_requests: list[RequestUsage] = field(default_factory=list)
    """Requests that failed in silence and were repeated."""
    last_request: RequestUsage | None = None
    seconds_to_first_text: float | None = None
    """Seconds until the first text was in the log."""

    @property
    def request_entries(self) -> tuple[RequestUsage, ...]:
        return (*self.failed_requests, self.last_request) if self.last_request else tuple(self.failed_requests)


def send_model_request(context: TurnContext, connection: ProviderConnection, outcome: ModelRequestOutcome) -> None:
    """Raises LostRace as soon as the turn has ended or somebody newer works on the round."""
    turn, standing = context.turn, context.log.state
    try:
        hold_request_budget(context.resources, turn, standing.round, standing.tries, standing.expected_prompt_tokens)
    except ApiError as refusal:
        is_spent = isinstance(refusal, PaymentRequired)
        outcome.error = ProviderError(
            "budget_exhausted" if is_spent else "busy", refusal.message, retryable=not is_spent
        )
        return
    try:
        endpoint = endpoints.open_endpoint(context.resources, turn.tenant, turn.credential, turn.credential_version)
    except ApiError as refusal:
        outcome.error = ProviderError("provider_auth", refusal.message, retryable=False)
        return
    _listen(context, connection, endpoint, outcome)
    if outcome.response is not None:
        outcome.last_request = _spent(
            context, outcome, outcome.response.tokens, "ok", known=outcome.response.tokens_known
        )
    else:
        outcome.error = outcome.error or ProviderError("provider_error", NO_RESPONSE_MESSAGE, retryable=True)
        outcome.last_request = _failed(context, outcome, outcome.error)


def store_failed_requests(context: TurnContext, outcome: ModelRequestOutcome) -> None:
    """Whoever won the race accounts for the request under way, but knows of none that failed before it."""
    for told in outcome.failed_requests:
        with contextlib.suppress(ConditionFailed):
            context.resources.tables.write_items(build_request_put(context.resources, told))


def _listen(work: TurnContext, line: ProviderConnection, endpoint: Endpoint, asked: ModelRequestOutcome) -> None:
    def on_failed(error: ProviderError) -> None:
        asked.failed_requests.append(_failed(work, asked, error))

    driver, request, begun = get_provider(work.turn.provider), _request(work), work.resources.clock.monotonic()
    with line.call_scope(), StreamWriter(work.resources, work.log, work.heartbeat, line.abort) as vigil:
        try:
            for piece in stream_with_retries(driver, request, line, endpoint, on_failed, policy=work.retry_policy):
                if isinstance(piece, ModelResponse):
                    asked.response = piece
                else:
                    vigil.write(
                        TextEvent(text=piece.text) if isinstance(piece, TextDelta) else ReasoningEvent(text=piece.text)
                    )
        except ProviderError as error:
            asked.error = error
        asked.unwritten_events = vigil.take_unwritten()
    if vigil.first_written_at is not None:
        asked.seconds_to_first_text = vigil.first_written_at - begun


def _request(work: TurnContext) -> ModelRequest:
    """On the last round the tools may no longer be called, so that the turn ends with an answer."""
    turn = work.turn
    return ModelRequest(
        model=turn.model,
        system=work.system_prompt,
        volatile=turn.situation,
        messages=work.load_history(),
        tools=work.tool_specs,
        max_tokens=work.resources.settings.max_answer_tokens,
        thinking_tokens=turn.thinking_tokens,
        call_tools=work.log.state.round < turn.max_rounds,
        scope=turn.scope,
        window_tokens=work.resources.settings.ollama_window_tokens,
    )


def _failed(work: TurnContext, asked: ModelRequestOutcome, error: ProviderError) -> RequestUsage:
    """What the provider had told until it broke off, and at least what was shown; a silent failure used nothing."""
    shown = work.log.state.shown_chars + sum(len(event.text) for event in asked.unwritten_events)
    completion = -(-shown // ESTIMATED_CHARS_PER_TOKEN)
    used = error.tokens or TokenUsage(prompt=work.log.state.expected_prompt_tokens if shown else 0)
    used = used.model_copy(update={"completion": max(used.completion, completion)})
    return _spent(work, asked, used, error.code, known=not (used.context_tokens or used.completion))


def _spent(
    work: TurnContext, asked: ModelRequestOutcome, tokens: TokenUsage, outcome: str, *, known: bool = True
) -> RequestUsage:
    standing = work.log.state
    return build_request_entry(
        work.resources,
        work.turn,
        tokens,
        round_=standing.round,
        attempt=standing.tries,
        tried=len(asked.failed_requests) + 1,
        outcome=outcome,
        billable=outcome == "ok",
        estimated=not known,
    )
