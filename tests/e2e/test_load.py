"""Test that a short run of `make load` loses nothing. Its memory and rates need an idle machine, and are not tested."""

from pathlib import Path

import pytest

from bench.load import WORKER_COUNTS, LoadSize, MemorySample, measure_load, report_memory

pytestmark = pytest.mark.cloud


def test_turns_under_load_lose_nothing(tmp_path: Path) -> None:
    rows = {row.key: row for row in measure_load(tmp_path, LoadSize(seconds=6, paused_count=6, streaming_count=3))}
    counted = ["load.paused", "load.streams", *(key for key in rows if key.startswith("load.starts."))]
    assert [key for key in counted if not rows[key].is_met] == []
    assert rows["load.paused"].numbers["turns"] == 6
    assert rows["load.streams"].numbers["turns"] >= 3
    assert f"load.starts.{WORKER_COUNTS[0]}" in counted


@pytest.mark.parametrize(("last_mb", "is_met"), [(400, True), (439, True), (441, False)])
def test_memory_may_not_grow_while_the_load_stays(last_mb: float, is_met: bool) -> None:
    sizes = (100.0, 400.0, last_mb)
    samples = [MemorySample(emulator_mb=80, others_mb=size) for size in sizes for _ in range(5)]
    memory, _ = report_memory(samples, turn_count=9)
    assert memory.is_met is is_met
