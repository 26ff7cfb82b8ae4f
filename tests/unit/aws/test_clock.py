"""Format instants and ids as the API shows them."""

import re
import threading

import pytest

from fermata.aws.clock import Clock, is_valid_id, iso_from_epoch, new_id
from tests.resources import TestClock


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_800_000_000, "2027-01-15T08:00:00.000Z"),
        (1_800_000_000.0004, "2027-01-15T08:00:00.000Z"),
        (1_800_000_000.25, "2027-01-15T08:00:00.250Z"),
    ],
)
def test_an_instant_is_utc_with_milliseconds(seconds: float, text: str) -> None:
    assert iso_from_epoch(seconds) == text


def test_an_instant_may_have_an_offset() -> None:
    assert TestClock().now_iso(90) == "2027-01-15T08:01:30.000Z"


def test_ids_have_the_form_of_the_api_and_do_not_repeat() -> None:
    ids = {new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{21}", one) for one in ids)
    assert len(new_id(12)) == 12
    assert not any(one.startswith(("-", "_")) for one in ids), "a command line takes no id for an option"


def test_the_form_of_an_id_is_recognised() -> None:
    assert all(map(is_valid_id, (new_id(), "x", "_-", "a" * 64)))
    assert not any(map(is_valid_id, ("", "a" * 65, "a b", "a/b", "c#m", "é", "a\n", "\0")))


def test_a_clock_advances() -> None:
    clock = Clock()
    before = clock.monotonic()
    clock.sleep(0.001)
    assert clock.monotonic() > before
    assert clock.time() > 1_700_000_000


def test_timers_share_a_thread_which_ends_with_the_last_of_them() -> None:
    clock, fired, threads = Clock(), list[str](), set[threading.Thread]()
    all_fired = threading.Event()

    def note(name: str) -> None:
        threads.add(threading.current_thread())
        fired.append(name)

    all_started = threading.Event()
    clock.start_timer(-400, all_started.wait)
    clock.start_timer(-100, lambda: note("third"))
    clock.start_timer(-300, lambda: note("first"))
    clock.start_timer(-200, lambda: note("cancelled")).cancel()
    clock.start_timer(-200, lambda: note("second"))
    clock.start_timer(0, all_fired.set)
    all_started.set()
    assert all_fired.wait(20)
    assert fired == ["first", "second", "third"]
    (thread,) = threads
    thread.join(20)
    assert not thread.is_alive()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_timer_that_fails_takes_no_other_with_it() -> None:
    clock, fired = Clock(), threading.Event()
    clock.start_timer(0, lambda: 1 / 0)
    clock.start_timer(0.02, fired.set)
    assert fired.wait(20)
