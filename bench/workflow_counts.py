"""What is counted: exact, the same in every run, on any machine."""

from bench.aws_calls import record_aws_calls
from bench.execution_history import count_transitions, largest_state_bytes
from bench.harness import BenchHarness
from bench.latency import BROWSER_TOOL_STEP, FINAL_STEP, wait_until_settled
from bench.report import ResultRow

BROWSER_ROUNDS = 3


def measure_transitions(stage: BenchHarness) -> list[ResultRow]:
    """Transitions of a text-only turn and of one browser round."""
    text = stage.run_turn(stage.script_model("text-only", [FINAL_STEP]))
    browser = stage.run_turn(stage.script_model("three-asks", [BROWSER_TOOL_STEP] * BROWSER_ROUNDS + [FINAL_STEP]))
    wait_until_settled()
    plain, asking = count_transitions(stage.turn_history(text)), count_transitions(stage.turn_history(browser))
    each = (asking - plain) / BROWSER_ROUNDS
    return [
        ResultRow(
            "transitions.browser",
            "transitions per browser round",
            "≤ 2",
            f"{each:g}",
            each <= 2,
            {"turn": asking, "rounds": BROWSER_ROUNDS},
        ),
        ResultRow("transitions.text", "transitions per text-only turn", "≤ 4", f"{plain}", plain <= 4),
    ]


def measure_browser_round_requests(stage: BenchHarness) -> ResultRow:
    """DynamoDB requests of one browser round, from one answer of the browser to its next, streaming aside."""
    prompt = stage.script_model("one-more", [BROWSER_TOOL_STEP] * BROWSER_ROUNDS + [FINAL_STEP])
    stage.run_turn(prompt)
    with record_aws_calls(stage.cloud.endpoint) as requests:
        told = stage.run_turn(prompt)
        wait_until_settled()
    steps = requests.of_kind("step").between(*told.answered_ns[:2])
    count = steps.count_for_service("dynamodb")
    what = "DynamoDB requests per browser round"
    return ResultRow("requests.browser", what, "≤ 10", f"{count}", count <= 10, dict(steps.count_by_name()))


def measure_state_size(stage: BenchHarness) -> ResultRow:
    """The largest input or output of any state in any execution of this run."""
    executions = stage.list_executions()
    largest = max(largest_state_bytes(stage.execution_history(arn)) for arn in executions)
    numbers = {"executions": len(executions)}
    what = "largest workflow state of this run"
    return ResultRow("state", what, "< 2,048 B", f"{largest:,} B", largest < 2048, numbers)
