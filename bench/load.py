"""Keep the local cloud under load, then start as many turns as it takes, and print what is lost: `make load`.

Turns that wait for their browser and turns that stream run side by side for some minutes. What each client saw is
compared with its turn's log, and the memory of all processes with what it was before.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.fault_and_load import ObservedTurn, find_faults, observe_turn
from bench.harness import BenchHarness, ScriptStep, instant_tool_output, open_harness
from bench.latency import BROWSER_TOOL_STEP, FINAL_STEP
from bench.process_usage import is_available, list_process_tree, read_memory_of
from bench.report import ResultRow, format_table
from fermata_client.service.errors import FermataClientError
from fermata_client.service.json_types import Event
from fermata_client.turns.editor_callbacks import ToolExecutor

LoadTurn = ObservedTurn | FermataClientError
"""A turn as its client saw it, or why the client gave up."""

STREAM_TEXT = "A round of streamed text, as a person would read it. " * 14
STREAM_STEP: ScriptStep = {"text": STREAM_TEXT, "chunks": 160, "chunkMs": 25.0}
"""Four seconds of text at the speed of a large model."""
SAMPLES = 150
"""Samples of memory during the load."""
MAX_GROWTH = 1.1
"""Memory in the last third of the load, to the second third. In the first, processes start."""
SPARE_SECONDS = 300
"""How much longer than the load a paused turn may take to start and to be answered."""
WORKER_COUNTS = (1, 2, 4, 8, 16, 32)
"""Clients that start one turn after the other."""
MIN_GAIN = 1.05
"""A doubling of the clients has helped if so many times as many turns a second were started."""
MAX_FAILED_DOUBLINGS = 2
"""In a row, after which no further one is tried."""


@dataclass(frozen=True)
class LoadSize:
    seconds: float = 300
    paused_count: int = 200
    streaming_count: int = 50

    @property
    def step_seconds(self) -> float:
        """How long turns are started with each number of clients."""
        return self.seconds / 30


@dataclass(frozen=True)
class MemorySample:
    """Proportional set sizes in MB."""

    emulator_mb: float
    """Of the process that holds all tables and logs in memory."""
    others_mb: float


def measure_load(directory: Path, size: LoadSize) -> Iterator[ResultRow]:
    waiting = size.seconds + SPARE_SECONDS
    clocks = {"BrowserWaitSeconds": waiting, "HeartbeatSeconds": waiting}
    with open_harness(directory, minute_seconds=60, parameters=clocks) as harness:
        yield from _hold_load(harness, size)
        yield from _measure_starts(harness, size)


def _hold_load(harness: BenchHarness, size: LoadSize) -> Iterator[ResultRow]:
    """Keep turns paused and others streaming for a time, then answer the paused ones."""
    paused_prompt = harness.script_model("load-paused", [BROWSER_TOOL_STEP, FINAL_STEP])
    stream_prompt = harness.script_model("load-streams", [STREAM_STEP], repeat_last=True)
    release = threading.Event()
    all_paused = threading.Semaphore(0)

    def answer_after_the_load(request: Event) -> dict[str, Any]:
        all_paused.release()
        release.wait()
        return instant_tool_output(request)

    def run_paused() -> LoadTurn:
        return _try_turn(harness, paused_prompt, answer_after_the_load)

    with ThreadPoolExecutor(size.paused_count) as pool:
        try:
            paused = [pool.submit(run_paused) for _ in range(size.paused_count)]
            if not all(all_paused.acquire(timeout=SPARE_SECONDS) for _ in paused):
                raise RuntimeError("A turn did not ask its browser before the load.")
            streamed, samples = _stream_for(harness, stream_prompt, size)
        finally:
            release.set()
        turns = [turn.result() for turn in paused]
    yield _report_loss(harness, "load.paused", f"{size.paused_count} turns paused for {size.seconds:g} s", turns)
    title = f"{size.streaming_count} streams at once for {size.seconds:g} s"
    yield _report_loss(harness, "load.streams", title, streamed)
    yield from report_memory(samples, len(streamed))


def _stream_for(harness: BenchHarness, prompt: str, size: LoadSize) -> tuple[list[LoadTurn], list[MemorySample]]:
    """Keep so many turns streaming, and sample the memory meanwhile."""
    deadline = time.monotonic() + size.seconds
    samples: list[MemorySample] = []
    with ThreadPoolExecutor(size.streaming_count) as pool:
        workers = [pool.submit(_repeat_turns, harness, prompt, deadline) for _ in range(size.streaming_count)]
        while wait(workers, size.seconds / SAMPLES).not_done:
            if is_available() and time.monotonic() < deadline:
                samples.append(_sample_memory(harness))
    return _join_turns(workers), samples


def _repeat_turns(harness: BenchHarness, prompt: str, deadline: float) -> list[LoadTurn]:
    """Run one turn after the other, each in a conversation of its own, and start none after the deadline."""
    turns: list[LoadTurn] = []
    while time.monotonic() < deadline:
        turns.append(_try_turn(harness, prompt))
    return turns


def _try_turn(harness: BenchHarness, prompt: str, executor: ToolExecutor = instant_tool_output) -> LoadTurn:
    """Run a turn in a new conversation."""
    try:
        return observe_turn(harness, prompt, harness.create_conversation(), executor)
    except FermataClientError as error:
        return error


def _join_turns(workers: list[Future[list[LoadTurn]]]) -> list[LoadTurn]:
    return [turn for worker in workers for turn in worker.result()]


def _sample_memory(harness: BenchHarness) -> MemorySample:
    emulator = harness.cloud.emulator_pid()
    others = [pid for pid in list_process_tree(harness.cloud.child_pids()) if pid != emulator]
    return MemorySample(read_memory_of([emulator]).pss_mb, read_memory_of(set(others)).pss_mb)


def _report_loss(harness: BenchHarness, key: str, title: str, turns: list[LoadTurn]) -> ResultRow:
    seen = [turn for turn in turns if isinstance(turn, ObservedTurn)]
    errors = [str(turn) for turn in turns if isinstance(turn, FermataClientError)]
    faults = [fault for turn in seen for fault in find_faults(harness, turn)]
    done_count = sum(turn.outcome.status == "done" for turn in seen)
    reconnects = sum(turn.outcome.reconnect_count for turn in seen)
    result = f"{done_count} of {len(turns)} done, {len(faults)} events lost or doubled"
    is_met = done_count == len(turns) > 0 and not faults
    numbers = {"turns": len(turns), "reconnects": reconnects, "faults": (errors + faults)[:10]}
    return ResultRow(key, title, "all done, none lost", result, is_met, numbers)


def report_memory(samples: list[MemorySample], turn_count: int) -> Iterator[ResultRow]:
    third = len(samples) // 3
    if not third:
        return
    middle, end = samples[third : 2 * third], samples[2 * third :]
    before, after = (median(sample.others_mb for sample in part) for part in (middle, end))
    title = "memory of all processes but the emulator, second to last third"
    is_met = after <= before * MAX_GROWTH
    yield ResultRow("load.memory", title, f"≤ {MAX_GROWTH:g} ×", f"{before:.0f} → {after:.0f} MB", is_met)
    before, after = (median(sample.emulator_mb for sample in part) for part in (middle, end))
    title = f"the emulator, which keeps the rows of {turn_count:,} turns in memory"
    yield ResultRow("load.emulator", title, "", f"{before:.0f} → {after:.0f} MB")


def _measure_starts(harness: BenchHarness, size: LoadSize) -> Iterator[ResultRow]:
    """Start turns one after the other with ever more clients, until more clients start no more turns."""
    prompt = harness.script_model("load-starts", [FINAL_STEP], repeat_last=True)
    best, failed_doublings = 0.0, 0
    for worker_count in WORKER_COUNTS:
        started = time.monotonic()
        deadline = started + size.step_seconds
        with ThreadPoolExecutor(worker_count) as pool:
            workers = [pool.submit(_repeat_turns, harness, prompt, deadline) for _ in range(worker_count)]
            turns = _join_turns(workers)
        rate = len(turns) / (time.monotonic() - started)
        title = f"short turns, {worker_count} clients at once: {rate:.1f} a second"
        yield _report_loss(harness, f"load.starts.{worker_count}", title, turns)
        failed_doublings = failed_doublings + 1 if rate < best * MIN_GAIN else 0
        if failed_doublings == MAX_FAILED_DOUBLINGS:
            break
        best = max(best, rate)


def main() -> int:
    options = _parse_options()
    size = LoadSize(options.seconds, options.paused, options.streams)
    rows: list[ResultRow] = []
    with tempfile.TemporaryDirectory(prefix="fermata-load-") as directory:
        for row in measure_load(Path(directory), size):
            print(f"{row.title}: {row.result}", *row.numbers.get("faults", []), sep="\n  ", file=sys.stderr, flush=True)
            rows.append(row)
    print(format_table(rows))
    return int(any(row.is_met is False for row in rows))


def _parse_options() -> argparse.Namespace:
    default = LoadSize()
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=default.seconds, help="how long the load is kept")
    parser.add_argument("--paused", type=int, default=default.paused_count, help="turns that wait for their browser")
    parser.add_argument("--streams", type=int, default=default.streaming_count, help="turns that stream at once")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
