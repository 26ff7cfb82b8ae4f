import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from fermata.domain.errors import ProviderError
from fermata.domain.model_io import StreamPart, TextDelta
from fermata.drivers.registry import Endpoint, get_provider
from fermata.drivers.retry_policy import RetryPolicy, stream_with_retries
from fermata.drivers.transport.connection import ProviderConnection
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
    """Tells a test which failures were announced and how long was waited."""

    def __init__(self, line: ProviderConnection, endpoint: Endpoint) -> None:
        self.failed: list[str] = []
        self.waits: list[float] = []
        self._line, self._endpoint = line, endpoint

    def stream(self, tries: int = 3) -> Iterator[StreamPart]:
        return stream_with_retries(
            get_provider("anthropic"),
            ASK,
            self._line,
            self._endpoint,
            self.on_failed,
            policy=RetryPolicy(max_attempts=tries),
            sleep=self.waits.append,
            get_jitter=lambda: 1,
        )

    def on_failed(self, error: ProviderError) -> None:
        self.failed.append(error.code)


@pytest.fixture
def watched(line: ProviderConnection, endpoint: Endpoint) -> RetryRecorder:
    return RetryRecorder(line, endpoint)


def test_a_failure_before_anything_was_seen_is_tried_again(provider: StrictAnthropic, watched: RetryRecorder) -> None:
    provider.script_error(529, "overloaded_error")
    provider.script_error(500)
    provider.script_chunks(text_response("Hello"))
    pieces = list(watched.stream())
    assert pieces[0] == TextDelta(text="Hello")
    assert watched.failed == ["provider_overloaded", "provider_error"]
    assert watched.waits == [1.0, 2.0]


def test_after_three_tries_the_last_failure_is_told(provider: StrictAnthropic, watched: RetryRecorder) -> None:
    for _ in range(3):
        provider.script_error(529, "overloaded_error")
    with pytest.raises(ProviderError, match="529"):
        list(watched.stream())
    assert len(watched.failed) == 2
    assert len(provider.bodies) == 3


def test_retry_after_is_obeyed(provider: StrictAnthropic, watched: RetryRecorder) -> None:
    provider.script_error(429, "rate_limit_error", retry_after="7")
    provider.script_chunks(text_response())
    list(watched.stream())
    assert watched.waits == [7.0]


def test_a_provider_that_wants_to_be_left_alone_for_long_is_not_asked_again(
    provider: StrictAnthropic, watched: RetryRecorder
) -> None:
    provider.script_error(429, "rate_limit_error", retry_after="3600")
    with pytest.raises(ProviderError):
        list(watched.stream())
    assert (watched.failed, watched.waits, len(provider.bodies)) == ([], [], 1)


def test_what_cannot_succeed_is_not_repeated(provider: StrictAnthropic, watched: RetryRecorder) -> None:
    provider.script_error(401, "authentication_error")
    with pytest.raises(ProviderError, match="Check your API key"):
        list(watched.stream())
    assert len(provider.bodies) == 1


def test_an_answer_that_was_seen_is_never_begun_again(provider: StrictAnthropic, watched: RetryRecorder) -> None:
    provider.script_response(ScriptedResponse([encode_sse(message_start(), text_block(0, "Partial")[:-1])], cut=True))
    pieces: list[StreamPart] = []
    with pytest.raises(ProviderError):
        pieces.extend(watched.stream())
    assert pieces == [TextDelta(text="Partial")]
    assert len(provider.bodies) == 1


def test_a_stream_cut_before_its_first_word_is_tried_again(provider: StrictAnthropic, watched: RetryRecorder) -> None:
    provider.script_response(ScriptedResponse([encode_sse(message_start())], cut=True))
    provider.script_chunks(text_response("Hello"))
    assert next(watched.stream()) == TextDelta(text="Hello")
    assert watched.failed == ["provider_unreachable"]


def test_a_wait_that_would_outlast_the_call_is_not_begun(provider: StrictAnthropic, endpoint: Endpoint) -> None:
    provider.script_error(429, "rate_limit_error", retry_after="7")
    with closing(ProviderConnection(total_seconds=3)) as short:
        watched = RetryRecorder(short, endpoint)
        with pytest.raises(ProviderError, match="quota or rate limit"):
            list(watched.stream())
    assert watched.waits == []


def test_a_hang_up_ends_the_wait(provider: StrictAnthropic, line: ProviderConnection, endpoint: Endpoint) -> None:
    provider.script_error(429, "rate_limit_error", retry_after="10")
    began = time.monotonic()

    def hang_up_soon(_error: ProviderError) -> None:
        threading.Timer(0.05, line.abort).start()

    with pytest.raises(ProviderError) as caught:
        list(stream_with_retries(get_provider("anthropic"), ASK, line, endpoint, hang_up_soon))
    assert caught.value.code == "provider_closed"
    assert time.monotonic() - began < 1
    assert len(provider.bodies) == 1


@pytest.mark.parametrize("tries", [1, 2, 5])
def test_how_often_it_is_tried_can_be_set(tries: int, provider: StrictAnthropic, watched: RetryRecorder) -> None:
    for _ in range(tries):
        provider.script_error(529, "overloaded_error")
    with pytest.raises(ProviderError):
        list(watched.stream(tries))
    assert len(provider.bodies) == tries
    assert len(watched.failed) == tries - 1
