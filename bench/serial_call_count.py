"""Count the AWS calls that are made one after the other, exactly and independently of time.

Every thread knows how many calls lead to where it is. A call adds one. A thread begins with the number of the thread
that started it, and a thread that waits for others continues with the largest of their numbers. Calls made side by side
therefore count once.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fermata.aws.clock import Clock, JoinableThread, MapArgument, MapResult


def count_as_one(_call: str) -> float:
    return 1


class SeriesClock(Clock):
    """A clock whose threads count the AWS calls that precede them."""

    def __init__(self, weigh: Callable[[str], float] = count_as_one) -> None:
        """
        Args:
            weigh: returns what a call counts, by its boto3 service and operation: one, or its typical latency.
        """
        self._weigh = weigh
        self._thread_values = threading.local()

    @property
    def calls_in_series(self) -> float:
        """The number of calls, each made after the response of the one before, that lead to this thread's state."""
        return getattr(self._thread_values, "calls", 0)

    @calls_in_series.setter
    def calls_in_series(self, count: float) -> None:
        self._thread_values.calls = count

    def attach(self, client: Any) -> None:
        """Count every call of a boto3 client."""
        client.meta.events.register("before-call", self.count_call)

    def count_call(self, model: Any, **_: Any) -> None:
        self.add_call(f"{model.service_model.service_name}.{model.name}")

    def add_call(self, call: str) -> None:
        self.calls_in_series += self._weigh(call)

    def start_thread(self, target: Callable[[], object], name: str) -> JoinableThread:
        branch = _Branch(self, target)
        branch.thread = super().start_thread(branch.run, name)
        return branch

    def map_in_threads(
        self, function: Callable[[MapArgument], MapResult], arguments: Sequence[MapArgument], max_threads: int
    ) -> list[MapResult]:
        begun = self.calls_in_series
        counts: list[float] = []

        def run(argument: MapArgument) -> MapResult:
            self.calls_in_series = begun
            try:
                return function(argument)
            finally:
                counts.append(self.calls_in_series)

        try:
            return super().map_in_threads(run, arguments, max_threads)
        finally:
            self.calls_in_series = max(counts, default=begun)


class _Branch:
    """A thread that counts on from where it was started."""

    def __init__(self, clock: SeriesClock, target: Callable[[], object]) -> None:
        self._clock = clock
        self._target = target
        self._count = clock.calls_in_series
        self.thread: JoinableThread | None = None

    def run(self) -> None:
        self._clock.calls_in_series = self._count
        self._target()
        self._count = self._clock.calls_in_series

    def join(self, timeout: float | None = None) -> None:
        assert self.thread is not None
        self.thread.join(timeout)
        self._clock.calls_in_series = max(self._clock.calls_in_series, self._count)


@dataclass
class RecordingWorkflow:
    """In place of Step Functions: counts the calls, and keeps what the next invocation would be given."""

    clock: SeriesClock
    hint: dict[str, Any] | None = None
    calls_in_series: float = 0
    """When the workflow was asked to go on."""

    def start_execution(self, tenant: str, turn: str, n: int, *, hint: dict[str, Any] | None = None) -> None:
        self._count_call("stepfunctions.StartExecution", hint)

    def resume_execution(
        self, _token: str, _next_state: str, *, seconds: int = 0, hint: dict[str, Any] | None = None
    ) -> bool:
        self._count_call("stepfunctions.SendTaskSuccess", hint)
        return True

    def send_heartbeat(self, _token: str) -> bool:
        return True

    def _count_call(self, call: str, hint: dict[str, Any] | None) -> None:
        self.clock.add_call(call)
        self.calls_in_series = self.clock.calls_in_series
        self.hint = hint
