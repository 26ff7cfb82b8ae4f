"""Give execution environments to invocations: an idle one, a new one within the limits, or a place in the queue.

Lambda gives every invocation an environment at once, up to its account's limit. Here an environment is a process, so
that short invocations queue for few processes, and the number of processes grows for invocations that stay (decision
0165).
"""

import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from local.emulator.runtime.execution_environments import (
    EnvironmentFailedError,
    ExecutionEnvironment,
    FunctionTemplate,
    InvocationOutcome,
)
from local.emulator.runtime.process_limits import ProcessLimits

TemplateStarter = Callable[[], FunctionTemplate]


class ThrottledError(Exception):
    """No environment became free in time."""


@dataclass
class QueuedInvocation:
    """An invocation that waits for an environment. It is given one, or starts one when it is the first of its queue."""

    changed: threading.Condition
    environment: ExecutionEnvironment | None = None


@dataclass(eq=False)
class EnvironmentPool:
    """The environments of one revision of a function. Only its fleet changes them, under the fleet's lock."""

    start_template: TemplateStarter
    idle: deque[tuple[ExecutionEnvironment, float]] = field(default_factory=deque)
    """Idle environments and since when, the most recently used last."""
    busy: set[ExecutionEnvironment] = field(default_factory=set)
    queue: deque[QueuedInvocation] = field(default_factory=deque)
    starting: int = 0
    queued_since: float = -math.inf
    """Since when an invocation is queued; the last time, if none is."""
    last_release: float = -math.inf
    last_start: float = -math.inf
    retired: bool = False
    _template: FunctionTemplate | None = None
    _template_lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def process_count(self) -> int:
        return len(self.idle) + len(self.busy) + self.starting

    @property
    def has_template(self) -> bool:
        return self._template is not None

    @property
    def is_unused(self) -> bool:
        return not self.queue and self.process_count == 0

    def fork_environment(self) -> ExecutionEnvironment:
        """Fork an environment, from a new template if there is none. This takes its time and needs no other lock."""
        with self._template_lock:
            if self._template is None:
                self._template = self.start_template()
            try:
                return self._template.fork_environment()
            except EnvironmentFailedError:
                self._template = None
                raise

    def close_template(self) -> None:
        with self._template_lock:
            if self._template is not None:
                self._template.close()
                self._template = None

    def take_idle(self) -> ExecutionEnvironment | None:
        while self.idle:
            environment, _ = self.idle.pop()
            if environment.is_alive():
                return environment
            environment.close()
        return None

    def close_idle(self, idle_before: float = math.inf) -> None:
        """Close the environments that are idle since before this time."""
        while self.idle and self.idle[0][1] < idle_before:
            self.idle.popleft()[0].close()

    def notify_first(self) -> None:
        if self.queue:
            self.queue[0].changed.notify()

    def list_processes(self) -> list[dict[str, Any]]:
        states = [(environment, True) for environment in self.busy]
        states += [(environment, False) for environment, _ in self.idle]
        return [{"pid": environment.pid, "busy": busy} for environment, busy in states]


class EnvironmentFleet:
    """The pools of all functions, within common limits."""

    def __init__(self, limits: ProcessLimits, measure_load: Callable[[], float] | None = None) -> None:
        """
        Args:
            measure_load: Returns how many processes want each processor (decision 0181).
        """
        self.limits = limits
        self._measure_load = measure_load or measure_processor_load
        self._lock = threading.Lock()
        self._pools: set[EnvironmentPool] = set()
        threading.Thread(target=self._close_idle_environments, daemon=True, name="idle-environments").start()

    def add_pool(self, start_template: TemplateStarter) -> EnvironmentPool:
        pool = EnvironmentPool(start_template)
        with self._lock:
            self._pools.add(pool)
        return pool

    def run_invocation(
        self, pool: EnvironmentPool, job: dict[str, Any], timeout: float, queue_seconds: float
    ) -> InvocationOutcome:
        """Run an invocation in an environment of the pool.

        Args:
            timeout: Seconds that the function may take. `job` is told its deadline when it begins.
            queue_seconds: How long it waits for an environment.

        Raises:
            ThrottledError: It got none in time.
        """
        try:
            environment = self._lease(pool, queue_seconds)
        except EnvironmentFailedError as failure:
            return failure.outcome
        usable = False
        try:
            outcome = environment.invoke(job | {"deadline": time.time() + timeout}, timeout)
            usable = True
        except EnvironmentFailedError as failure:
            outcome = failure.outcome
        finally:
            self._release(pool, environment, usable=usable)
        return outcome

    def retire_pool(self, pool: EnvironmentPool) -> None:
        """Let the pool's invocations finish, and close its environments as they become free."""
        with self._lock:
            pool.retired = True
            pool.close_idle()
            is_over = self._settle(pool)
        if is_over:
            pool.close_template()

    def list_processes(self, pool: EnvironmentPool) -> list[dict[str, Any]]:
        with self._lock:
            return pool.list_processes()

    def _lease(self, pool: EnvironmentPool, queue_seconds: float) -> ExecutionEnvironment:
        with self._lock:
            environment = None if pool.queue else pool.take_idle()
            environment = environment or self._wait_in_queue(pool, time.monotonic() + queue_seconds)
            if environment is not None:
                pool.busy.add(environment)
                return environment
            pool.starting += 1
            pool.last_start = time.monotonic()
        return self._start(pool)

    def _start(self, pool: EnvironmentPool) -> ExecutionEnvironment:
        """Start an environment. The lock is not held meanwhile, so that other invocations go on."""
        environment = None
        try:
            environment = pool.fork_environment()
        finally:
            with self._lock:
                pool.starting -= 1
                if environment is not None:
                    pool.busy.add(environment)
                is_over = self._settle(pool)
            if is_over:
                pool.close_template()
        return environment

    def _wait_in_queue(self, pool: EnvironmentPool, deadline: float) -> ExecutionEnvironment | None:
        """Wait until an environment is handed over; None when a new one may be started."""
        entry = QueuedInvocation(threading.Condition(self._lock))
        if not pool.queue:
            pool.queued_since = time.monotonic()
        pool.queue.append(entry)
        while entry.environment is None:
            now = time.monotonic()
            start_at = self.next_start(pool) if pool.queue[0] is entry else math.inf
            if min(start_at, deadline) <= now:
                pool.queue.remove(entry)
                pool.notify_first()
                if start_at > now:
                    raise ThrottledError
                self._make_room()
                return None
            entry.changed.wait(min(start_at, deadline, now + threading.TIMEOUT_MAX) - now)
        return entry.environment

    def next_start(self, pool: EnvironmentPool) -> float:
        """Return when the pool may start an environment; infinity while the limits are reached."""
        limits = self.limits
        if pool.process_count == 0:
            return -math.inf
        if pool.process_count >= limits.per_function or not self._has_room():
            return math.inf
        if pool.process_count < limits.immediate:
            return -math.inf
        if pool.starting:
            return math.inf
        patience_seconds = limits.patience_seconds * pool.process_count * max(1.0, self._measure_load())
        patience_seconds = min(patience_seconds, limits.max_patience_seconds)
        waits_since = max(pool.last_release, pool.queued_since)
        return max(waits_since + patience_seconds, pool.last_start + limits.interval_seconds)

    def _has_room(self) -> bool:
        """Return whether another process may start once enough idle ones are closed."""
        busy_count = sum(len(pool.busy) + pool.starting for pool in self._pools)
        return busy_count < self.limits.total

    def _make_room(self) -> None:
        """Close the environments that are idle for the longest time until the limit of all allows one more."""
        while sum(pool.process_count for pool in self._pools) >= self.limits.total:
            pools = [pool for pool in self._pools if pool.idle]
            if not pools:
                return
            min(pools, key=lambda pool: pool.idle[0][1]).idle.popleft()[0].close()

    def _release(self, pool: EnvironmentPool, environment: ExecutionEnvironment, *, usable: bool) -> None:
        with self._lock:
            pool.busy.discard(environment)
            if usable:
                self._reuse(pool, environment)
            else:
                environment.close()
            is_over = self._settle(pool)
        if is_over:
            pool.close_template()

    def _reuse(self, pool: EnvironmentPool, environment: ExecutionEnvironment) -> None:
        pool.last_release = time.monotonic()
        if pool.queue:
            entry = pool.queue.popleft()
            entry.environment = environment
            pool.busy.add(environment)
            entry.changed.notify()
        elif pool.retired:
            environment.close()
        else:
            pool.idle.append((environment, pool.last_release))

    def _settle(self, pool: EnvironmentPool) -> bool:
        """Let the queues see that processes started or ended. True when nothing of a retired pool is left."""
        self._notify_queues()
        is_over = pool.retired and pool.is_unused
        if is_over:
            self._pools.discard(pool)
        return is_over

    def _notify_queues(self) -> None:
        for pool in self._pools:
            pool.notify_first()

    def _close_idle_environments(self) -> None:
        interval = self.limits.idle_seconds / 4
        while True:
            time.sleep(interval)
            with self._lock:
                for pool in self._pools:
                    pool.close_idle(time.monotonic() - self.limits.idle_seconds)
                self._notify_queues()
                unused = [pool for pool in self._pools if pool.is_unused]
            for pool in unused:
                pool.close_template()  # an invocation that comes meanwhile starts another one


def measure_processor_load() -> float:
    """Return how many processes wanted each processor, on average over the last minute."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)
