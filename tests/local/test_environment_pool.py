"""Check how invocations get processes, with real processes and without the emulator."""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from local.emulator.runtime.environment_pool import EnvironmentFleet, EnvironmentPool, ThrottledError
from local.emulator.runtime.execution_environments import FunctionTemplate, Preload, SharedProcesses
from local.emulator.runtime.process_limits import ProcessLimits
from local.processes import PROJECT_PYTHON
from tests.local.emulator_lab import zip_source
from tests.waiting import wait_until

GATED_SOURCE = """
import os, time
from pathlib import Path

def handler(event, context):
    Path(event["started"]).mkdir(exist_ok=True)
    (Path(event["started"]) / str(event["number"])).touch()
    while not Path(event["gate"]).exists():
        time.sleep(0.005)
    return os.getpid()
"""
CODE = zip_source(GATED_SOURCE)
VARIABLES = {
    "AWS_LAMBDA_FUNCTION_VERSION": "1",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "128",
    "AWS_LAMBDA_LOG_GROUP_NAME": "log",
    "AWS_LAMBDA_LOG_STREAM_NAME": "log",
}
A_LONG_TIME = 3600.0


class GatedFunction:
    """A function whose invocations last until its gate is opened."""

    def __init__(self, fleet: EnvironmentFleet, shared: SharedProcesses, directory: Path, name: str) -> None:
        self.fleet = fleet
        self.shared = shared
        self.directory = directory / name
        self.directory.mkdir()
        self.templates_started = 0
        self.pool: EnvironmentPool = fleet.add_pool(self._start_template)
        self._callers = ThreadPoolExecutor(256)
        self._name = name
        self._count = 0

    def _start_template(self) -> FunctionTemplate:
        self.templates_started += 1
        variables = VARIABLES | {"AWS_LAMBDA_FUNCTION_NAME": self._name}
        return FunctionTemplate(self.shared, "app.handler", CODE, variables)

    def invoke(self, queue_seconds: float = A_LONG_TIME) -> "Future[int]":
        """Invoke the function in a thread. The result is the process that ran it."""
        self._count += 1
        event = {
            "gate": str(self.directory / "gate"),
            "started": str(self.directory / "started"),
            "number": self._count,
        }
        return self._callers.submit(self._run, event, queue_seconds)

    def _run(self, event: dict[str, Any], queue_seconds: float) -> int:
        job = {"event": event, "requestId": str(event["number"]), "arn": "arn"}
        return int(self.fleet.run_invocation(self.pool, job, A_LONG_TIME, queue_seconds).result)

    def count_started(self) -> int:
        started = self.directory / "started"
        return len(list(started.iterdir())) if started.exists() else 0

    def wait_until_started(self, count: int) -> None:
        wait_until(lambda: self.count_started() >= count, f"{count} invocations of {self._name} have begun")

    def open_gate(self) -> None:
        (self.directory / "gate").touch()

    def count_processes(self, *, busy: bool) -> int:
        return sum(process["busy"] is busy for process in self.fleet.list_processes(self.pool))

    def close(self) -> None:
        self.open_gate()
        self._callers.shutdown()
        self.fleet.retire_pool(self.pool)


MakeFunction = Callable[[str], GatedFunction]


@pytest.fixture(scope="module")
def shared_processes() -> Iterator[SharedProcesses]:
    shared = SharedProcesses(str(PROJECT_PYTHON), Preload())
    yield shared
    shared.close()


@pytest.fixture
def open_fleet(shared_processes: SharedProcesses, tmp_path: Path) -> Iterator[Callable[..., MakeFunction]]:
    """Make a fleet with limits, and return what makes functions in it."""
    functions: list[GatedFunction] = []

    def open_one(measure_load: Callable[[], float] = lambda: 1.0, **limits: Any) -> MakeFunction:
        chosen_limits = ProcessLimits(**({"patience_seconds": 0.0, "interval_seconds": 0.0} | limits))
        fleet = EnvironmentFleet(chosen_limits, measure_load)

        def make_function(name: str) -> GatedFunction:
            functions.append(GatedFunction(fleet, shared_processes, tmp_path, name))
            return functions[-1]

        return make_function

    yield open_one
    for function in functions:
        function.close()


def test_a_function_has_no_more_processes_than_its_limit(open_fleet: Callable[..., MakeFunction]) -> None:
    function = open_fleet(per_function=3)("limited")
    invocations = [function.invoke() for _ in range(10)]
    wait_until(lambda: len(function.pool.queue) == 7, "seven invocations are queued")
    function.wait_until_started(3)
    assert function.count_started() == 3
    function.open_gate()
    assert len({invocation.result() for invocation in invocations}) == 3
    assert function.count_started() == 10


def test_all_functions_together_have_no_more_processes_than_the_limit(
    open_fleet: Callable[..., MakeFunction],
) -> None:
    make_function = open_fleet(total=4)
    first, second = make_function("first"), make_function("second")
    running = [first.invoke() for _ in range(2)] + [second.invoke() for _ in range(2)]
    first.wait_until_started(2)
    second.wait_until_started(2)
    queued = [first.invoke(), second.invoke()]
    wait_until(lambda: first.pool.queue and second.pool.queue, "both functions have a queue")
    assert first.pool.process_count + second.pool.process_count == 4
    first.open_gate()
    second.open_gate()
    assert all(invocation.result() for invocation in running + queued)
    assert first.pool.process_count + second.pool.process_count <= 4


def test_a_function_without_a_process_starts_one_beyond_the_limit_of_all(
    open_fleet: Callable[..., MakeFunction],
) -> None:
    make_function = open_fleet(total=3)
    streaming, short = make_function("streaming"), make_function("short")
    streams = [streaming.invoke() for _ in range(200)]
    streaming.wait_until_started(3)
    short.open_gate()
    assert len({short.invoke().result() for _ in range(5)}) == 1
    assert streaming.count_started() == 3
    streaming.open_gate()
    assert all(stream.result() for stream in streams)


def test_an_idle_process_makes_room_for_another_function(open_fleet: Callable[..., MakeFunction]) -> None:
    make_function = open_fleet(total=2)
    idle, wanted = make_function("idle"), make_function("wanted")
    running = [idle.invoke(), idle.invoke()]
    idle.wait_until_started(2)
    idle.open_gate()
    [invocation.result() for invocation in running]
    waiting = [wanted.invoke(), wanted.invoke()]
    wanted.wait_until_started(2)
    assert idle.count_processes(busy=False) == 0
    wanted.open_gate()
    assert len({invocation.result() for invocation in waiting}) == 2


def test_an_invocation_that_gets_no_process_in_time_is_throttled(open_fleet: Callable[..., MakeFunction]) -> None:
    function = open_fleet(per_function=1)("full")
    running = function.invoke()
    function.wait_until_started(1)
    with pytest.raises(ThrottledError):
        function.invoke(queue_seconds=0).result()
    waiting = function.invoke()
    function.open_gate()
    assert waiting.result() == running.result()
    assert function.count_started() == 2


def test_short_invocations_wait_for_few_processes(open_fleet: Callable[..., MakeFunction]) -> None:
    function = open_fleet(immediate=2, patience_seconds=A_LONG_TIME, max_patience_seconds=A_LONG_TIME)("short")
    function.open_gate()
    function.invoke().result()
    invocations = [function.invoke() for _ in range(100)]
    assert len({invocation.result() for invocation in invocations}) <= 2
    assert function.templates_started == 1


def test_long_invocations_get_more_processes_when_none_becomes_free(
    open_fleet: Callable[..., MakeFunction],
) -> None:
    function = open_fleet(immediate=2, patience_seconds=0.01)("long")
    invocations = [function.invoke() for _ in range(20)]
    function.wait_until_started(20)
    assert function.count_processes(busy=True) == 20
    function.open_gate()
    assert len({invocation.result() for invocation in invocations}) == 20


def test_invocations_that_come_after_a_rest_are_patient_from_then_on(
    open_fleet: Callable[..., MakeFunction],
) -> None:
    function = open_fleet(immediate=2, patience_seconds=A_LONG_TIME, max_patience_seconds=A_LONG_TIME)("rested")
    invocations = [function.invoke() for _ in range(10)]
    wait_until(lambda: len(function.pool.queue) == 8, "all but two invocations are queued")
    function.wait_until_started(2)
    assert function.pool.process_count == 2
    function.open_gate()
    assert len({invocation.result() for invocation in invocations}) == 2


def test_a_busy_machine_starts_further_processes_later(open_fleet: Callable[..., MakeFunction]) -> None:
    load = [A_LONG_TIME]
    function = open_fleet(lambda: load[0], immediate=2, patience_seconds=1.0, max_patience_seconds=math.inf)("long")
    invocations = [function.invoke() for _ in range(4)]
    wait_until(lambda: len(function.pool.queue) == 2, "two invocations are queued")
    function.wait_until_started(2)
    start_when_busy = function.fleet.next_start(function.pool)
    load[0] = 0.0
    assert start_when_busy - function.fleet.next_start(function.pool) == pytest.approx(2 * (A_LONG_TIME - 1))
    function.open_gate()
    assert len({invocation.result() for invocation in invocations}) == 2


def test_a_long_time_without_a_free_process_is_long_enough_on_a_busy_machine_too(
    open_fleet: Callable[..., MakeFunction],
) -> None:
    function = open_fleet(lambda: A_LONG_TIME, immediate=2, patience_seconds=1.0, max_patience_seconds=0.01)("long")
    invocations = [function.invoke() for _ in range(6)]
    function.wait_until_started(6)
    function.open_gate()
    assert len({invocation.result() for invocation in invocations}) == 6


def test_idle_processes_end(open_fleet: Callable[..., MakeFunction]) -> None:
    function = open_fleet(idle_seconds=0.1)("rested")
    function.open_gate()
    pids = {invocation.result() for invocation in [function.invoke() for _ in range(3)]}
    wait_until(lambda: function.pool.process_count == 0, "no process is left")
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "they have ended")
    wait_until(lambda: not function.pool.has_template, "the process that they were forked from has ended")
    started_count = function.templates_started
    assert function.invoke().result() not in pids
    assert function.templates_started == started_count + 1


def test_a_retired_pool_finishes_what_was_queued(open_fleet: Callable[..., MakeFunction]) -> None:
    function = open_fleet(per_function=1)("retired")
    invocations = [function.invoke() for _ in range(3)]
    function.wait_until_started(1)
    wait_until(lambda: len(function.pool.queue) == 2, "two invocations are queued")
    function.fleet.retire_pool(function.pool)
    function.open_gate()
    assert len({invocation.result() for invocation in invocations}) == 1
    wait_until(lambda: function.pool.process_count == 0, "its process has ended")


def test_many_threads_leave_nothing_behind(open_fleet: Callable[..., MakeFunction]) -> None:
    make_function = open_fleet(per_function=3, total=4)
    functions = [make_function(f"busy-{number}") for number in range(3)]
    for function in functions:
        function.open_gate()
    invocations = [function.invoke() for _ in range(60) for function in functions]
    assert all(invocation.result() for invocation in invocations)
    assert all(not function.pool.queue and not function.pool.busy for function in functions)
    assert sum(function.pool.process_count for function in functions) <= 4 + len(functions)
