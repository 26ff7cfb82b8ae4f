"""What is counted: exact, the same in every run, on any machine."""

from bench.requests import recording
from bench.stage import Stage
from bench.table import Row
from bench.waits import ASK, AT_ONCE, settle
from bench.workflow import largest_state, transitions

ROUNDS = 3


def workflow(stage: Stage) -> list[Row]:
    """Transitions of a text-only turn and of one browser round."""
    text = stage.turn(stage.script("text-only", [AT_ONCE]))
    browser = stage.turn(stage.script("three-asks", [ASK] * ROUNDS + [AT_ONCE]))
    settle()
    plain, asking = transitions(stage.history(text)), transitions(stage.history(browser))
    each = (asking - plain) / ROUNDS
    return [
        Row(
            "transitions.browser",
            "transitions per browser round",
            "≤ 2",
            f"{each:g}",
            each <= 2,
            {"turn": asking, "rounds": ROUNDS},
        ),
        Row("transitions.text", "transitions per text-only turn", "≤ 4", f"{plain}", plain <= 4),
    ]


def browser_round(stage: Stage) -> Row:
    """DynamoDB requests of one browser round, from one answer of the browser to its next, streaming aside."""
    prompt = stage.script("one-more", [ASK] * ROUNDS + [AT_ONCE])
    stage.turn(prompt)
    with recording(stage.cloud.endpoint) as requests:
        told = stage.turn(prompt)
        settle()
    steps = requests.of("step").between(*told.answered_ns[:2])
    count = steps.count("dynamodb")
    what = "DynamoDB requests per browser round"
    return Row("requests.browser", what, "≤ 10", f"{count}", count <= 10, dict(steps.by_name()))


def state_size(stage: Stage) -> Row:
    """The largest input or output of any state in any execution of this run."""
    executions = stage.executions()
    largest = max(largest_state(stage.history_of(arn)) for arn in executions)
    numbers = {"executions": len(executions)}
    what = "largest workflow state of this run"
    return Row("state", what, "< 2,048 B", f"{largest:,} B", largest < 2048, numbers)
