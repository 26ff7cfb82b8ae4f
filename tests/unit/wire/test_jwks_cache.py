"""One tenant's key server, slow or down, takes a few threads for a few seconds and no more."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt import PyJWK
from jwt.algorithms import ECAlgorithm

from fermata.domain.errors import ServiceUnavailable
from fermata.wire.auth import jwks_cache
from fermata.wire.auth.jwks_cache import MAX_KEY_SET_WAITERS, JwksCache
from tests.resources import TestClock
from tests.waiting import wait_until


def make_key(kid: str) -> PyJWK:
    public_key = ec.generate_private_key(ec.SECP256R1()).public_key()
    return PyJWK({**ECAlgorithm.to_jwk(public_key, as_dict=True), "kid": kid})


OLD, NEW = make_key("old"), make_key("new")


class KeyServer:
    """Answers when it is told to, with the keys it has at that moment; None means that it fails."""

    def __init__(self) -> None:
        self.keys: Sequence[PyJWK] | None = (OLD,)
        self.is_answering = threading.Event()
        self.is_answering.set()
        self.requests = 0

    def load(self) -> Sequence[PyJWK] | None:
        self.requests += 1
        self.is_answering.wait()
        return self.keys


@pytest.fixture
def server() -> Iterator[KeyServer]:
    server = KeyServer()
    yield server
    server.is_answering.set()


@pytest.fixture
def source(clock: TestClock, server: KeyServer) -> JwksCache:
    return JwksCache(clock, server.load)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(40) as pool:
        yield pool


def choose(kid: str) -> Callable[[Sequence[PyJWK]], Sequence[PyJWK]]:
    return lambda keys: [key for key in keys if key.key_id == kid]


def ask_in_threads(
    pool: ThreadPoolExecutor, source: JwksCache, count: int, kid: str = "old"
) -> list[Future[Sequence[PyJWK]]]:
    return [pool.submit(source.find_keys, choose(kid)) for _ in range(count)]


def count_waiters(source: JwksCache) -> int:
    return source._waiters


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jwks_cache, "KEY_SET_FETCH_SECONDS", 60.0)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jwks_cache, "KEY_SET_FETCH_SECONDS", 0.05)


@pytest.mark.usefixtures("patient")
def test_of_many_threads_one_asks_a_few_wait_and_the_rest_are_refused_at_once(
    source: JwksCache, server: KeyServer, pool: ThreadPoolExecutor, clock: TestClock
) -> None:
    server.is_answering.clear()
    calls = ask_in_threads(pool, source, 40)
    wait_until(lambda: sum(call.done() for call in calls) == 40 - MAX_KEY_SET_WAITERS, "most are refused")
    assert count_waiters(source) == MAX_KEY_SET_WAITERS
    assert JwksCache(clock, lambda: (NEW,)).find_keys(choose("new")) == [NEW], "another tenant's keys are found"
    server.is_answering.set()
    results = [call.exception() or call.result() for call in calls]
    assert results.count([OLD]) == MAX_KEY_SET_WAITERS
    assert sum(isinstance(result, ServiceUnavailable) for result in results) == 40 - MAX_KEY_SET_WAITERS
    assert (server.requests, count_waiters(source)) == (1, 0)


@pytest.mark.usefixtures("patient")
def test_while_the_set_is_fetched_again_others_use_the_one_they_have(
    source: JwksCache, server: KeyServer, pool: ThreadPoolExecutor, clock: TestClock
) -> None:
    source.find_keys(choose("old"))
    clock.advance(301)
    server.is_answering.clear()
    [first] = ask_in_threads(pool, source, 1)
    wait_until(lambda: count_waiters(source) == 1, "one thread waits for the new set")
    assert [source.find_keys(choose("old")) for _ in range(20)] == [[OLD]] * 20
    server.is_answering.set()
    assert first.result() == [OLD]
    assert server.requests == 2


@pytest.mark.usefixtures("impatient")
def test_a_server_that_never_answers_is_given_up_and_not_asked_twice_at_once(
    source: JwksCache, server: KeyServer, clock: TestClock
) -> None:
    server.is_answering.clear()
    for _ in range(10):
        with pytest.raises(ServiceUnavailable):
            source.find_keys(choose("old"))
    clock.advance(3600)
    with pytest.raises(ServiceUnavailable):
        source.find_keys(choose("old"))
    assert server.requests == 1, "its first thread has not ended"
    server.is_answering.set()
    wait_until(lambda: source._fetch is None, "the thread has ended")
    assert source.find_keys(choose("old")) == [OLD]


def test_a_failure_is_remembered_for_seconds(source: JwksCache, server: KeyServer, clock: TestClock) -> None:
    server.keys = None
    for _ in range(10):
        with pytest.raises(ServiceUnavailable):
            source.find_keys(choose("old"))
    assert server.requests == 1
    server.keys = (OLD,)
    clock.advance(11)
    assert source.find_keys(choose("old")) == [OLD]


def test_a_key_is_known_half_a_minute_after_it_was_published(
    source: JwksCache, server: KeyServer, clock: TestClock
) -> None:
    source.find_keys(choose("old"))
    server.keys = (OLD, NEW)
    for _ in range(10):
        assert source.find_keys(choose("new")) == []
    clock.advance(31)
    assert source.find_keys(choose("new")) == [NEW]
    assert server.requests == 2


def test_made_up_key_ids_cause_one_request_in_half_a_minute(
    source: JwksCache, server: KeyServer, clock: TestClock
) -> None:
    for second in range(300):
        assert source.find_keys(choose(f"made-up-{second}")) == []
        clock.advance(1)
    assert server.requests <= 10


def test_an_unknown_key_is_no_refusal_while_its_server_is_down(
    source: JwksCache, server: KeyServer, clock: TestClock
) -> None:
    source.find_keys(choose("old"))
    server.keys = None
    clock.advance(31)
    with pytest.raises(ServiceUnavailable):
        source.find_keys(choose("new"))
    assert source.find_keys(choose("old")) == [OLD]


def test_a_removed_key_is_not_accepted_after_five_minutes(
    source: JwksCache, server: KeyServer, clock: TestClock
) -> None:
    source.find_keys(choose("old"))
    server.keys = (NEW,)
    clock.advance(301)
    assert source.find_keys(choose("old")) == []


def test_a_process_that_has_no_thread_left_fetches_the_keys_with_the_next_request(
    source: JwksCache, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as exhausted:
        exhausted.setattr(clock, "start_thread", refuse)
        with pytest.raises(RuntimeError):
            source.find_keys(choose("old"))
    assert source.find_keys(choose("old")) == [OLD]


def test_a_bug_in_loading_refuses_and_is_not_the_end_of_loading(
    clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _arguments: None)
    results: list[Any] = [jwt.PyJWTError("a bug"), (OLD,)]

    def load() -> Sequence[PyJWK]:
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return (OLD,)

    source = JwksCache(clock, load)
    with pytest.raises(ServiceUnavailable):
        source.find_keys(choose("old"))
    clock.advance(11)
    assert source.find_keys(choose("old")) == [OLD]
