"""Any interleaving of answers, alarms, retries, cancels, deaths and lost responses leaves one truth (tests/…/truth.py).

Hypothesis plays a turn with three kinds of calls (the browser's, ours that may act once, ours that may act again)
through the machine, and throws at every step whatever may happen on a bad day. At the end the days become good again:
then the turn must come to its end, with nothing lost and nothing twice, and the next prompt must work.

The same thirty days every time; `BAD_DAYS=2000 pytest …` looks for new ones.
"""

import os
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.disturbed_turn import DisturbedTurn

TOOLS = ("deleteNode", "bake", "count", "ask_the_baker", "no_such_tool")
POINTS = [
    *(
        ("TransactWriteItems", event)
        for event in ("toolCall", "toolStarted", "toolResult", "done", "error", "cancelled")
    ),
    *(("PutItem", what) for what in ("roundStarted", "text", "p#")),
    *(("GetItem", what) for what in ("p#", "e#", "turn")),
    ("BatchGetItem", "e#"),
    ("Query", "e#"),
    ("UpdateItem", "turn"),
]
"""Calls, and what is looked for in them."""

replies = st.one_of(
    st.lists(st.sampled_from(TOOLS), min_size=1, max_size=4).map(lambda names: ("calls", names)),
    st.sampled_from([("overloaded", ""), ("breaks off", ""), ("pause", ""), ("too long", "")]),
)
outside = st.sampled_from(["answer", "repeat", "other answer", "cancel", "sweep", "zombie", "twice", "next prompt"])
"""What others do, at any time."""
faults = st.tuples(
    st.sampled_from(["die before", "die after", "lose", "never arrives", "conflict"]), st.sampled_from(POINTS)
)
meanwhiles = st.tuples(outside | st.sampled_from(["ring and go on", "fail and go on"]), st.sampled_from(POINTS))
deeds = st.one_of(
    st.sampled_from(["step", "step and answer", "step and answer", "ring", "fail", "time", "long time", "old token"]),
    st.just("step"),
    st.just("step"),
    outside,
    faults,
    meanwhiles,
)


@settings(
    max_examples=int(os.environ.get("BAD_DAYS", "30")),
    derandomize="BAD_DAYS" not in os.environ,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    script=st.lists(replies, min_size=1, max_size=4),
    bad_day=st.lists(deeds, min_size=1, max_size=25),
    unanswered=st.sampled_from(["fail", "tell_model"]),
)
def test_any_bad_day_ends_with_nothing_lost_and_nothing_twice(
    staged: MakeStage, script: Any, bad_day: Any, unanswered: str
) -> None:
    stage = staged(unanswered_calls=unanswered)
    try:
        day = DisturbedTurn(stage)
        for kind, names in script:
            day.script(kind, names)
        for deed in bad_day:
            day.do(deed)
        day.come_to_an_end()
        day.check()
    finally:
        stage.close()
