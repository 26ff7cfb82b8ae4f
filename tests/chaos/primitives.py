"""Locks, events, conditions, threads and the clock of a simulated process, by the interfaces of `fermata.aws.clock`."""

from collections.abc import Callable
from typing import Any, Self

from fermata.aws.clock import Clock
from tests.chaos.scheduler import Process, Scheduler, Task


class SimulatedLock:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._owner: Task | None = None

    def acquire(self) -> bool:
        self._scheduler.wait("lock", lambda: self._owner is None or self._owner.process.is_dead)
        self._owner = self._scheduler.current
        return True

    def release(self) -> None:
        self._owner = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class SimulatedEvent:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        return self._scheduler.wait("event", self.is_set, timeout)


class SimulatedCondition(SimulatedLock):
    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler)
        self._notifications = 0

    def wait(self, timeout: float | None = None) -> bool:
        seen = self._notifications
        self.release()
        notified = self._scheduler.wait("condition", lambda: self._notifications > seen, timeout)
        self.acquire()
        return notified

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        deadline = None if timeout is None else self._scheduler.now + timeout
        while not predicate():
            left = None if deadline is None else deadline - self._scheduler.now
            if left is not None and left <= 0:
                return predicate()
            self.wait(left)
        return True

    def notify(self, n: int = 1) -> None:
        self._notifications += 1

    def notify_all(self) -> None:
        self._notifications += 1


class SimulatedThread:
    def __init__(self, scheduler: Scheduler, process: Process, target: Callable[[], object], name: str) -> None:
        self._scheduler = scheduler
        self._task = scheduler.start(process, target, name=name)

    def join(self, timeout: float | None = None) -> None:
        self._scheduler.wait("join", lambda: self._task.is_over, timeout)

    def is_alive(self) -> bool:
        return not self._task.is_over


class SimulatedTimer:
    def __init__(self, scheduler: Scheduler, process: Process, seconds: float, act: Callable[[], object]) -> None:
        self._is_cancelled = False
        self._act = act
        scheduler.start(process, self._ring, name="timer", delay=seconds)

    def _ring(self) -> None:
        if not self._is_cancelled:
            self._act()

    def cancel(self) -> None:
        self._is_cancelled = True


class SimulatedClock(Clock):
    """One process's clock, which may be ahead of or behind the others."""

    def __init__(self, scheduler: Scheduler, process: Process) -> None:
        self._scheduler, self._process = scheduler, process

    def time(self) -> float:
        return self._scheduler.now + self._process.skew_seconds

    def monotonic(self) -> float:
        return self._scheduler.now

    def sleep(self, seconds: float) -> None:
        self._scheduler.switch("sleep", max(seconds, 0.0))

    def new_lock(self) -> Any:
        return SimulatedLock(self._scheduler)

    def new_event(self) -> Any:
        return SimulatedEvent(self._scheduler)

    def new_condition(self) -> Any:
        return SimulatedCondition(self._scheduler)

    def start_thread(self, target: Callable[[], object], name: str) -> Any:
        return SimulatedThread(self._scheduler, self._process, target, name)

    def start_timer(self, seconds: float, act: Callable[[], object]) -> Any:
        return SimulatedTimer(self._scheduler, self._process, seconds, act)

    def map_in_threads(self, function: Any, arguments: Any, max_threads: int) -> Any:
        results: dict[int, Any] = {}
        errors: list[Exception] = []

        def work(number: int) -> None:
            try:
                results[number] = function(arguments[number])
            except Exception as error:  # noqa: BLE001 (raised again where the results are awaited)
                errors.append(error)

        tasks = [
            self._scheduler.start(self._process, lambda number=number: work(number), name="map")  # type: ignore[misc]
            for number in range(len(arguments))
        ]
        self._scheduler.wait("join", lambda: all(task.is_over for task in tasks))
        if errors:
            raise errors[0]
        return [results[number] for number in range(len(arguments))]
