"""Ask a model once, without a conversation: for a text, or for an object with a schema (decision 0367).

The request has a ledger row and a budget hold of its own, as the only request of a turn that is stored nowhere.
"""

from typing import Any

from fermata.aws.resources import Resources
from fermata.credentials.model_choice import resolve_model_choice
from fermata.credentials.open_endpoint import open_endpoint
from fermata.domain.blocks import TextBlock
from fermata.domain.caller import Caller
from fermata.domain.errors import ProviderError, Unprocessable
from fermata.domain.events import DoneEvent, ErrorEvent, TerminalEvent
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest, ModelResponse, TokenUsage
from fermata.domain.one_shot_generation import GenerateRequest
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.registry import get_provider
from fermata.drivers.retry_policy import RetryPolicy, stream_with_retries
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.connection_interface import ProviderConnection
from fermata.turns.generate.unstored_turn import UnstoredAccounting, build_unstored_turn, to_answer_error
from fermata.turns.round.structured_answer import (
    INVALID_OUTPUT_CODE,
    build_output_instruction,
    build_repair_request,
    find_output_problem,
    join_text,
    read_structured_answer,
)
from fermata.turns.turn import Turn
from fermata.usage.ledger.ledger_store import RequestUsage


@value_dataclass(frozen=True)
class GeneratedAnswer:
    """The answer. `value` is that of a request with a schema."""

    text: str
    value: Any
    finish_reason: str
    usages: tuple[RequestUsage, ...]

    @property
    def usage(self) -> dict[str, Any]:
        """The tokens of all requests, and what they cost in USD."""
        tokens = [usage.tokens for usage in self.usages]
        counts = {
            "inputTokens": sum(used.context_tokens for used in tokens),
            "outputTokens": sum(used.completion for used in tokens),
            "cacheReadTokens": sum(used.cache_read for used in tokens),
            "cacheWriteTokens": sum(used.cache_creation for used in tokens),
        }
        total = counts["inputTokens"] + counts["outputTokens"]
        return {**counts, "totalTokens": total, "costUsd": float(sum(usage.cost for usage in self.usages))}


def generate_answer(
    resources: Resources, caller: Caller, asked: GenerateRequest, connection: ProviderConnection
) -> GeneratedAnswer:
    """Ask a model, and once more if its object breaks the schema.

    Args:
        resources: Of the process.
        caller: Who asks, and for whom it counts.
        asked: The request.
        connection: Sends it, and limits its time.

    Raises:
        NotFound, InvalidRequest, Conflict: Of the credential and the model.
        PaymentRequired: A budget does not cover the request.
        Unprocessable: The model's answer breaks the schema.
        BadGateway: The provider refuses the request.
        ServiceUnavailable: The provider failed; the same request may succeed later.
    """
    choice = resolve_model_choice(resources, caller.tenant, asked.scope, asked.credential or None, asked.model or None)
    generation = _Generation(resources, build_unstored_turn(resources, caller, asked.scope, choice), asked, connection)
    return generation.run()


class _Generation:
    """One request, and its repetition after an answer that breaks the schema."""

    def __init__(
        self, resources: Resources, turn: Turn, asked: GenerateRequest, connection: ProviderConnection
    ) -> None:
        self._resources = resources
        self._turn = turn
        self._asked = asked
        self._connection = connection
        self._accounting = UnstoredAccounting(resources, turn)

    def run(self) -> GeneratedAnswer:
        request = self._build_request()
        turn = self._turn
        endpoint = open_endpoint(self._resources, turn.tenant, turn.credential, turn.credential_version)
        self._announce(request)
        error: ProviderError | None = None
        try:
            response = self._ask(endpoint, request)
            problem = self._find_problem(response)
            if problem:
                response = self._ask(endpoint, build_repair_request(request, response, problem))
                problem = self._find_problem(response)
        except ProviderError as failure:
            error = failure
        terminal: TerminalEvent = DoneEvent()
        if error is not None:
            terminal = ErrorEvent(message=error.message, code=error.code, retryable=error.retryable)
        elif problem:
            terminal = ErrorEvent(message=problem, code=INVALID_OUTPUT_CODE, retryable=False)
        self._accounting.end(terminal)
        if error is not None:
            raise to_answer_error(error)
        if problem:
            raise Unprocessable(f"The answer of {self._turn.model} does not have the required form: {problem}.")
        text = join_text(response)
        value = read_structured_answer(self._asked.output, text).value if self._asked.output else None
        return GeneratedAnswer(text, value, response.stop.value, tuple(self._accounting.usages))

    def _build_request(self) -> ModelRequest:
        asked, turn = self._asked, self._turn
        last = len(asked.messages) - 1
        messages = tuple(
            Message(
                position=number,
                role=role,
                content=(TextBlock(text=text), *(asked.images if number == last else ())),
                turn=turn.id,
            )
            for number, (role, text) in enumerate(asked.messages)
        )
        return ModelRequest(
            name=f"{turn.id}.1.1",
            model=turn.model,
            system=asked.system,
            instruction=build_output_instruction(asked.output) if asked.output else "",
            messages=messages,
            max_tokens=asked.max_output_tokens or self._resources.settings.max_answer_tokens,
            sampling=asked.sampling,
            output=asked.output,
            provider_options=asked.provider_options,
            window_tokens=self._resources.settings.ollama_window_tokens,
        )

    def _announce(self, request: ModelRequest) -> None:
        chars = len(request.system) + sum(len(text) for _, text in self._asked.messages)
        self._accounting.announce(chars, request.max_tokens)

    def _ask(self, endpoint: AuthenticatedEndpoint, request: ModelRequest) -> ModelResponse:
        if self._accounting.usages:
            self._accounting.announce_next()
        policy = RetryPolicy(max_attempts=self._asked.max_retries + 1)
        driver = get_provider(self._turn.provider)
        response: ModelResponse | None = None
        try:
            for part in stream_with_retries(
                driver,
                request,
                self._connection,
                endpoint,
                self._note_failure,
                before_retry=self._accounting.announce_next,
                policy=policy,
            ):
                response = part if isinstance(part, ModelResponse) else response
            if response is None:
                raise ProviderError(
                    "provider_empty", "The provider ended its stream without an answer.", retryable=True
                )
        except ProviderError as error:
            self._note_failure(error)
            raise
        self._accounting.add(response.tokens, "ok", is_estimated=not response.tokens_known)
        return response

    def _note_failure(self, error: ProviderError) -> None:
        self._accounting.add(error.tokens or TokenUsage(), error.code)

    def _find_problem(self, response: ModelResponse) -> str:
        return find_output_problem(self._asked.output, response) if self._asked.output else ""
