"""Threads serve one target after the other, and leave nothing of one to the next."""

import gc
import os
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar

import pytest

from fermata.aws.reused_threads import MAX_IDLE_THREADS, ReusedThreads
from tests.waiting import BACKSTOP_SECONDS


@pytest.fixture(scope="module")
def threads() -> ReusedThreads:
    return ReusedThreads()


def run_in_thread(threads: ReusedThreads, target: Callable[[], object], name: str = "work") -> None:
    threads.start(target, name).join(BACKSTOP_SECONDS)


def test_a_thread_serves_the_next_target_under_its_name(threads: ReusedThreads) -> None:
    seen: list[tuple[int, str, bool]] = []

    def look() -> None:
        thread = threading.current_thread()
        seen.append((threading.get_ident(), thread.name, thread.daemon))

    run_in_thread(threads, look, "first")
    run_in_thread(threads, look, "second")
    (first, *_), (second, *_) = seen
    assert first == second != threading.get_ident()
    assert [entry[1:] for entry in seen] == [("first", True), ("second", True)]


def test_targets_run_side_by_side_and_few_threads_stay(threads: ReusedThreads) -> None:
    count = MAX_IDLE_THREADS + 3
    all_run = threading.Barrier(count)
    idents: set[int] = set()

    def meet() -> None:
        idents.add(threading.get_ident())
        all_run.wait(BACKSTOP_SECONDS)

    for task in [threads.start(meet, "side") for _ in range(count)]:
        task.join(BACKSTOP_SECONDS)
    assert len(idents) == count
    assert len(threads._idle) == MAX_IDLE_THREADS


def test_join_waits_no_longer_than_it_was_told(threads: ReusedThreads) -> None:
    release = threading.Event()
    task = threads.start(lambda: release.wait(BACKSTOP_SECONDS), "slow")
    for seconds in (0.001, 0, -0.5, -1):  # less than nothing is nothing, as of any thread
        task.join(seconds)
    assert not release.is_set(), "the target still runs"
    release.set()
    task.join()
    task.join()


def test_context_variables_of_one_target_are_unknown_to_the_next(threads: ReusedThreads) -> None:
    user: ContextVar[str] = ContextVar("user", default="nobody")
    seen: list[str] = []
    run_in_thread(threads, lambda: user.set("ada"))
    run_in_thread(threads, lambda: seen.append(user.get()))
    assert seen == ["nobody"]


def test_an_error_is_reported_and_the_thread_goes_on(threads: ReusedThreads, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda arguments: reported.append(str(arguments.exc_value)))

    def fail() -> None:
        raise ValueError("broken")

    run_in_thread(threads, fail)
    seen: list[str] = []
    run_in_thread(threads, lambda: seen.append("next"))
    assert (reported, seen) == (["broken"], ["next"])


def test_what_a_target_refers_to_is_not_kept(threads: ReusedThreads) -> None:
    class Snapshot:
        """Something large."""

    snapshot = Snapshot()
    is_gone = weakref.ref(snapshot)
    task = threads.start(lambda kept=snapshot: None, "store")
    task.join(BACKSTOP_SECONDS)
    del snapshot
    gc.collect()
    assert is_gone() is None


def test_a_forked_process_starts_threads_of_its_own(threads: ReusedThreads) -> None:
    run_in_thread(threads, lambda: None)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        threads.start(lambda: os.write(write_end, b"ran"), "in the child").join(BACKSTOP_SECONDS)
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        assert pipe.read() == b"ran"
    os.waitpid(child, 0)
