"""Measure memory, processes and processor time of the local cloud, at rest and under many turns at once."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from statistics import median
from typing import Any

from bench.harness import BenchHarness, ScriptStep, instant_tool_output
from bench.latency import BROWSER_TOOL_STEP, FINAL_STEP, wait_until_settled
from bench.process_usage import MemoryUsage, is_available, read_cpu_seconds, read_memory
from bench.reference_turn_cost import SAMPLE_SENTENCE
from bench.report import ResultRow
from fermata_client.service.json_types import Event
from fermata_client.turns.runner import run_turn

MAX_IDLE_MB = 300
MAX_ANSWERED_MB = 1024
MAX_STREAM_CPU_SECONDS = 0.6
MAX_STREAMS_SECONDS = 4.0
STREAM_CPU_TEXT_SECONDS = 3.0
STREAMS_TEXT_SECONDS = 3.2
CHUNK_MS = 25.0
IDLE_SECONDS = 2.0
"""How long the functions' processes stay in the cloud whose memory is measured."""
SAMPLE_SECONDS = 0.2
PAUSE_TIMEOUT_SECONDS = 240
WAITING_CLOCKS = {"BrowserWaitSeconds": PAUSE_TIMEOUT_SECONDS, "HeartbeatSeconds": PAUSE_TIMEOUT_SECONDS}


def measure_memory(harness: BenchHarness, turn_count: int) -> Iterator[ResultRow]:
    """Measure the memory of all local processes at rest, and while many paused turns are answered at once."""
    if not is_available():
        return
    prompt = harness.script_model("paused", [BROWSER_TOOL_STEP, FINAL_STEP], repeat_last=True)
    harness.run_turn(prompt)
    _wait_until_idle(harness)
    idle = read_memory(harness.cloud.child_pids())
    yield _memory_row("memory.idle", "all local processes at rest after a turn", MAX_IDLE_MB, idle)
    peak, seconds = _measure_answers(harness, prompt, turn_count)
    title = f"all local processes, {turn_count} paused turns answered at once"
    yield _memory_row("memory.answered", title, MAX_ANSWERED_MB, peak, {"seconds": round(seconds, 1)})


def measure_stream_cpu(harness: BenchHarness, repetitions: int) -> Iterator[ResultRow]:
    """Measure the processor time that a turn of three seconds of text takes in all local processes."""
    if not is_available():
        return
    prompt = harness.script_model("stream-cpu", [_text_step(STREAM_CPU_TEXT_SECONDS)], repeat_last=True)
    harness.run_turn(prompt)
    samples: list[float] = []
    for _ in range(repetitions):
        conversation_id = harness.create_conversation()
        wait_until_settled()
        before = read_cpu_seconds(harness.cloud.child_pids())
        harness.run_turn(prompt, conversation_id=conversation_id)
        wait_until_settled()
        samples.append(read_cpu_seconds(harness.cloud.child_pids()) - before)
    seconds = median(samples)
    title = f"CPU of a turn of {STREAM_CPU_TEXT_SECONDS:g} s of text, all local processes"
    target = f"≤ {MAX_STREAM_CPU_SECONDS:g} s"
    is_met = seconds <= MAX_STREAM_CPU_SECONDS
    yield ResultRow("stream.cpu", title, target, f"{seconds:.2f} s", is_met, {"seconds": samples})


def measure_streams(harness: BenchHarness, stream_count: int) -> ResultRow:
    """Time turns that stream at once, from the common start to the last end."""
    prompt = harness.script_model("streams", [_text_step(STREAMS_TEXT_SECONDS)], repeat_last=True)
    _run_streams(harness, prompt, stream_count)  # starts the functions
    seconds = _run_streams(harness, prompt, stream_count)
    title = f"{stream_count} turns of {STREAMS_TEXT_SECONDS:g} s of text at once, functions warm, the last one's end"
    numbers = {"first": round(seconds[0], 2), "median": round(median(seconds), 2), "last": round(seconds[-1], 2)}
    is_met = seconds[-1] <= MAX_STREAMS_SECONDS
    return ResultRow("streams", title, f"≤ {MAX_STREAMS_SECONDS:g} s", f"{seconds[-1]:.1f} s", is_met, numbers)


def _run_streams(harness: BenchHarness, prompt: str, stream_count: int) -> list[float]:
    """Run turns at once, and return how long each took, in order."""
    conversation_ids = [harness.create_conversation() for _ in range(stream_count)]
    barrier = threading.Barrier(stream_count)

    def run_one(conversation_id: str) -> float:
        barrier.wait()
        return harness.run_turn(prompt, conversation_id=conversation_id).seconds

    with ThreadPoolExecutor(stream_count) as pool:
        return sorted(pool.map(run_one, conversation_ids))


def _text_step(seconds: float) -> ScriptStep:
    chunk_count = int(seconds * 1000 / CHUNK_MS)
    return {"text": SAMPLE_SENTENCE * 14, "chunks": chunk_count, "chunkMs": CHUNK_MS}


def _wait_until_idle(harness: BenchHarness) -> None:
    """Wait until the processes of the functions have ended."""
    while harness.cloud.count_function_processes():
        time.sleep(SAMPLE_SECONDS)


def _measure_answers(harness: BenchHarness, prompt: str, turn_count: int) -> tuple[MemoryUsage, float]:
    """Answer turns at once that are paused for a while. Return the highest memory, and how long it took."""
    all_paused = threading.Barrier(turn_count + 1, timeout=PAUSE_TIMEOUT_SECONDS)

    def answer_together(request: Event) -> dict[str, Any]:
        all_paused.wait()
        return instant_tool_output(request)

    def run_one(conversation_id: str) -> str:
        executor = answer_together
        return run_turn(harness.client, "site", prompt, conversation_id=conversation_id, executor=executor).status

    conversation_ids = [harness.create_conversation() for _ in range(turn_count)]
    with ThreadPoolExecutor(turn_count) as pool:
        turns = [pool.submit(run_one, conversation_id) for conversation_id in conversation_ids]
        while all_paused.n_waiting < turn_count:
            time.sleep(SAMPLE_SECONDS)
        _wait_until_idle(harness)
        all_paused.wait()
        started = time.monotonic()
        samples = [read_memory(harness.cloud.child_pids())]
        while wait(turns, SAMPLE_SECONDS).not_done:
            samples.append(read_memory(harness.cloud.child_pids()))
        seconds = time.monotonic() - started
    if any(turn.result() != "done" for turn in turns):
        raise RuntimeError("A paused turn did not end with done.")
    return max(samples, key=lambda sample: sample.pss_mb), seconds


def _memory_row(
    key: str, title: str, max_mb: int, usage: MemoryUsage, further_numbers: dict[str, Any] | None = None
) -> ResultRow:
    result = f"{usage.pss_mb:.0f} MB in {usage.process_count} processes"
    numbers = {"mb": round(usage.pss_mb), "processes": usage.process_count} | (further_numbers or {})
    return ResultRow(key, title, f"≤ {max_mb} MB", result, usage.pss_mb <= max_mb, numbers)
