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

from fermata.domain.model_io import FinishReason, TextDelta
from fermata.tools.tool import NoInput, ToolContext
from fermata.turns.recover.recover_open_turns import recover_open_turns
from fermata.turns.round.invocation import Invocation
from tests.unit.turns import invariants
from tests.unit.turns.scenarios import make_patient_tool, make_server_tool
from tests.unit.turns.stage import (
    OK,
    RecordingConnection,
    Stage,
    make_provider_error,
    reply_with_calls,
    reply_with_text,
    tool_call_block,
)
from tests.unit.turns.state_machine import EXPECTED_ERRORS, StateMachine


class DisturbedTurn:
    """Three kinds of calls: the browser's, ours that may act once (`bake`), and ours that may act again (`count`)."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.baked: Counter[str] = Counter()
        bake = replace(make_server_tool("bake", dict), handler=self.bake)
        stage.add_tools(bake, make_server_tool("count", dict, idempotent=True), make_patient_tool())
        self.first = stage.start_turn("Bake")
        self.machines = [StateMachine(stage)]
        self.answers: list[tuple[str, Any]] = []
        self.wakes = [self.machine.wake]

    def bake(self, _given: NoInput, context: ToolContext) -> object:
        self.baked[context.effect_key] += 1
        return {}

    @property
    def machine(self) -> StateMachine:
        return self.machines[-1]

    def script(self, kind: str, names: Any) -> None:
        match kind:
            case "calls":
                blocks = [tool_call_block(name, **({"nodeId": "n"} if name == "deleteNode" else {})) for name in names]
                self.stage.script_replies(reply_with_calls(*blocks, text="I work."))
            case "overloaded":
                self.stage.script_replies([make_provider_error()])
            case "breaks off":
                self.stage.script_replies([TextDelta(text="I w"), make_provider_error()])
            case "pause":
                self.stage.script_replies(reply_with_text("Half.", stop=FinishReason.PAUSE))
            case _:
                self.stage.script_replies(reply_with_calls(tool_call_block("bake"), stop=FinishReason.MAX_TOKENS))

    def do(self, deed: Any) -> None:
        if isinstance(deed, tuple):
            self.order(*deed)
            return
        while len(self.stage.driver.scripts) < 8:
            self.stage.script_replies("Done.")
        with suppress(*EXPECTED_ERRORS):
            getattr(self, deed.replace(" ", "_"))()
        self.follow_executions()

    def order(self, what: str, point: tuple[str, str]) -> None:
        faults, call_name, where = self.stage.faults, f"dynamodb.{point[0]}", point[1]
        match what:
            case "die before" | "die after":
                faults.kill_process(call_name, when=what.split()[1], contains=where)
            case "lose":
                faults.lose_response(call_name, contains=where)
            case "never arrives":
                faults.lose_request(call_name, contains=where)
            case "conflict":
                faults.fail_call(call_name, "TransactionConflictException", contains=where)
            case _:
                faults.interrupt(call_name, lambda: self.do(what), contains=where)

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
            self.machine.time_out()
            self.machine.step()

    def fail_and_go_on(self) -> None:
        """Step Functions lost sight of the function, which goes on all the same."""
        if self.machine.is_invoked and not self.machine.is_over:
            self.machine.fail()
            self.machine.step()

    def answer(self, result: Any = OK) -> None:
        requests = self.stage.tool_requests()
        if requests:
            self.answers.append((requests[-1].request_id, result))
            self.stage.answer_request(result)

    def repeat(self) -> None:
        for request, result in self.answers:
            self.stage.answer_request(result, request)

    def other_answer(self) -> None:
        self.answer({"ok": True, "data": "other"})

    def ring(self) -> None:
        if self.machine.is_waiting:
            self.machine.time_out()

    def fail(self) -> None:
        if not self.machine.is_over:
            self.machine.fail()

    def cancel(self) -> None:
        self.stage.cancel_turn()

    def sweep(self) -> None:
        self.stage.pass_time(60)
        recover_open_turns(self.stage.resources)

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

    def deliver_again(self, wake: Invocation) -> None:
        self.stage.advance_turn(replace(wake, owner=f"another {wake.owner}"), RecordingConnection())

    def old_token(self) -> None:
        self.stage.workflow.resume_execution(self.wakes[0].token, "round")

    def next_prompt(self) -> None:
        """Refused, or it takes over from a turn that is over or has been silent for too long."""
        try:
            self.stage.start_turn("And now?")
        finally:
            if self.stage.turn.id != self.first.id:
                self.stage.cancel_turn()
            self.stage._turn = self.first

    def follow_executions(self) -> None:
        """Executions that recovery has started run too."""
        known = {machine.n for machine in self.machines}
        for turn, n in self.stage.workflow.started:
            if turn == self.first.id and n not in known:
                self.machines.append(StateMachine(self.stage, n=n))
                known.add(n)

    def come_to_an_end(self) -> None:
        """Good days: everybody does what they should, and the model has no more to say than that it is done."""
        self.stage.faults.clear()
        self.stage.driver.scripts.clear()
        self.take_its_course()

    def take_its_course(self) -> None:
        for _ in range(60):
            if self.stage.terminal_events() and self.machine.is_over:
                return
            while len(self.stage.driver.scripts) < 4:
                self.stage.script_replies("Done.")
            with suppress(*EXPECTED_ERRORS):
                self.go_on()
            self.follow_executions()
        raise AssertionError(
            f"The turn never ends: {self.stage.event_types()}, {[one.visited for one in self.machines]}"
        )

    def check(self) -> None:
        assert all(count == 1 for count in self.baked.values()), "a tool with side effects acted twice"
        assert not [bug for machine in self.machines for bug in machine.unexpected_errors]
        invariants.check_invariants(self.stage)

    def go_on(self) -> None:
        for machine in self.machines:
            machine.run()
        if not self.stage.terminal_events() and self.stage.show_turn()["pending"]:
            self.answer()
            return
        self.sweep()
        for machine in self.machines:
            if machine.is_waiting:
                machine.time_out()
