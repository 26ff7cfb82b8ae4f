"""Send a round's model request, with its silent retries, and stream its text into the turn log."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from fermata.aws.dynamodb_items_and_writes import TransactionCanceled, Write
from fermata.aws.security_events import SecurityEvent, log_security_event, make_user_pseudonym
from fermata.conversations.history.token_estimate import estimate_tokens
from fermata.domain.errors import ApiError, PaymentRequired, ProviderError
from fermata.domain.events import (
    Event,
    ReasoningEvent,
    RequestFailedEvent,
    RequestStartedEvent,
    TextEvent,
)
from fermata.domain.model_io import ModelRequest, ModelResponse, TextDelta, TokenUsage
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.registry import get_provider
from fermata.drivers.retry_policy import Failure, stream_with_retries
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.connection_interface import ProviderConnection
from fermata.turns.accounting import (
    add_usage,
    build_request_usage,
    commit_with_budget_hold,
    estimate_tokens_of_chars,
)
from fermata.turns.round.build_request import build_model_request, list_first_warnings
from fermata.turns.round.fallback_models import list_fallback_models
from fermata.turns.round.forced_answer import ForcedAnswer
from fermata.turns.round.request_deadlines import RequestDeadlines
from fermata.turns.round.stream_writer import StreamWriter
from fermata.turns.round.structured_answer import (
    INVALID_OUTPUT_CODE,
    build_repair_request,
    find_output_problem,
    format_answer,
    join_text,
)
from fermata.turns.round.turn_context import TurnContext
from fermata.turns.turn_log import fixed_events
from fermata.usage.ledger.ledger_store import RequestUsage
from fermata.usage.usage_writes import build_request_writes

_CODES_OF_OTHER_MODELS = frozenset(failure.code for failure in Failure) - {
    Failure.REQUEST_TOO_LARGE.code,
    Failure.UNREADABLE_IMAGE.code,
    Failure.ABORTED.code,
}
"""Codes of failures after which the next model is asked."""
NO_RESPONSE_MESSAGE = "The provider ended its stream without completing the answer."


@value_dataclass(frozen=True)
class ModelRequestOutcome:
    """The response of a request, or the error that it ended with, and the usage to account for.

    Requests that failed before anything was streamed, and were sent again, are accounted for already.
    """

    result: ModelResponse | ProviderError
    unwritten_events: tuple[TextEvent | ReasoningEvent, ...] = ()
    """Streamed text that is not in the log yet."""
    last_usage: RequestUsage | None = None
    """None when no request was sent."""
    forced_answer: ForcedAnswer | None = None
    """Why the request was sent without tools, if it was."""
    warnings: tuple[Event, ...] = ()
    """What the user reads about the request, once in a turn, and the title of the conversation."""
    other_usages: tuple[RequestUsage, ...] = ()
    """Of requests beside this one."""
    may_call_tools: bool = True
    """Whether calls of the response are run."""
    seconds_to_first_text: float | None = None
    """Until the first text was in the log."""

    @property
    def request_usages(self) -> tuple[RequestUsage, ...]:
        return (*self.other_usages, self.last_usage) if self.last_usage else self.other_usages


def send_model_request(context: TurnContext, connection: ProviderConnection) -> ModelRequestOutcome:
    """Send the request of the current round.

    Raises:
        TurnEnded, Superseded: Noticed before the request was sent, or while the response was streamed.
    """
    if context.turn.direct_call is not None:
        from fermata.turns.round.direct_call import answer_direct_call  # most turns ask a model

        return answer_direct_call(context, context.turn.direct_call)
    try:
        _check_history_fits(context)
        endpoint = _open_endpoint(context)
    except ProviderError as refusal:
        return ModelRequestOutcome(refusal)
    if not context.agent.settings.generate_title or context.turn.parent:
        return _RequestSender(context).send(connection, endpoint)
    from fermata.turns.round.title_request import request_title  # few turns make a title

    with request_title(context, connection, endpoint) as request:
        outcome = _RequestSender(context).send(connection, endpoint)
        if request is None:
            return outcome
        title = request.get_outcome()
        return replace(outcome, warnings=(*outcome.warnings, *title.events), other_usages=title.usages)


def _check_history_fits(context: TurnContext) -> None:
    """Refuse a history that the server would cut in silence. The user's prompt alone is too long then."""
    max_tokens = context.model_profile.max_sent_tokens
    if max_tokens is None:
        return
    tokens = estimate_tokens(context.load_history())
    if tokens > max_tokens:
        message = f"About {tokens:,} tokens, with room for {max_tokens:,}"
        raise Failure.REQUEST_TOO_LARGE.to_error(message)


def _open_endpoint(context: TurnContext) -> AuthenticatedEndpoint:
    try:
        context.open_provider_options()  # a secret that is missing ends the round like a missing key
        return context.open_endpoint()
    except ApiError as refusal:
        raise ProviderError("provider_auth", refusal.message, retryable=False) from refusal


class _RequestSender:
    """Sends one request, and repeats it while it fails before anything is streamed.

    The log says that a request is sent before it is, and that it has failed before it is repeated (decision 0146).

    Round and attempt are those at the beginning. The background thread moves the state of the log, by then perhaps to
    the attempt of a successor, under whose name nothing of this one may be booked (decision 0145).
    """

    def __init__(self, context: TurnContext) -> None:
        self._context = context
        self._begun_state = context.log.state
        self._streamed_chars = 0
        self._held_chars = 0
        """Characters of an answer with a schema, which no client is shown before it is checked."""
        self._failed_count = 0
        self._model = context.turn.model
        self._is_sent = self._begun_state.has_open_request
        self._deadlines: RequestDeadlines | None = None

    def send(self, connection: ProviderConnection, endpoint: AuthenticatedEndpoint) -> ModelRequestOutcome:
        context = self._context
        clock = context.resources.clock
        request, forced_answer = build_model_request(context)
        started_at = clock.monotonic()
        limits = context.agent.settings.timeout
        self._deadlines = RequestDeadlines(clock, limits, context.run_started_at, connection.abort)
        with (
            connection.call_scope(),
            StreamWriter(
                context.resources, context.log, context.heartbeat, connection.abort, connection.run_before_wait
            ) as writer,
            self._deadlines.watch(),
        ):
            result = self._ask(request, connection, endpoint, writer)
            if not _has_calls(result):  # otherwise it is committed with them
                writer.write_held()
            unwritten_events = writer.take_unwritten()
        first_written_at = writer.first_written_at or (clock.monotonic() if unwritten_events else None)
        return ModelRequestOutcome(
            result,
            unwritten_events,
            last_usage=self._build_last_usage(result) if self._is_sent else None,
            forced_answer=forced_answer,
            warnings=list_first_warnings(request, context.turn) if self._begun_state.round == 1 else (),
            may_call_tools=request.call_tools,
            seconds_to_first_text=first_written_at - started_at if first_written_at is not None else None,
        )

    def _ask(
        self,
        request: ModelRequest,
        connection: ProviderConnection,
        endpoint: AuthenticatedEndpoint,
        writer: StreamWriter,
    ) -> ModelResponse | ProviderError:
        """Ask for an answer. One that breaks its schema is asked for once more; only then is it shown."""
        result = self._stream(request, connection, endpoint, writer)
        if request.output is None or not isinstance(result, ModelResponse):
            return result
        if problem := find_output_problem(request.output, result):
            self._record_failure(writer, _build_output_error(problem, result))
            repair = build_repair_request(request, result, problem)
            result = self._stream(repair, connection, endpoint, writer)
            if not isinstance(result, ModelResponse):
                return result
            if problem := find_output_problem(request.output, result):
                return _build_output_error(problem, result)
        result = format_answer(request.output, result)
        if text := join_text(result):
            writer.write(TextEvent(text=text))
        return result

    def _stream(
        self,
        request: ModelRequest,
        connection: ProviderConnection,
        endpoint: AuthenticatedEndpoint,
        writer: StreamWriter,
    ) -> ModelResponse | ProviderError:
        """Ask the turn's model and, while they fail without a word, the models after it (decision 0386)."""
        result = self._stream_of(request, connection, endpoint, writer)
        for model in list_fallback_models(self._context.agent.settings):
            if isinstance(result, ModelResponse) or self._streamed_chars or not _may_another_model_answer(result):
                break
            if self._is_sent:
                self._record_failure(writer, result)
            self._model = model
            result = self._stream_of(request.model_copy(update={"model": model}), connection, endpoint, writer)
        return result

    def _stream_of(
        self,
        request: ModelRequest,
        connection: ProviderConnection,
        endpoint: AuthenticatedEndpoint,
        writer: StreamWriter,
    ) -> ModelResponse | ProviderError:
        """Ask one model."""
        response: ModelResponse | None = None
        error = ProviderError("provider_error", NO_RESPONSE_MESSAGE, retryable=True)
        self._held_chars = 0
        deadlines = self._deadlines
        try:
            if deadlines is not None:
                deadlines.check()
            if self._is_sent:
                writer.check_log()
            else:
                self._record_start(writer)
            for part in stream_with_retries(
                get_provider(self._context.turn.provider),
                request,
                connection,
                endpoint,
                partial(self._record_failure, writer),
                before_retry=partial(self._record_start, writer),
                policy=self._context.retry_policy,
            ):
                if isinstance(part, ModelResponse):
                    response = part
                    continue
                if deadlines is not None:
                    deadlines.note_part()
                if request.output is not None and isinstance(part, TextDelta):
                    self._held_chars += len(part.text)
                    continue
                self._streamed_chars += len(part.text)
                writer.write((TextEvent if isinstance(part, TextDelta) else ReasoningEvent)(text=part.text))
        except ProviderError as failure:
            error = (deadlines and deadlines.error) or failure
            error.tokens = failure.tokens
        return error if response is None else response

    def _record_failure(self, writer: StreamWriter, error: ProviderError) -> None:
        """Write the ledger row of a request that is about to be repeated, with the entry that says it has failed."""
        context = self._context
        usages = (self._build_failure_usage(error),)
        append = partial(
            context.log.append,
            fixed_events(RequestFailedEvent(code=error.code)),
            lambda _log_entry, _before: build_request_writes(context.resources, usages),
            update_state=lambda _before, after: add_usage(after, usages),
        )
        writer.append(append)
        self._failed_count += 1
        self._is_sent = False

    def _record_start(self, writer: StreamWriter) -> None:
        """Append requestStarted, in one transaction with the budget hold of the request.

        So nothing is held and nothing is sent once the turn has ended or another invocation has taken the round. If the
        append took long, either may have happened since (decision 0186).
        """
        context = self._context
        state = self._begun_state

        def append(hold_writes: Sequence[Write]) -> None:
            try:
                context.log.append(fixed_events(RequestStartedEvent()), lambda _log_entry, _before: hold_writes)
            except TransactionCanceled as error:
                from fermata.usage.budgets.holds import AccountsChanged  # imported here because it is rare

                raise AccountsChanged from error

        # a further model may have another price, or none
        turn = (
            context.turn
            if self._model == context.turn.model
            else context.turn.model_copy(update={"model": self._model})
        )
        commit = partial(
            commit_with_budget_hold,
            context.resources,
            turn,
            state.expected_prompt_tokens,
            append,
            round_=state.round,
            attempt=state.request_attempts,
            answer_tokens=context.step_settings.max_output_tokens,
        )
        try:
            writer.append(commit)
        except PaymentRequired as refusal:
            user = make_user_pseudonym(context.turn.tenant, context.turn.user)
            log_security_event(SecurityEvent.LIMIT_REACHED, refusal.reason or "budget", user=user)
            raise ProviderError("budget_exhausted", refusal.message, retryable=False) from refusal
        except ApiError as refusal:
            raise ProviderError("busy", refusal.message, retryable=True) from refusal
        writer.check_log()
        self._is_sent = True

    def _build_last_usage(self, result: ModelResponse | ProviderError) -> RequestUsage:
        if isinstance(result, ProviderError):
            return self._build_failure_usage(result)
        return self._build_usage(result.tokens, "ok", is_estimated=not result.tokens_known)

    def _build_failure_usage(self, error: ProviderError) -> RequestUsage:
        """Use what the provider reported before it failed, but count at least the text that was streamed.

        A request that failed before anything was streamed has used nothing.
        """
        was_answered = self._streamed_chars or self._held_chars
        prompt_tokens = self._begun_state.expected_prompt_tokens if was_answered else 0
        tokens = error.tokens or TokenUsage(prompt=prompt_tokens)
        completion = max(tokens.completion, estimate_tokens_of_chars(self._streamed_chars + self._held_chars))
        tokens = tokens.model_copy(update={"completion": completion})
        return self._build_usage(tokens, error.code, is_estimated=bool(tokens.context_tokens or tokens.completion))

    def _build_usage(self, tokens: TokenUsage, outcome: str, *, is_estimated: bool) -> RequestUsage:
        return build_request_usage(
            self._context.resources,
            self._context.turn,
            tokens,
            round_=self._begun_state.round,
            attempt=self._begun_state.request_attempts,
            request_number=self._failed_count + 1,
            outcome=outcome,
            billable=outcome == "ok",
            estimated=is_estimated,
            model=self._model,
        )


def _has_calls(result: ModelResponse | ProviderError) -> bool:
    return isinstance(result, ModelResponse) and any(block.kind == "toolCall" for block in result.blocks)


def _build_output_error(problem: str, response: ModelResponse) -> ProviderError:
    message = f"The answer does not have the form that its agent requires: {problem}."
    error = ProviderError(INVALID_OUTPUT_CODE, message, retryable=False)
    error.tokens = response.tokens
    return error


def _may_another_model_answer(error: ProviderError) -> bool:
    """Return whether the failure may be the model's. What the history or the turn is refused for stays what it is."""
    return error.code in _CODES_OF_OTHER_MODELS
