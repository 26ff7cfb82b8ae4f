import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from fermata.drivers.driver import Endpoint, driver_for
from fermata.drivers.line import Line
from fermata.drivers.retry import with_retries
from fermata.words.errors import ProviderError
from fermata.words.model import Piece, TextDelta
from tests.strict.anthropic import Said, StrictAnthropic, answer, sse, started, text
from tests.unit.drivers.asks import ask, user

ASK = ask(user("Hi"))


class Watched:
    """Tells a test which failures were announced and how long was waited."""

    def __init__(self, line: Line, endpoint: Endpoint) -> None:
        self.failed: list[tuple[int, str]] = []
        self.waits: list[float] = []
        self._line, self._endpoint = line, endpoint

    def ask(self, tries: int = 3) -> Iterator[Piece]:
        return with_retries(
            driver_for("anthropic"),
            ASK,
            self._line,
            self._endpoint,
            self.on_failed,
            tries=tries,
            wait=self.waits.append,
            chance=lambda: 1,
        )

    def on_failed(self, number: int, error: ProviderError) -> None:
        self.failed.append((number, error.code))


@pytest.fixture
def watched(line: Line, endpoint: Endpoint) -> Watched:
    return Watched(line, endpoint)


def test_a_failure_before_anything_was_seen_is_tried_again(provider: StrictAnthropic, watched: Watched) -> None:
    provider.fail(529, "overloaded_error")
    provider.fail(500)
    provider.say(answer("Hello"))
    pieces = list(watched.ask())
    assert pieces[0] == TextDelta(text="Hello")
    assert watched.failed == [(1, "provider_overloaded"), (2, "provider_error")]
    assert watched.waits == [1.0, 2.0]


def test_after_three_tries_the_last_failure_is_told(provider: StrictAnthropic, watched: Watched) -> None:
    for _ in range(3):
        provider.fail(529, "overloaded_error")
    with pytest.raises(ProviderError, match="529"):
        list(watched.ask())
    assert [number for number, _ in watched.failed] == [1, 2]
    assert len(provider.bodies) == 3


def test_retry_after_is_obeyed(provider: StrictAnthropic, watched: Watched) -> None:
    provider.fail(429, "rate_limit_error", retry_after="7")
    provider.say(answer())
    list(watched.ask())
    assert watched.waits == [7.0]


def test_a_provider_that_wants_to_be_left_alone_for_long_is_not_asked_again(
    provider: StrictAnthropic, watched: Watched
) -> None:
    provider.fail(429, "rate_limit_error", retry_after="3600")
    with pytest.raises(ProviderError):
        list(watched.ask())
    assert (watched.failed, watched.waits, len(provider.bodies)) == ([], [], 1)


def test_what_cannot_succeed_is_not_repeated(provider: StrictAnthropic, watched: Watched) -> None:
    provider.fail(401, "authentication_error")
    with pytest.raises(ProviderError, match="Check your API key"):
        list(watched.ask())
    assert len(provider.bodies) == 1


def test_an_answer_that_was_seen_is_never_begun_again(provider: StrictAnthropic, watched: Watched) -> None:
    provider.do(Said([sse(started(), text(0, "Partial")[:-1])], cut=True))
    pieces: list[Piece] = []
    with pytest.raises(ProviderError):
        pieces.extend(watched.ask())
    assert pieces == [TextDelta(text="Partial")]
    assert len(provider.bodies) == 1


def test_a_stream_cut_before_its_first_word_is_tried_again(provider: StrictAnthropic, watched: Watched) -> None:
    provider.do(Said([sse(started())], cut=True))
    provider.say(answer("Hello"))
    assert next(watched.ask()) == TextDelta(text="Hello")
    assert watched.failed == [(1, "provider_unreachable")]


def test_a_wait_that_would_outlast_the_call_is_not_begun(provider: StrictAnthropic, endpoint: Endpoint) -> None:
    provider.fail(429, "rate_limit_error", retry_after="7")
    with closing(Line(total_seconds=3)) as short:
        watched = Watched(short, endpoint)
        with pytest.raises(ProviderError, match="quota or rate limit"):
            list(watched.ask())
    assert watched.waits == []


def test_a_hang_up_ends_the_wait(provider: StrictAnthropic, line: Line, endpoint: Endpoint) -> None:
    provider.fail(429, "rate_limit_error", retry_after="10")
    began = time.monotonic()

    def hang_up_soon(number: int, error: ProviderError) -> None:
        threading.Timer(0.05, line.hang_up).start()

    with pytest.raises(ProviderError) as caught:
        list(with_retries(driver_for("anthropic"), ASK, line, endpoint, hang_up_soon))
    assert caught.value.code == "provider_closed"
    assert time.monotonic() - began < 1
    assert len(provider.bodies) == 1


@pytest.mark.parametrize("tries", [1, 2, 5])
def test_how_often_it_is_tried_can_be_set(tries: int, provider: StrictAnthropic, watched: Watched) -> None:
    for _ in range(tries):
        provider.fail(529, "overloaded_error")
    with pytest.raises(ProviderError):
        list(watched.ask(tries))
    assert len(provider.bodies) == tries
    assert [number for number, _ in watched.failed] == list(range(1, tries))
