"""One turn, and whatever happens to it: what the workflow, browsers, other readers and bad days may do, by name.

day = Day(stage)
day.script("calls", ["bake", "deleteNode"])
day.do("step")                                       # the machine's next step
day.do(("lose", ("PutItem", "roundStarted")))        # the next such call's answer is lost
day.do(("cancel", ("TransactWriteItems", "done")))   # right before the next such call, the turn is cancelled
day.come_to_an_end()                                 # from now on everybody does what they should
day.check()
"""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Any

from fermata.tools.tool import NoInput, ToolContext
from fermata.turns.recovering import sweep
from fermata.turns.work import Wake
from fermata.words.model import Stop, TextDelta
from tests.unit.turns import truth
from tests.unit.turns.machine import TROUBLE, Machine
from tests.unit.turns.scenes import patient_tool, server_tool
from tests.unit.turns.stage import OK, HandLine, Stage, call, calls, failure, says


class Day:
    """Three kinds of calls: the browser's, ours that may act once (`bake`), and ours that may act again (`count`)."""

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
        """A task that was given up long ago is delivered late."""
        self.deliver_again(self.wakes[0])

    def twice(self) -> None:
        """The same task is delivered once more."""
        self.deliver_again(self.machine.wake)

    def deliver_again(self, wake: Wake) -> None:
        self.stage.advance(replace(wake, owner=f"another {wake.owner}"), HandLine())

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
        """Good days: everybody does what they should, and the model has no more to say than that it is done."""
        self.stage.seam.forget()
        self.stage.driver.scripts.clear()
        self.take_its_course()

    def take_its_course(self) -> None:
        for _ in range(60):
            if self.stage.terminals() and self.machine.is_over:
                return
            while len(self.stage.driver.scripts) < 4:
                self.stage.says("Done.")
            with suppress(*TROUBLE):
                self.go_on()
            self.follow_executions()
        raise AssertionError(f"The turn never ends: {self.stage.types()}, {[one.visited for one in self.machines]}")

    def check(self) -> None:
        assert all(count == 1 for count in self.baked.values()), "a tool with side effects acted twice"
        assert not [bug for machine in self.machines for bug in machine.bugs]
        truth.check(self.stage)

    def go_on(self) -> None:
        for machine in self.machines:
            machine.run()
        if not self.stage.terminals() and self.stage.look()["pending"]:
            self.answer()
            return
        self.sweep()
        for machine in self.machines:
            if machine.waits:
                machine.ring()
