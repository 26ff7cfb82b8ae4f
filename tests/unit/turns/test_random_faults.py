"""Disturb a turn by random interleavings of answers, time-outs, retries, cancels, crashes and lost responses.

Hypothesis runs a turn with three kinds of calls (of the browser, of the service that may run once, and of the service
that may run again) through the state machine, and disturbs it at every step. At the end the disturbances stop: then
the turn must end, the invariants must hold (invariants.py), and the next prompt must work.

The examples are the same thirty every time; `RANDOM_FAULT_EXAMPLES=2000 pytest …` looks for new ones.
"""

import os
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fermata.domain.model_io import TextDelta
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.disturbed_turn import DisturbedTurn
from tests.unit.turns.stage import reply_with_text

pytestmark = pytest.mark.exhaustive

TOOLS = ("deleteNode", "bake", "count", "ask_the_baker", "no_such_tool")
POINTS = [
    *(
        ("TransactWriteItems", event)
        for event in ("requestFailed", "toolCall", "toolStarted", "toolResult", "done", "error", "cancelled")
    ),
    *(("PutItem", what) for what in ("roundStarted", "requestStarted", "text", "p#")),
    *(("GetItem", what) for what in ("p#", "e#", "turn")),
    ("BatchGetItem", "e#"),
    ("Query", "e#"),
    ("UpdateItem", "turn"),
]
"""AWS operations, and a text in the request."""

replies = st.one_of(
    st.lists(st.sampled_from(TOOLS), min_size=1, max_size=4).map(lambda names: ("calls", names)),
    st.sampled_from([("overloaded", ""), ("breaks off", ""), ("pause", ""), ("too long", "")]),
)
client_actions = st.sampled_from(
    [
        "answer",
        "repeat answers",
        "answer differently",
        "cancel",
        "recover silent turns",
        "deliver the first task again",
        "deliver the task again",
        "prompt again",
    ]
)
"""Actions of clients, at any time."""
faults = st.tuples(
    st.sampled_from(["die before", "die after", "lose response", "lose request", "conflict"]), st.sampled_from(POINTS)
)
interruptions = st.tuples(
    client_actions | st.sampled_from(["time out and continue", "fail and continue"]), st.sampled_from(POINTS)
)
actions = st.one_of(
    st.sampled_from(
        [
            "step",
            "step and answer",
            "step and answer",
            "time out",
            "fail",
            "pass the answer deadline",
            "pass a day",
            "resume with an old token",
        ]
    ),
    st.just("step"),
    st.just("step"),
    client_actions,
    faults,
    interruptions,
)


@settings(
    max_examples=int(os.environ.get("RANDOM_FAULT_EXAMPLES", "30")),
    derandomize="RANDOM_FAULT_EXAMPLES" not in os.environ,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    script=st.lists(replies, min_size=1, max_size=4),
    disturbances=st.lists(actions, min_size=1, max_size=25),
    unanswered=st.sampled_from(["fail", "tell_model"]),
)
def test_any_disturbed_turn_ends_with_nothing_lost_and_nothing_twice(
    staged: MakeStage, script: Any, disturbances: Any, unanswered: str
) -> None:
    stage = staged(unanswered_calls=unanswered)
    try:
        run = DisturbedTurn(stage)
        for kind, names in script:
            run.script(kind, names)
        for action in disturbances:
            run.do(action)
        run.finish_undisturbed()
        run.check()
    finally:
        stage.close()


def test_no_thread_runs_beside_a_disturbed_turn(staged: MakeStage) -> None:
    """A thread looks at the log in real time: on a busy machine it would meet the fault of another call."""
    stage = staged()
    run = DisturbedTurn(stage)
    names: list[str] = []
    list_threads = lambda: names.extend(thread.name for thread in threading.enumerate())  # noqa: E731
    stage.script_replies([TextDelta(text="Hel"), list_threads, *reply_with_text("lo", after="Hel")])
    run.do("step")
    assert names
    assert "stream-writer" not in names
