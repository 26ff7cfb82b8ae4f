"""A seeded scheduler for simulated processes: one task runs at a time, and every switch is drawn from the seed.

Simulated code runs in greenlets that leave each other at *switch points*: AWS calls, provider chunks, locks, events,
sleeps (decision 0291). Between two switch points nothing else runs. Time is simulated: it advances when every task
waits. The same seed gives the same order of switches on every machine.

    scheduler = Scheduler(seed=7)
    process = scheduler.new_process("round-1")
    scheduler.start(process, lambda: …, name="round")
    scheduler.run(until=lambda: …, limit_seconds=3600)
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from greenlet import getcurrent, greenlet

from tests.chaos.fault_rules import FREEZES_SECONDS

MAX_SWITCHES = 2_000_000
_NEVER = float("inf")


class ProcessDied(BaseException):
    """The process was killed at this switch point. Nobody catches it; nothing else of the process runs."""


class Stuck(AssertionError):
    """Every task waits, none of them for a moment in time: a deadlock of the simulated system."""


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
    thread: greenlet | None = None


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
        self._current: Task | None = None
        self._has_over_tasks = False
        """Whether some of `tasks` are over."""
        self._hub = getcurrent()
        """Of who runs the simulation: each task leaves for it, and it goes on with the next."""
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
        task.thread = greenlet(lambda: self._run_task(task), parent=self._hub)
        self.tasks.append(task)
        return task

    def _run_task(self, task: Task) -> None:
        try:
            if not task.process.is_dead:
                task.target()
        except ProcessDied:
            pass
        except BaseException as error:  # noqa: BLE001 (kept, and raised by `run`)
            self._failure = error
        finally:
            task.is_over = self._has_over_tasks = True
            self._current = self._choose_next()

    @property
    def current(self) -> Task:
        assert self._current is not None, "no simulated task is running"
        return self._current

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
        task.wake_at = _NEVER if seconds is None else self.now + seconds
        chosen = self._choose_next()
        if chosen is not task:
            self._current = chosen
            self._hub.switch()
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
        self._current = self._choose_next()
        self._run_chosen()
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

    def _run_chosen(self) -> None:
        """Run the chosen task until it leaves, then the one that was chosen by then, until none is."""
        while self._current is not None:
            assert self._current.thread is not None
            self._current.thread.switch()

    def _choose(self) -> Task | None:
        """Return a dead task, or one of those that can run now, or that can run next; None if none ever can."""
        if self._has_over_tasks:
            self.tasks = [task for task in self.tasks if not task.is_over]
            self._has_over_tasks = False
        now, moment, chosen = self.now, _NEVER, list[Task]()
        for task in self.tasks:  # the most frequent loop of a simulation: it calls little
            process, wake_at, is_ready = task.process, task.wake_at, task.is_ready
            if process.is_dead:
                return task
            runs_at = now if wake_at <= now or (is_ready is not None and is_ready()) else wake_at
            if process.frozen_until > runs_at:
                runs_at = process.frozen_until
            if runs_at < moment:
                moment, chosen = runs_at, [task]
            elif runs_at == moment:
                chosen.append(task)
        if moment == _NEVER:
            return None
        self.now = moment
        return self.random.choice(chosen)

    def close(self) -> None:
        """Kill whatever is left, so that nothing outlives the simulation."""
        self._is_closing = True
        for task in self.tasks:
            task.process.is_dead = True
        for task in list(self.tasks):
            while not task.is_over:
                self._current = task
                self._run_chosen()
