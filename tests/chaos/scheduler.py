"""A seeded scheduler for simulated processes: one thread runs at a time, and every switch is drawn from the seed.

Simulated code runs in real threads that hand a baton to each other at *switch points*: AWS calls, provider chunks,
locks, events, sleeps. Between two switch points nothing else runs. Time is simulated: it advances when every task
waits. The same seed gives the same order of switches on every machine.

    scheduler = Scheduler(seed=7)
    process = scheduler.new_process("round-1")
    scheduler.start(process, lambda: …, name="round")
    scheduler.run(until=lambda: …, limit_seconds=3600)
"""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.chaos.fault_rules import FREEZES_SECONDS

MAX_SWITCHES = 2_000_000
_JOIN_SECONDS = 30.0


class ProcessDied(BaseException):
    """The process was killed at this switch point. Nobody catches it; nothing else of the process runs."""


class Stuck(AssertionError):
    """Every task waits, none of them for a moment in time: a deadlock of the simulated system."""


class Baton:
    """What a thread waits for until it may run. Cheaper than a semaphore, because nobody else ever waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def give(self) -> None:
        self._lock.release()

    def await_turn(self) -> None:
        self._lock.acquire()


@dataclass(eq=False)
class Process:
    """Tasks that live and die together, with a clock of their own."""

    name: str
    skew_seconds: float = 0.0
    is_dead: bool = False
    frozen_until: float = 0.0
    may_be_struck: bool = False
    """Whether faults may strike at any switch point of it: true for functions."""
    request_id: str = ""
    """Of the invocation that it works on."""

    def strike(self, scheduler: "Scheduler", fault: str) -> None:
        """Kill or freeze the process at the switch point at which it is. Raises ProcessDied when it is killed."""
        scheduler.struck_requests.add(self.request_id)
        if fault.startswith("kill"):
            scheduler.kill(self)
            raise ProcessDied
        scheduler.freeze(self, scheduler.random.uniform(*scheduler.random.choice(FREEZES_SECONDS)))


@dataclass(eq=False)
class Task:
    process: Process
    name: str
    target: Callable[[], object]
    wake_at: float = 0.0
    is_ready: Callable[[], bool] | None = None
    """What the task waits for besides its time; None when it only waits for time."""
    is_over: bool = False
    baton: "Baton" = field(default_factory=lambda: Baton())
    thread: threading.Thread | None = None


class Scheduler:
    def __init__(self, seed: int, start_time: float = 1_768_478_400.0) -> None:
        self.random = random.Random(seed)
        self.now = start_time
        self.switches = 0
        self.tasks: list[Task] = []
        self.on_switch: Callable[[Task, str], None] | None = None
        """Called with the running task and the label of each switch point, before it waits: where faults strike."""
        self.struck_requests: set[str] = set()
        self.freezes: list[tuple[str, float, float]] = []
        """The name of each frozen process, and from when until when it was frozen."""
        """Request ids of invocations whose process was killed or frozen."""
        self.last_landing = start_time
        """When a late request landed last: what it causes begins then."""
        self.network = Process("network")
        """Delivers what is under way, whatever becomes of its sender."""
        self._baton = Baton()
        self._current: Task | None = None
        self._until: Callable[[], bool] = lambda: True
        self._deadline = start_time
        self._failure: BaseException | None = None
        """What `run` raises."""
        self._is_closing = False

    # tasks

    def new_process(self, name: str, skew_seconds: float = 0.0) -> Process:
        return Process(name, skew_seconds)

    def start(self, process: Process, target: Callable[[], object], *, name: str, delay: float = 0.0) -> Task:
        task = Task(process, name, target, wake_at=self.now + delay)
        task.thread = threading.Thread(target=self._run_task, args=(task,), name=f"sim-{name}", daemon=True)
        self.tasks.append(task)
        task.thread.start()
        return task

    def _run_task(self, task: Task) -> None:
        task.baton.await_turn()
        try:
            if not task.process.is_dead:
                task.target()
        except ProcessDied:
            pass
        except BaseException as error:  # noqa: BLE001 (kept, and raised by `run`)
            self._failure = error
        finally:
            task.is_over = True
            self._pass_on(self._choose_next())

    @property
    def current(self) -> Task:
        assert self._current is not None, "no simulated task is running"
        return self._current

    @property
    def is_in_task(self) -> bool:
        return self._current is not None and threading.current_thread() is self._current.thread

    # what simulated code calls

    def switch(self, label: str, seconds: float = 0.0) -> None:
        """Let other tasks run; return after `seconds` of simulated time at the earliest."""
        self.wait(label, None, seconds)

    def wait(self, label: str, is_ready: Callable[[], bool] | None, seconds: float | None = None) -> bool:
        """Wait until `is_ready()` is true or `seconds` are over; return whether it is true."""
        task = self.current
        if task.process.is_dead:
            raise ProcessDied
        if self.on_switch is not None:
            self.on_switch(task, label)
        task.is_ready = is_ready
        task.wake_at = float("inf") if seconds is None else self.now + seconds
        chosen = self._choose_next()
        if chosen is not task:
            self._pass_on(chosen)
            task.baton.await_turn()
        if task.process.is_dead:
            raise ProcessDied
        return is_ready is None or is_ready()

    # what the simulation calls

    def kill(self, process: Process) -> None:
        """End a process: each of its tasks raises ProcessDied at its switch point and does nothing any more."""
        process.is_dead = True

    def freeze(self, process: Process, seconds: float) -> None:
        process.frozen_until = max(process.frozen_until, self.now + seconds)
        self.freezes.append((process.name, self.now, process.frozen_until))

    def run(self, until: Callable[[], bool], limit_seconds: float) -> None:
        """Run until a condition holds. Raises the error of a task, Stuck, or TimeoutError in simulated time."""
        self._until, self._deadline = until, self.now + limit_seconds
        first = self._choose_next()
        if first is not None:
            self._pass_on(first)
            self._baton.await_turn()
        if self._failure is not None:
            raise self._failure

    def _choose_next(self) -> Task | None:
        """Return the task to run now, or None when `run` is over; then `_failure` says why, if it failed."""
        try:
            if self._is_closing or self._failure is not None or self._until():
                return None
            return self._choose_task()
        except Exception as error:  # noqa: BLE001 (kept, and raised by `run`)
            self._failure = error
            return None

    def _choose_task(self) -> Task:
        task = self._choose()
        if task is None:
            waiting = [f"{task.process.name}/{task.name}" for task in self.tasks]
            raise Stuck(f"every task waits for ever: {waiting}")
        if self.now > self._deadline:
            raise TimeoutError("not reached in simulated time")
        self.switches += 1
        if self.switches > MAX_SWITCHES:
            raise TimeoutError(f"not over after {MAX_SWITCHES} switches: something spins")
        return task

    def _pass_on(self, task: Task | None) -> None:
        """Let a task run, or with None the thread that called `run`."""
        self._current = task
        (self._baton if task is None else task.baton).give()

    def _choose(self) -> Task | None:
        self.tasks = [task for task in self.tasks if not task.is_over]
        dead = next((task for task in self.tasks if task.process.is_dead), None)
        if dead is not None:
            return dead
        ready = [task for task in self.tasks if self._is_runnable(task)]
        if ready:
            return self.random.choice(ready)
        moments = [self._wakes_at(task) for task in self.tasks]
        moment = min(moments, default=float("inf"))
        if moment == float("inf"):
            return None
        self.now = max(self.now, moment)
        return self.random.choice([task for task in self.tasks if self._is_runnable(task)])

    def _is_runnable(self, task: Task) -> bool:
        if task.process.frozen_until > self.now:
            return False
        return task.wake_at <= self.now or (task.is_ready is not None and task.is_ready())

    def _wakes_at(self, task: Task) -> float:
        if task.is_ready is not None and task.is_ready():
            return task.process.frozen_until
        return max(task.wake_at, task.process.frozen_until)

    def close(self) -> None:
        """Kill whatever is left, so that no thread outlives the simulation."""
        self._is_closing = True
        for task in self.tasks:
            task.process.is_dead = True
        for task in list(self.tasks):
            while not task.is_over:
                self._pass_on(task)
                self._baton.await_turn()
        for task in self.tasks:
            if task.thread is not None:
                task.thread.join(_JOIN_SECONDS)
