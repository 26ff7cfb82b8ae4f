"""Any interleaving of answers, alarms, retries, cancels, deaths and lost responses leaves one truth (tests/…/truth.py).

Hypothesis plays a turn with three kinds of calls (the browser's, ours that may act once, ours that may act again)
through the machine, and throws at every step whatever may happen on a bad day. At the end the days become good again:
then the turn must come to its end, with nothing lost and nothing twice, and the next prompt must work.

The same sixty days every time; `BAD_DAYS=2000 pytest …` looks for new ones.
"""

import os
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fermata.tools.tool import NoInput, ToolContext
from fermata.turns.recovering import sweep
from fermata.words.model import Stop, TextDelta
from tests.unit.turns import truth
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.machine import TROUBLE, Machine
from tests.unit.turns.scenes import patient_tool, server_tool
from tests.unit.turns.stage import OK, HandLine, Stage, call, calls, failure, says

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


class BadDay:
    """One turn, and whatever happens to it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.baked: Counter[str] = Counter()
        bake = replace(server_tool("bake", dict), run=self.bake)
        stage.learn(bake, server_tool("count", dict, idempotent=True), patient_tool())
        self.first = stage.start("Bake")
        self.machines = [Machine(stage)]
        self.answers: list[tuple[str, Any]] = []
        self.wakes = [self.machine.wake]

    def bake(self, _given: NoInput, context: ToolContext) -> object:
        self.baked[context.effect_key] += 1
        return {}

    @property
    def machine(self) -> Machine:
        return self.machines[-1]

    def script(self, kind: str, names: Any) -> None:
        match kind:
            case "calls":
                blocks = [call(name, **({"nodeId": "n"} if name == "deleteNode" else {})) for name in names]
                self.stage.says(calls(*blocks, text="I work."))
            case "overloaded":
                self.stage.says([failure()])
            case "breaks off":
                self.stage.says([TextDelta(text="I w"), failure()])
            case "pause":
                self.stage.says(says("Half.", stop=Stop.PAUSE))
            case _:
                self.stage.says(calls(call("bake"), stop=Stop.MAX_TOKENS))

    def do(self, deed: Any) -> None:
        if isinstance(deed, tuple):
            self.order(*deed)
            return
        while len(self.stage.driver.scripts) < 8:
            self.stage.says("Done.")
        with suppress(*TROUBLE):
            getattr(self, deed.replace(" ", "_"))()
        self.follow_executions()

    def order(self, what: str, point: tuple[str, str]) -> None:
        seam, call_name, where = self.stage.seam, f"dynamodb.{point[0]}", point[1]
        match what:
            case "die before" | "die after":
                seam.die(call_name, when=what.split()[1], contains=where)
            case "lose":
                seam.lose(call_name, contains=where)
            case "never arrives":
                seam.never_arrives(call_name, contains=where)
            case "conflict":
                seam.refuse(call_name, "TransactionConflictException", contains=where)
            case _:
                seam.meanwhile(call_name, lambda: self.do(what), contains=where)

    def step(self) -> None:
        if self.machine.wake not in self.wakes:
            self.wakes.append(self.machine.wake)
        self.machine.step()

    def step_and_answer(self) -> None:
        self.step()
        self.answer()

    def ring_and_go_on(self) -> None:
        """The alarm rings although the function works, and another one looks."""
        if self.machine.is_invoked and not self.machine.is_over:
            self.machine.ring()
            self.machine.step()

    def fail_and_go_on(self) -> None:
        """Step Functions lost sight of the function, which goes on all the same."""
        if self.machine.is_invoked and not self.machine.is_over:
            self.machine.fail()
            self.machine.step()

    def answer(self, result: Any = OK) -> None:
        requests = self.stage.requests()
        if requests:
            self.answers.append((requests[-1].request_id, result))
            self.stage.answer(result)

    def repeat(self) -> None:
        for request, result in self.answers:
            self.stage.answer(result, request)

    def other_answer(self) -> None:
        self.answer({"ok": True, "data": "other"})

    def ring(self) -> None:
        if self.machine.waits:
            self.machine.ring()

    def fail(self) -> None:
        if not self.machine.is_over:
            self.machine.fail()

    def cancel(self) -> None:
        self.stage.cancel()

    def sweep(self) -> None:
        self.stage.pass_time(60)
        sweep(self.stage.desk)

    def time(self) -> None:
        self.stage.pass_time(91)

    def long_time(self) -> None:
        self.stage.pass_time(90_000)

    def zombie(self) -> None:
        """An earlier function that was given up wakes up and goes on."""
        self.stage.advance(self.wakes[0], HandLine())

    def twice(self) -> None:
        """The same task is delivered once more."""
        self.stage.advance(self.machine.wake, HandLine())

    def old_token(self) -> None:
        self.stage.workflow.go_on(self.wakes[0].token, "round")

    def next_prompt(self) -> None:
        """Refused, or it takes over from a turn that is over or has been silent for too long."""
        try:
            self.stage.start("And now?")
        finally:
            if self.stage.turn.id != self.first.id:
                self.stage.cancel()
            self.stage._turn = self.first

    def follow_executions(self) -> None:
        """Executions that recovery has started run too."""
        known = {machine.n for machine in self.machines}
        for turn, n in self.stage.workflow.started:
            if turn == self.first.id and n not in known:
                self.machines.append(Machine(self.stage, n=n))
                known.add(n)

    def come_to_an_end(self) -> None:
        """Good days: everybody does what they should."""
        self.stage.seam.forget()
        for _ in range(60):
            if self.stage.terminals() and self.machine.is_over:
                return
            self.stage.driver.scripts.clear()
            self.stage.says("Done.", "Done.")
            self.go_on()
            self.follow_executions()
        raise AssertionError(f"The turn never ends: {self.stage.types()}, {[one.visited for one in self.machines]}")

    def go_on(self) -> None:
        for machine in self.machines:
            machine.run()
        if not self.stage.terminals() and self.stage.look()["pending"]:
            self.stage.answer(OK)
            return
        self.sweep()
        for machine in self.machines:
            if machine.waits:
                machine.ring()


@settings(
    max_examples=int(os.environ.get("BAD_DAYS", "60")),
    derandomize="BAD_DAYS" not in os.environ,
    deadline=None,
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
    stage = staged(unanswered=unanswered)
    try:
        day = BadDay(stage)
        for kind, names in script:
            day.script(kind, names)
        for deed in bad_day:
            day.do(deed)
        day.come_to_an_end()
        assert all(count == 1 for count in day.baked.values()), "a tool with side effects acted twice"
        assert not [bug for machine in day.machines for bug in machine.bugs]
        truth.check(stage)
    finally:
        stage.close()
