"""Test the counts of `python -m bench`. Times are not tested."""

from pathlib import Path

import pytest

from bench.__main__ import QUICK, measure_all
from bench.aws_latencies import TYPICAL_LATENCY_MS
from local.emulator.runtime.process_limits import ProcessLimits

pytestmark = pytest.mark.cloud

SIMULATED_WORKFLOW_STEP_MS = sum(
    TYPICAL_LATENCY_MS[name] for name in ("dynamodb.TransactWriteItems", "states.Transition", "lambda.Invoke")
)
"""The least that passes between an answer of the browser and the model's next request."""


MAX_PROCESSES_AT_REST = 12
"""Emulator, front door, demo model, demo content system, the imported process, and templates of functions."""


def test_the_counts_of_a_quick_run_meet_their_targets(tmp_path: Path) -> None:
    rows = {row.key: row for row in measure_all(tmp_path, QUICK)}
    counted = ("transitions.browser", "transitions.text", "requests.browser", "killed", "crowd", "length", "state")
    counted += ("credential", "conversations", "audit.bytes", "memory")
    counted += ("content.list", "content.write", "project.files", "project.import", "transitions.sub_agent")
    missed = [
        f"{row.title}: {row.result}, target {row.target}" for row in map(rows.__getitem__, counted) if not row.is_met
    ]
    assert not missed
    assert rows["units"].numbers["transitions"] == 10
    assert {"audit", "folding", "prompt", "import", "stream.cpu", "streams", "cms_turn", "content.search"} <= set(rows)
    assert rows["crowd"].numbers["reconnects"] == 0
    assert rows["memory.idle"].numbers["processes"] <= MAX_PROCESSES_AT_REST
    assert rows["memory.answered"].numbers["processes"] <= MAX_PROCESSES_AT_REST + ProcessLimits().total
    assert rows["browser_round.aws.template"].numbers["answerToNext"]["p50"] >= SIMULATED_WORKFLOW_STEP_MS
