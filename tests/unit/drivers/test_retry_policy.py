"""The retry policy: over a real socket first, then by itself."""

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from fermata.domain.errors import ProviderError
from fermata.domain.model_io import StreamPart, TextDelta
from fermata.drivers.registry import get_provider
from fermata.drivers.retry_policy import Failure, RetryPolicy, is_retryable_response, stream_with_retries
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from tests.strict.anthropic import (
    ScriptedResponse,
    StrictAnthropic,
    encode_sse,
    message_start,
    text_block,
    text_response,
)
from tests.unit.drivers.conversation_builders import model_request, user_message

ASK = model_request(user_message("Hi"))


class RetryRecorder:
    """Record which failures were reported and how long the delays were."""

    def __init__(self, connection: HttpConnection, endpoint: AuthenticatedEndpoint) -> None:
        self.failed: list[str] = []
        self.delays: list[float] = []
        self._line, self._endpoint = connection, endpoint

    def stream(self, max_attempts: int = 3) -> Iterator[StreamPart]:
        return stream_with_retries(
            get_provider("anthropic"),
            ASK,
            self._line,
            self._endpoint,
            self.on_failed,
            policy=RetryPolicy(max_attempts=max_attempts),
            sleep=self.delays.append,
            get_jitter=lambda: 1,
        )

    def on_failed(self, error: ProviderError) -> None:
        self.failed.append(error.code)


@pytest.fixture
def recorder(connection: HttpConnection, endpoint: AuthenticatedEndpoint) -> RetryRecorder:
    return RetryRecorder(connection, endpoint)


def test_a_failure_before_any_output_is_retried(provider: StrictAnthropic, recorder: RetryRecorder) -> None:
    provider.script_error(529, "overloaded_error")
    provider.script_error(500)
    provider.script_chunks(text_response("Hello"))
    parts = list(recorder.stream())
    assert parts[0] == TextDelta(text="Hello")
    assert recorder.failed == ["provider_overloaded", "provider_error"]
    assert recorder.delays == [1.0, 2.0]


def test_after_three_attempts_the_last_failure_is_raised(provider: StrictAnthropic, recorder: RetryRecorder) -> None:
    for _ in range(3):
        provider.script_error(529, "overloaded_error")
    with pytest.raises(ProviderError, match="529"):
        list(recorder.stream())
    assert len(recorder.failed) == 2
    assert len(provider.bodies) == 3


def test_retry_after_is_obeyed(provider: StrictAnthropic, recorder: RetryRecorder) -> None:
    provider.script_error(429, "rate_limit_error", retry_after="7")
    provider.script_chunks(text_response())
    list(recorder.stream())
    assert recorder.delays == [7.0]


def test_a_long_retry_after_is_not_waited_for(provider: StrictAnthropic, recorder: RetryRecorder) -> None:
    provider.script_error(429, "rate_limit_error", retry_after="3600")
    with pytest.raises(ProviderError):
        list(recorder.stream())
    assert (recorder.failed, recorder.delays, len(provider.bodies)) == ([], [], 1)


def test_a_failure_that_cannot_pass_is_not_retried(provider: StrictAnthropic, recorder: RetryRecorder) -> None:
    provider.script_error(401, "authentication_error")
    with pytest.raises(ProviderError, match="Check your API key"):
        list(recorder.stream())
    assert len(provider.bodies) == 1


def test_an_answer_that_was_seen_is_never_repeated(provider: StrictAnthropic, recorder: RetryRecorder) -> None:
    provider.script_response(ScriptedResponse([encode_sse(message_start(), text_block(0, "Partial")[:-1])], cut=True))
    parts: list[StreamPart] = []
    with pytest.raises(ProviderError):
        parts.extend(recorder.stream())
    assert parts == [TextDelta(text="Partial")]
    assert len(provider.bodies) == 1


def test_a_stream_that_is_cut_before_its_first_word_is_retried(
    provider: StrictAnthropic, recorder: RetryRecorder
) -> None:
    provider.script_response(ScriptedResponse([encode_sse(message_start())], cut=True))
    provider.script_chunks(text_response("Hello"))
    assert next(recorder.stream()) == TextDelta(text="Hello")
    assert recorder.failed == ["provider_unreachable"]


def test_a_delay_that_would_outlast_the_call_is_not_started(
    provider: StrictAnthropic, endpoint: AuthenticatedEndpoint
) -> None:
    provider.script_error(429, "rate_limit_error", retry_after="7")
    with closing(HttpConnection(total_seconds=3)) as short:
        recorder = RetryRecorder(short, endpoint)
        with pytest.raises(ProviderError, match="quota or rate limit"):
            list(recorder.stream())
    assert recorder.delays == []


def test_an_abort_ends_the_delay(
    provider: StrictAnthropic, connection: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    provider.script_error(429, "rate_limit_error", retry_after="10")

    def abort_soon(_error: ProviderError) -> None:
        threading.Timer(0.05, connection.abort).start()

    with pytest.raises(ProviderError) as caught:
        list(stream_with_retries(get_provider("anthropic"), ASK, connection, endpoint, abort_soon))
    assert caught.value.code == "provider_closed"
    assert len(provider.bodies) == 1


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_the_number_of_attempts_can_be_set(attempts: int, provider: StrictAnthropic, recorder: RetryRecorder) -> None:
    for _ in range(attempts):
        provider.script_error(529, "overloaded_error")
    with pytest.raises(ProviderError):
        list(recorder.stream(attempts))
    assert len(provider.bodies) == attempts
    assert len(recorder.failed) == attempts - 1


ERROR = ProviderError("provider_overloaded", "busy", retryable=True)


@pytest.mark.parametrize(("attempt", "jitter", "seconds"), [(1, 1, 1.0), (1, 0, 0.75), (2, 1, 2.0), (4, 1, 8.0)])
def test_the_delay_doubles_and_a_quarter_of_it_is_random(attempt: int, jitter: float, seconds: float) -> None:
    assert RetryPolicy(max_attempts=9).get_retry_delay(attempt, ERROR, jitter) == seconds


@pytest.mark.parametrize(("retry_after", "seconds"), [(0.0, 0.0), (30.0, 30.0), (30.1, None)])
def test_the_providers_own_delay_counts_up_to_a_limit(retry_after: float, seconds: float | None) -> None:
    error = ProviderError("provider_quota", "slow down", retryable=True, retry_after=retry_after)
    assert RetryPolicy().get_retry_delay(1, error, 1) == seconds


def test_only_a_failure_that_may_pass_is_retried_and_not_for_ever() -> None:
    policy = RetryPolicy(max_attempts=3)
    assert policy.get_retry_delay(3, ERROR, 1) is None
    assert policy.get_retry_delay(1, ProviderError("provider_auth", "no", retryable=False), 1) is None


@pytest.mark.parametrize(
    ("attempts", "was_text_shown", "can_retract_text", "may_restart"),
    [
        (1, False, False, True),
        (1, True, True, True),
        (1, True, False, False),
        (2, False, True, False),
    ],
)
def test_a_round_starts_over_once_and_never_after_text_that_stays(
    attempts: int, was_text_shown: bool, can_retract_text: bool, may_restart: bool
) -> None:
    policy = RetryPolicy(max_round_attempts=2)
    permitted = policy.may_restart_round(attempts, was_text_shown=was_text_shown, can_retract_text=can_retract_text)
    assert permitted is may_restart


@pytest.mark.parametrize(
    ("attempts", "was_text_shown", "may_reduce"), [(3, False, True), (4, False, False), (1, True, False)]
)
def test_a_request_is_reduced_a_few_times_and_never_after_text(
    attempts: int, was_text_shown: bool, may_reduce: bool
) -> None:
    assert RetryPolicy().may_reduce_request(attempts, was_text_shown=was_text_shown) is may_reduce


@pytest.mark.parametrize(
    ("status", "headers", "failure", "is_retryable"),
    [
        (429, {}, Failure.RATE_LIMITED, True),
        (429, {}, Failure.QUOTA_SPENT, False),
        (429, {"x-should-retry": "true"}, Failure.QUOTA_SPENT, True),
        (500, {"x-should-retry": "false"}, None, False),
        (500, {}, None, True),
        (408, {}, Failure.BAD_REQUEST, True),
        (404, {}, None, False),
    ],
)
def test_which_responses_are_retried(
    status: int, headers: dict[str, str], failure: Failure | None, is_retryable: bool
) -> None:
    assert is_retryable_response(status, headers, failure) is is_retryable
