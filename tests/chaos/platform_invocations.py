"""Whoever invokes functions besides browsers: the workflow, EventBridge, the sweep, the ledger's stream, TTL."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fermata.aws.dynamodb_items_and_writes import deserialize_item
from fermata.aws.resources import Resources
from fermata.turns.recover.recover_open_turns import recover_open_turns
from fermata.turns.recover.recover_turn import recover_turn
from fermata.turns.round.invocation import invocation_from_event
from fermata.turns.round.run_turn_steps import run_turn_steps
from fermata.usage.rollups.stream_consumer import LedgerStreamRecord, count_stream_records
from tests.chaos.memory_aws.step_functions import Execution, MemoryStepFunctions, TaskError
from tests.chaos.memory_aws.tables import StreamRecord
from tests.chaos.scheduler import Process
from tests.chaos.simulated_cloud import FunctionDied, FunctionProcess, SimulatedCloud

FUNCTION_SECONDS = {"round": 900.0, "hold": 30.0, "recover": 120.0}
SWEEP_SECONDS = 60.0
STREAM_SHARDS = 3
MAX_BATCH_RECORDS = 10
HEARTBEAT_SECONDS = 90


@dataclass
class PlatformInvocations:
    cloud: SimulatedCloud
    dead_letters: list[float] = field(default_factory=list)
    """When an asynchronous invocation of the recover function had failed for the last time."""
    before_sweep: Callable[[Resources], object] | None = None
    """What the function of the sweep does first, where there are webhooks."""
    _positions: list[int] = field(default_factory=lambda: [0] * STREAM_SHARDS)

    def __post_init__(self) -> None:
        self._scheduler = self.cloud.scheduler
        machine = MemoryStepFunctions(self._scheduler, self._run_function, heartbeat_seconds=HEARTBEAT_SECONDS)
        machine.on_end = self._report_end
        self.cloud.step_functions = machine

    def start(self, process: Process) -> None:
        self._scheduler.start(process, self._sweep, name="sweep")
        for shard in range(STREAM_SHARDS):
            self._scheduler.start(process, lambda shard=shard: self._consume_ledger(shard), name="ledger-stream")  # type: ignore[misc]

    # the workflow

    def _run_function(self, function: str, payload: dict[str, Any]) -> Any:
        """Invoke a function of the workflow, which it may be asked to do late, twice, or not at all."""
        fault = self.cloud.faults.draw(f"invoke.{function}", function)
        if fault == "invocation throttled":
            raise TaskError("Lambda.TooManyRequestsException")
        if fault == "invocation late":
            self._scheduler.switch("invocation", 20.0)
        if fault == "invoked twice":
            copy = self._scheduler.random.uniform(0.0, 60.0)
            self._scheduler.start(
                self._scheduler.network, lambda: self._ignore(function, payload), name="copy", delay=copy
            )
        return self._invoke(function, payload)

    def _ignore(self, function: str, payload: dict[str, Any]) -> None:
        try:
            self._invoke(function, payload)
        except TaskError:
            return  # the execution waits for the other copy

    def _invoke(self, function: str, payload: dict[str, Any]) -> Any:
        act = self._recover if function == "recover" else self._advance
        try:
            return self.cloud.call(
                function, lambda process: act(process, function, payload), FUNCTION_SECONDS[function]
            )
        except FunctionDied as died:
            raise TaskError("Lambda.Unknown", str(died)) from died
        except Exception as error:
            raise TaskError(type(error).__name__, str(error)) from error

    def _recover(self, process: FunctionProcess, _function: str, payload: dict[str, Any]) -> None:
        assert process.resources is not None
        recover_turn(
            process.resources,
            payload["tenant"],
            payload["turn"],
            execution_number=payload["n"],
            has_execution_failed=True,
        )

    def _advance(self, process: FunctionProcess, function: str, payload: dict[str, Any]) -> None:
        assert process.resources is not None
        begun = self._scheduler.now
        context = _LambdaContext(process.request_id, lambda: FUNCTION_SECONDS[function] - (self._scheduler.now - begun))
        invocation = invocation_from_event(payload, context, is_hold=function == "hold")
        run_turn_steps(process.resources, invocation, None if function == "hold" else process.connection)

    def _report_end(self, execution: Execution) -> None:
        """EventBridge reports how an execution ended, unless the event gets lost."""
        if execution.status == "SUCCEEDED" or self.cloud.faults.draw("event", "recover") == "event lost":
            return
        given = execution.input

        def recover(process: FunctionProcess) -> None:
            assert process.resources is not None
            recover_turn(process.resources, given["tenant"], given["turn"], execution_number=given["n"])

        self._invoke_later("recover", lambda: self.cloud.call("recover", recover, 120))

    def _invoke_later(self, name: str, act: Callable[[], object]) -> None:
        """Start an asynchronous invocation, which the platform repeats when it fails."""

        def run() -> None:
            for _ in range(3):
                try:
                    act()
                except Exception:  # noqa: BLE001 (whatever a function raises is retried by the platform)
                    self._scheduler.switch("asynchronous retry", 60.0)
                else:
                    return
            self.dead_letters.append(self._scheduler.now)

        self._scheduler.start(Process(name), run, name=name)

    # schedules and streams

    def _sweep(self) -> None:
        def sweep(process: FunctionProcess) -> None:
            assert process.resources is not None
            if self.before_sweep:
                self.before_sweep(process.resources)
            recover_open_turns(process.resources)

        while True:
            self._scheduler.switch("sweep", SWEEP_SECONDS)
            try:
                self.cloud.call("sweep", sweep, 60.0)
            except Exception:  # noqa: BLE001 (the next sweep tries again)
                continue

    @property
    def is_ledger_counted(self) -> bool:
        return all(position == len(self._stream) for position in self._positions)

    @property
    def _stream(self) -> list[StreamRecord]:
        return self.cloud.dynamodb.tables["usage"].stream

    def _consume_ledger(self, shard: int) -> None:
        """Deliver a shard in order. A batch that failed comes again from the record on that failed."""
        stream, positions = self._stream, self._positions
        while True:
            self._scheduler.wait("ledger stream", lambda: len(stream) > positions[shard])
            self._scheduler.switch("ledger stream", self._scheduler.random.uniform(0.0, 0.1))
            end = len(stream)
            numbers = [
                number
                for number in range(positions[shard], end)
                if _is_ledger_row(stream[number]) and _shard_of(stream[number]) == shard
            ]
            batch = numbers[: self._scheduler.random.randint(1, MAX_BATCH_RECORDS)]
            reached = batch[-1] + 1 if len(batch) < len(numbers) else end
            positions[shard] = self._deliver(batch, positions[shard], reached) if batch else end

    def _deliver(self, batch: list[int], start: int, reached: int) -> int:
        """Deliver a batch and return where the shard goes on."""
        records = [self._stream[number] for number in batch]
        sent = [LedgerStreamRecord(str(record.sequence), deserialize_item(record.new or {})) for record in records]
        fault = self.cloud.faults.draw("stream", "rollup")
        seconds = 0.3 if fault == "batch interrupted" else 60.0
        try:
            failed = self.cloud.call("rollup", lambda process: count_stream_records(process.resources, sent), seconds)  # type: ignore[arg-type]
        except Exception:  # noqa: BLE001 (the batch comes again)
            return start
        if failed:
            return next(number for number in batch if str(self._stream[number].sequence) == failed)
        return start if fault == "batch twice" else reached


def _is_ledger_row(record: StreamRecord) -> bool:
    new = record.new
    return record.event == "INSERT" and new is not None and "turn" in new and new["sk"]["S"][:1] in "re"


def _shard_of(record: StreamRecord) -> int:
    return zlib.crc32(record.keys["pk"]["S"].encode()) % STREAM_SHARDS


@dataclass
class _LambdaContext:
    aws_request_id: str
    remaining: Callable[[], float]

    def get_remaining_time_in_millis(self) -> int:
        return int(self.remaining() * 1000)
