"""Count workflow transitions and the size of the workflow's state. The counts are the same on every machine."""

from bench.harness import BenchHarness
from bench.latency import BROWSER_TOOL_STEP, FINAL_STEP, wait_until_settled
from bench.report import ResultRow
from bench.transitions_and_state_size import count_transitions, largest_state_bytes

_BROWSER_ROUNDS = 3
MAX_BROWSER_ROUND_TRANSITIONS = 2
MAX_TEXT_TURN_TRANSITIONS = 4
MAX_STATE_BYTES = 2_048


def measure_transitions(harness: BenchHarness) -> list[ResultRow]:
    """Count the transitions of a text-only turn and of one browser round."""
    text_turn = harness.run_turn(harness.script_model("text-only", [FINAL_STEP]))
    steps = [BROWSER_TOOL_STEP] * _BROWSER_ROUNDS + [FINAL_STEP]
    browser_turn = harness.run_turn(harness.script_model("three-asks", steps))
    wait_until_settled()
    text_count = count_transitions(harness.turn_history(text_turn))
    browser_count = count_transitions(harness.turn_history(browser_turn))
    per_round = (browser_count - text_count) / _BROWSER_ROUNDS
    return [
        ResultRow(
            "transitions.browser",
            "transitions per browser round",
            f"≤ {MAX_BROWSER_ROUND_TRANSITIONS}",
            f"{per_round:g}",
            per_round <= MAX_BROWSER_ROUND_TRANSITIONS,
            {"turn": browser_count, "rounds": _BROWSER_ROUNDS},
        ),
        ResultRow(
            "transitions.text",
            "transitions per text-only turn",
            f"≤ {MAX_TEXT_TURN_TRANSITIONS}",
            f"{text_count}",
            text_count <= MAX_TEXT_TURN_TRANSITIONS,
        ),
    ]


def measure_state_size(harness: BenchHarness) -> ResultRow:
    """Measure the largest input or output of any state in any execution of this run."""
    executions = harness.list_executions()
    largest = max(largest_state_bytes(harness.execution_history(arn)) for arn in executions)
    return ResultRow(
        "state",
        "largest workflow state of this run",
        f"< {MAX_STATE_BYTES:,} B",
        f"{largest:,} B",
        largest < MAX_STATE_BYTES,
        {"executions": len(executions)},
    )
