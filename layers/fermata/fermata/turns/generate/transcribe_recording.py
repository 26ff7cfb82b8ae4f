"""Ask a model what is said in a recording: with a deadline, a budget hold and a ledger row (decision 0500).

The row is that of a turn which is stored nowhere, because what a recording costs is due also if its prompt is refused.
"""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import field
from typing import Any

from fermata.aws.resources import Resources
from fermata.credentials import base_urls
from fermata.credentials.model_choice import ModelChoice
from fermata.domain.audio_header import MIN_AUDIO_BYTES_PER_SECOND
from fermata.domain.caller import Caller
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import TokenUsage
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.audio_transcription import (
    MAX_TRANSCRIPT_TOKENS,
    AudioFile,
    TranscribedAudio,
    request_transcript,
)
from fermata.drivers.registry import get_provider
from fermata.drivers.retry_policy import Failure
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.pricing.audio_cost import GEMINI_TOKENS_PER_SECOND, compute_audio_cost, compute_max_audio_cost
from fermata.turns.accounting import MIN_HOLD_USD
from fermata.turns.generate.unstored_turn import (
    UNSTORED_HOLD_SECONDS,
    UnstoredAccounting,
    build_unstored_turn,
    to_answer_error,
)
from fermata.turns.turn import Turn

TRANSCRIPTION_SECONDS = 60.0
"""The deadline of one recording."""
_USUAL_BYTES_PER_SECOND = 4000
"""32 kbit/s, for the estimate of a recording whose length nobody has reported."""


@value_dataclass(frozen=True)
class Transcriber:
    """The model for recordings.

    Attributes:
        choice: The model, with its credential.
        open: Returns the server and its key.
        options: What the agent lets be sent along.
    """

    choice: ModelChoice
    open: Callable[[], AuthenticatedEndpoint]
    options: Mapping[str, Any] = field(default_factory=dict)


def transcribe_recording(
    resources: Resources, caller: Caller, scope: str, transcriber: Transcriber, audio: AudioFile
) -> str:
    """Return what is said in a recording; an empty text if nobody speaks.

    Args:
        resources: Of the process.
        caller: For whom it counts.
        scope: As which the ledger lists it.
        transcriber: The model.
        audio: The recording.

    Raises:
        PaymentRequired: A budget does not cover it.
        ServiceUnavailable: The provider failed or took too long; the same request may succeed later.
        BadGateway: It refused, or answered with something else.
        NotFound, Conflict, InvalidRequest: Of the credential.
    """
    turn = build_unstored_turn(resources, caller, scope, transcriber.choice)
    endpoint = transcriber.open()
    accounting = UnstoredAccounting(resources, turn)
    _announce(resources, turn, audio, accounting)
    try:
        answer = _send(resources, turn, endpoint, transcriber.options, audio)
    except ProviderError as error:
        _end_turn(resources, turn, audio, accounting, None, error)
        error.message = f"The recording could not be transcribed. {error.message}"
        raise to_answer_error(error) from error
    _end_turn(resources, turn, audio, accounting, answer, None)
    return answer.text


def _send(
    resources: Resources, turn: Turn, endpoint: AuthenticatedEndpoint, options: Mapping[str, Any], audio: AudioFile
) -> TranscribedAudio:
    from fermata.drivers.transport.http_connection import HttpConnection  # functions that send nothing load no httpx

    connection = HttpConnection(
        stall_seconds=TRANSCRIPTION_SECONDS,
        total_seconds=TRANSCRIPTION_SECONDS,
        guard=base_urls.make_url_guard(resources.settings),
    )
    with closing(connection), connection.call_scope():
        return request_transcript(get_provider(turn.provider), connection, endpoint, turn.model, audio, options)


def _announce(resources: Resources, turn: Turn, audio: AudioFile, accounting: UnstoredAccounting) -> None:
    """Note that it is sent, and hold what it costs if the recording is as long as its size allows for speech."""
    announce = accounting.build_announcement(_estimate_usage(resources, turn, audio))
    if not turn.has_budget:
        announce(())
        return
    from fermata.usage.budgets import holds  # imported here because most tenants have no budget

    seconds = max(1.0, len(audio.data) / MIN_AUDIO_BYTES_PER_SECOND)
    amount = compute_max_audio_cost(resources, turn.provider, turn.model, seconds, MAX_TRANSCRIPT_TOKENS)
    request = holds.BudgetedRequest(
        turn.tenant, turn.user, turn.id, 1, 1, turn.model, lifetime_seconds=UNSTORED_HOLD_SECONDS
    )
    held = None if amount is None else max(amount, MIN_HOLD_USD)
    holds.reserve_budget_and_commit(resources, request, held, announce)


def _end_turn(
    resources: Resources,
    turn: Turn,
    audio: AudioFile,
    accounting: UnstoredAccounting,
    answer: TranscribedAudio | None,
    error: ProviderError | None,
) -> None:
    """Write the ledger row of the request, and release what was held for it."""
    is_estimated = _is_unknown(answer, error)
    if is_estimated:
        reported = _estimate_usage(resources, turn, audio)
    else:
        tokens = answer.tokens if answer else TokenUsage()
        reported = _add_cost(resources, turn, tokens, answer.seconds if answer else 0.0)
    accounting.add(reported, error.code if error else "ok", is_estimated=is_estimated)
    accounting.end(error)


def _estimate_usage(resources: Resources, turn: Turn, audio: AudioFile) -> TokenUsage:
    """Return what a recording of that size takes and costs usually."""
    seconds = len(audio.data) / _USUAL_BYTES_PER_SECOND
    prompt = int(seconds * GEMINI_TOKENS_PER_SECOND) if turn.provider == "gemini" else 0
    return _add_cost(resources, turn, TokenUsage(prompt=prompt), seconds)


def _add_cost(resources: Resources, turn: Turn, tokens: TokenUsage, seconds: float) -> TokenUsage:
    cost = compute_audio_cost(resources, turn.provider, turn.model, tokens, seconds)
    return tokens.model_copy(update={"reported_cost": cost})


def _is_unknown(answer: TranscribedAudio | None, error: ProviderError | None) -> bool:
    """Return whether it has cost something that nobody has reported: also when the deadline has passed."""
    if answer is not None:
        known = answer.seconds or answer.tokens.prompt or answer.tokens.completion
        return not known and answer.tokens.reported_cost is None
    return error is not None and error.code == Failure.STALLED.code
