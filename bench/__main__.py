"""Run the benchmark: count and time the service on its local cloud, and compare with the targets."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from bench import (
    audit_queries,
    aws_call_counts,
    calls_before_model_request,
    fault_and_load,
    large_project,
    large_site,
    large_space,
    latency,
    local_cloud_load,
    reference_turn_cost,
    workflow_counts,
)
from bench.agent_compilation import measure_agent_compilation
from bench.aws_latencies import write_latencies
from bench.cms_turn import measure_cms_turn
from bench.console_page import measure_first_paint
from bench.driver_decoding import STREAM_LENGTHS, measure_stream_decoding
from bench.editor_tools import measure_editor_tools
from bench.harness import BenchHarness, open_harness
from bench.import_time import measure_import_ratio
from bench.package_sizes import measure_package_sizes
from bench.panel_page import measure_panel
from bench.report import DEFAULT_OUTPUT, ResultRow, format_table, usable_cpu_count, write_results
from bench.resumed_stream import EVENT_COUNT, measure_resumed_stream
from bench.sub_agents import measure_sub_agent
from bench.synthetic_ledger import ROW_COUNT
from bench.tool_pipeline import measure_tool_pipeline
from bench.turn_cost import TurnShape
from local import template
from local.cloud import LOCAL_TIMINGS

DESCRIPTION = "count and time the service on its local cloud, and compare with the targets."
LATE_ROUND = 200
SIMULATIONS = {
    "template": (latency.TEMPLATE_CONDITIONS, True, False),
    "aws": (latency.AWS_CONDITIONS, False, True),
    "aws-template": (latency.AWS_TEMPLATE_CONDITIONS, True, True),
}
"""Conditions, whether the clocks are those of template.yaml, and whether latencies of AWS are simulated."""
SCHEDULE_MINUTE_SECONDS = 3600.0
"""Length of a schedule's minute in the local cloud, so that no sweep is counted with a turn."""


@dataclass(frozen=True)
class BenchmarkSize:
    """Repetitions of the measurements, and sizes of their data."""

    repetitions: int = 40
    late_round: int = LATE_ROUND
    """The first late round to measure; 0 for none."""
    concurrent_turns: int = 50
    answered_turns: int = 200
    message_count: int = 2000
    ledger_rows: int = ROW_COUNT
    conversation_count: int = 250
    simulations: tuple[str, ...] = tuple(SIMULATIONS)
    stream_lengths: tuple[int, ...] = STREAM_LENGTHS
    turn_shape: TurnShape = field(default_factory=TurnShape)
    resumed_events: int = EVENT_COUNT
    document_count: int = large_space.DOCUMENT_COUNT
    entry_count: int = large_project.ENTRY_COUNT
    are_pages_measured: bool = True
    """Whether pages are timed in a browser."""
    has_local_latencies: bool = True
    """Whether turns are timed without simulated latencies of AWS, too."""


SHORT_TURN = TurnShape(text_seconds=1, first_byte_seconds=0.1, phase_seconds=0.2)
QUICK = BenchmarkSize(
    repetitions=2,
    late_round=0,
    concurrent_turns=5,
    answered_turns=10,
    message_count=100,
    ledger_rows=1000,
    conversation_count=10,
    simulations=("aws-template",),
    stream_lengths=(100, 1000),
    turn_shape=SHORT_TURN,
    resumed_events=50,
    document_count=200,
    entry_count=50,
    are_pages_measured=False,
    has_local_latencies=False,
)


def main() -> int:
    options = _parse_options()
    started = time.monotonic()
    load_before = os.getloadavg()[0]
    rows: list[ResultRow] = []
    if load_before > usable_cpu_count() / 2:
        print(f"This machine is busy (load {load_before:.1f}): the times will be too long.", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="fermata-bench-") as directory:
        for row in measure_all(Path(directory), QUICK if options.quick else BenchmarkSize()):
            rows.append(row)
            print(f"  {row.title}: {row.result}", file=sys.stderr, flush=True)
    print(format_table(rows))
    seconds = round(time.monotonic() - started)
    run = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": options.quick,
        "seconds": seconds,
        "load": {"before": round(load_before, 2), "after": round(os.getloadavg()[0], 2)},
    }
    write_results(rows, run, options.out)
    print(f"\n{seconds} s; written to {options.out}")
    return 0


def measure_all(directory: Path, size: BenchmarkSize) -> Iterator[ResultRow]:
    """Yield all rows: processor times first, while nothing else runs, then counts, then times.

    Counts use the settings of template.yaml. Times use those of the local cloud, and a new one: an emulator becomes
    slower with what it stores.
    """
    yield from measure_processor_times(size)
    turn_limits = {
        "MaxRounds": str(size.late_round + size.repetitions + 10),
        "MaxRepeatedCalls": "0",
        "MaxFailedRounds": "0",
    }
    yield from measure_counts(directory, size, turn_limits)
    with open_harness(directory / "times", minute_seconds=SCHEDULE_MINUTE_SECONDS, parameters=turn_limits) as harness:
        if size.are_pages_measured:
            yield from measure_first_paint(harness, max(2, size.repetitions // 8))
        yield from measure_times(harness, size)
        workspace = audit_queries.AuditedWorkspace(harness, size.ledger_rows)
        yield audit_queries.measure_audit_bytes(workspace)
        yield audit_queries.measure_audit_time(workspace, max(3, size.repetitions // 2))
        yield large_site.measure_prompt_time(harness, size.repetitions)
        yield large_site.measure_function_memory(harness)
        yield workflow_counts.measure_state_size(harness)
        yield measure_cms_turn(harness, size.repetitions // 2 + 1)
        yield from large_space.measure_large_space(harness, size.document_count, size.repetitions)
        yield from large_project.measure_large_project(harness, size.entry_count, size.repetitions)
    yield from measure_simulated_aws(directory, size)
    yield from measure_waiting_turns(directory, size)


def measure_processor_times(size: BenchmarkSize) -> Iterator[ResultRow]:
    """Time what needs no local cloud."""
    yield measure_stream_decoding(size.stream_lengths)
    yield measure_import_ratio(max(1, size.repetitions // 2))
    yield measure_tool_pipeline(10 * size.repetitions)
    yield measure_agent_compilation(size.repetitions // 4)
    yield from large_project.measure_project_files(size.entry_count)
    yield from measure_package_sizes()
    if size.are_pages_measured:
        yield measure_editor_tools(max(2, size.repetitions // 4))
        yield from measure_panel()


def measure_counts(directory: Path, size: BenchmarkSize, turn_limits: dict[str, str]) -> Iterator[ResultRow]:
    """Count what turns ask of AWS, with the settings of template.yaml.

    Args:
        directory: Where the local cloud keeps its state.
        size: How often to measure.
        turn_limits: The parameters that let a turn have as many rounds as are measured.
    """
    with open_harness(
        directory / "counts",
        minute_seconds=SCHEDULE_MINUTE_SECONDS,
        parameters=template_timings() | turn_limits,
    ) as harness:
        yield from calls_before_model_request.measure_calls_in_series(harness)
        yield from workflow_counts.measure_transitions(harness)
        yield aws_call_counts.measure_browser_round_requests(harness)
        yield aws_call_counts.measure_kms_calls(harness)
        yield aws_call_counts.measure_conversation_list_calls(harness, size.conversation_count)
        yield from reference_turn_cost.measure_reference_turn(harness, size.turn_shape)


def measure_waiting_turns(directory: Path, size: BenchmarkSize) -> Iterator[ResultRow]:
    """Measure the memory of many turns that wait, and of their answers at once."""
    limits = {"idle_seconds": local_cloud_load.IDLE_SECONDS}
    clocks = local_cloud_load.WAITING_CLOCKS
    with open_harness(
        directory / "memory", minute_seconds=SCHEDULE_MINUTE_SECONDS, function_limits=limits, parameters=clocks
    ) as harness:
        yield from local_cloud_load.measure_memory(harness, size.answered_turns)


def measure_simulated_aws(directory: Path, size: BenchmarkSize) -> Iterator[ResultRow]:
    """Time turns with the clocks of template.yaml, with simulated latencies of AWS, and with both."""
    latencies = write_latencies(directory)
    for name in size.simulations:
        conditions, has_template_clocks, is_aws = SIMULATIONS[name]
        timings = template_timings() if has_template_clocks else {}
        with open_harness(
            directory / name,
            minute_seconds=SCHEDULE_MINUTE_SECONDS,
            latencies=latencies if is_aws else None,
            parameters=timings,
        ) as harness:
            yield from latency.measure_latencies(harness, conditions, max(1, size.repetitions // 2))


def measure_times(harness: BenchHarness, size: BenchmarkSize) -> Iterator[ResultRow]:
    yield latency.measure_single_write(harness, 5 * size.repetitions)
    if size.has_local_latencies:
        yield from latency.measure_latencies(harness, latency.LOCAL_CONDITIONS, size.repetitions)
    yield from latency.measure_server_round(harness, size.repetitions, size.late_round)
    yield from measure_sub_agent(harness, size.repetitions)
    yield measure_resumed_stream(harness, size.repetitions // 2 + 1, size.resumed_events)
    yield fault_and_load.measure_killed_function(harness, max(1, size.repetitions // 10))
    yield fault_and_load.measure_long_conversation(harness, size.message_count)
    yield fault_and_load.measure_concurrent_turns(harness, size.concurrent_turns)
    yield from local_cloud_load.measure_stream_cpu(harness, max(1, size.repetitions // 10))
    yield local_cloud_load.measure_streams(harness, size.concurrent_turns)


def template_timings() -> dict[str, str]:
    """Return the template's values of the timings that the local cloud shortens."""
    parameters = template.load_template()["Parameters"]
    return {name: str(parameters[name]["Default"]) for name in LOCAL_TIMINGS}


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=DESCRIPTION)
    parser.add_argument("--quick", action="store_true", help="a smoke test of a minute; its times are not meaningful")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUTPUT, help="the file to write the numbers to, as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
