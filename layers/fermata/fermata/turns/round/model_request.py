"""Send a round's model request, with its silent retries, and stream its text into the turn log."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from fermata.aws.dynamodb import ConditionFailed, TransactionCanceled
from fermata.credentials import endpoints
from fermata.domain.errors import ApiError, PaymentRequired, ProviderError
from fermata.domain.events import ReasoningEvent, TextEvent
from fermata.domain.model_io import ModelRequest, ModelResponse, TextDelta, TokenUsage
from fermata.drivers.registry import get_provider
from fermata.drivers.retry_policy import stream_with_retries
from fermata.drivers.transport.connection import ProviderConnection
from fermata.drivers.transport.endpoint import Endpoint
from fermata.turns.accounting import build_request_usage, estimate_tokens_of_chars, hold_request_budget
from fermata.turns.round.stream_writer import StreamWriter
from fermata.turns.round.turn_context import TurnContext
from fermata.turns.turn_log import Superseded, TurnEnded
from fermata.usage.ledger.ledger_store import RequestUsage
from fermata.usage.settlement import build_request_writes

NO_RESPONSE_MESSAGE = "The provider ended its answer without a last word."


@dataclass(frozen=True)
class ModelRequestOutcome:
    """The response of a request, or the error that it ended with, and the usage to account for."""

    result: ModelResponse | ProviderError
    unwritten_events: tuple[TextEvent | ReasoningEvent, ...] = ()
    """Streamed text that is not in the log yet."""
    failed_usages: tuple[RequestUsage, ...] = ()
    """Of requests that failed before anything was streamed, and were retried."""
    last_usage: RequestUsage | None = None
    """None when no request was sent."""
    seconds_to_first_text: float | None = None
    """Until the first text was in the log."""

    @property
    def request_usages(self) -> tuple[RequestUsage, ...]:
        return (*self.failed_usages, self.last_usage) if self.last_usage else self.failed_usages


def send_model_request(context: TurnContext, connection: ProviderConnection) -> ModelRequestOutcome:
    """Send the request of the current round.

    Raises:
        TurnEnded, Superseded: Noticed while the response was streamed. The failed requests before it are in the
            ledger then.
    """
    try:
        _hold_budget(context)
        endpoint = _open_endpoint(context)
    except ProviderError as refusal:
        return ModelRequestOutcome(refusal)
    sender = _RequestSender(context)
    try:
        return sender.send(connection, endpoint)
    except (TurnEnded, Superseded):
        store_failed_usages(context, sender.failed_usages)
        raise


def store_failed_usages(context: TurnContext, usages: Sequence[RequestUsage]) -> None:
    """Write ledger rows outside any commit, after the race for the commit was lost.

    The writer that won accounts for the request under way (decision 0006), but it cannot know of the requests that
    failed before it: they are in no log entry.
    """
    for usage in usages:
        with contextlib.suppress(ConditionFailed, TransactionCanceled):
            context.resources.tables.write_items(*build_request_writes(context.resources, (usage,)))


def _hold_budget(context: TurnContext) -> None:
    state = context.log.state
    try:
        hold_request_budget(
            context.resources, context.turn, state.round, state.request_attempts, state.expected_prompt_tokens
        )
    except PaymentRequired as refusal:
        raise ProviderError("budget_exhausted", refusal.message, retryable=False) from refusal
    except ApiError as refusal:
        raise ProviderError("busy", refusal.message, retryable=True) from refusal


def _open_endpoint(context: TurnContext) -> Endpoint:
    turn = context.turn
    try:
        return endpoints.open_endpoint(context.resources, turn.tenant, turn.credential, turn.credential_version)
    except ApiError as refusal:
        raise ProviderError("provider_auth", refusal.message, retryable=False) from refusal


class _RequestSender:
    """Sends one request and keeps the usage of its failed attempts, which must survive a lost race.

    Round and attempt are those at the beginning. The background thread moves the state of the log, by then perhaps to
    the attempt of a successor, under whose name nothing of this one may be booked (decision 0145).
    """

    def __init__(self, context: TurnContext) -> None:
        self._context = context
        self._begun_state = context.log.state
        self._streamed_chars = 0
        self.failed_usages: list[RequestUsage] = []

    def send(self, connection: ProviderConnection, endpoint: Endpoint) -> ModelRequestOutcome:
        context = self._context
        clock = context.resources.clock
        request = _build_request(context)
        started_at = clock.monotonic()
        with (
            connection.call_scope(),
            StreamWriter(context.resources, context.log, context.heartbeat, connection.abort) as writer,
        ):
            result = self._stream(request, connection, endpoint, writer)
            unwritten_events = writer.take_unwritten()
        first_written_at = writer.first_written_at
        return ModelRequestOutcome(
            result,
            unwritten_events,
            failed_usages=tuple(self.failed_usages),
            last_usage=self._build_last_usage(result),
            seconds_to_first_text=first_written_at - started_at if first_written_at is not None else None,
        )

    def _stream(
        self, request: ModelRequest, connection: ProviderConnection, endpoint: Endpoint, writer: StreamWriter
    ) -> ModelResponse | ProviderError:
        provider = get_provider(self._context.turn.provider)
        retry_policy = self._context.retry_policy
        response: ModelResponse | None = None
        error = ProviderError("provider_error", NO_RESPONSE_MESSAGE, retryable=True)
        try:
            for part in stream_with_retries(
                provider, request, connection, endpoint, self._keep_failure, policy=retry_policy
            ):
                if isinstance(part, ModelResponse):
                    response = part
                    continue
                self._streamed_chars += len(part.text)
                writer.write((TextEvent if isinstance(part, TextDelta) else ReasoningEvent)(text=part.text))
        except ProviderError as failure:
            error = failure
        return error if response is None else response

    def _keep_failure(self, error: ProviderError) -> None:
        self.failed_usages.append(self._build_failure_usage(error))

    def _build_last_usage(self, result: ModelResponse | ProviderError) -> RequestUsage:
        if isinstance(result, ProviderError):
            return self._build_failure_usage(result)
        return self._build_usage(result.tokens, "ok", is_estimated=not result.tokens_known)

    def _build_failure_usage(self, error: ProviderError) -> RequestUsage:
        """Use what the provider reported before it failed, but count at least the text that was streamed.

        A request that failed before anything was streamed has used nothing.
        """
        prompt_tokens = self._begun_state.expected_prompt_tokens if self._streamed_chars else 0
        tokens = error.tokens or TokenUsage(prompt=prompt_tokens)
        completion = max(tokens.completion, estimate_tokens_of_chars(self._streamed_chars))
        tokens = tokens.model_copy(update={"completion": completion})
        return self._build_usage(tokens, error.code, is_estimated=bool(tokens.context_tokens or tokens.completion))

    def _build_usage(self, tokens: TokenUsage, outcome: str, *, is_estimated: bool) -> RequestUsage:
        return build_request_usage(
            self._context.resources,
            self._context.turn,
            tokens,
            round_=self._begun_state.round,
            attempt=self._begun_state.request_attempts,
            tried=len(self.failed_usages) + 1,
            outcome=outcome,
            billable=outcome == "ok",
            estimated=is_estimated,
        )


def _build_request(context: TurnContext) -> ModelRequest:
    """On the last round the tools may no longer be called, so that the turn ends with an answer."""
    turn = context.turn
    settings = context.resources.settings
    return ModelRequest(
        model=turn.model,
        system=context.system_prompt,
        volatile=turn.situation,
        messages=context.load_history(),
        tools=context.tool_specs,
        max_tokens=settings.max_answer_tokens,
        thinking_tokens=turn.thinking_tokens,
        call_tools=context.log.state.round < turn.max_rounds,
        scope=turn.scope,
        window_tokens=settings.ollama_window_tokens,
    )
