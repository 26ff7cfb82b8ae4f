"""Run one turn under named disturbances by the workflow, browsers, other clients and AWS.

run = DisturbedTurn(stage)
run.script("calls", ["bake", "deleteNode"])
run.do("step")                                            # the next step of the state machine
run.do(("lose response", ("PutItem", "roundStarted")))    # the next such call loses its response
run.do(("cancel", ("TransactWriteItems", "done")))        # the turn is cancelled right before the next such call
run.finish_undisturbed()                                  # the rest of the turn runs without disturbances
run.check()
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
    """A turn that calls browser tools, a tool that may run once (`bake`) and one that may run again (`count`).

    Its background threads never get their turn. Faults in them, and their order, are simulated in tests/chaos.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        stage.clock.runs_threads = False
        self.bake_counts: Counter[str] = Counter()
        bake = replace(make_server_tool("bake", dict), handler=self.bake)
        stage.add_tools(bake, make_server_tool("count", dict, idempotent=True), make_patient_tool())
        self.first = stage.start_turn("Bake")
        self.machines = [StateMachine(stage)]
        self.answers: list[tuple[str, Any]] = []
        self.invocations = [self.machine.invocation]

    def bake(self, _input: NoInput, context: ToolContext) -> object:
        self.bake_counts[context.effect_key] += 1
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

    def do(self, action: Any) -> None:
        if isinstance(action, tuple):
            self.inject(*action)
            return
        while len(self.stage.driver.scripts) < 8:
            self.stage.script_replies("Done.")
        with suppress(*EXPECTED_ERRORS):
            getattr(self, action.replace(" ", "_"))()
        self.follow_executions()

    def inject(self, disturbance: str, point: tuple[str, str]) -> None:
        """Order a fault, or an action right before a call. `point` is an operation and a text in its request."""
        faults = self.stage.faults
        call_name = f"dynamodb.{point[0]}"
        text = point[1]
        match disturbance:
            case "die before" | "die after":
                faults.kill_process(call_name, when=disturbance.split()[1], contains=text)
            case "lose response":
                faults.lose_response(call_name, contains=text)
            case "lose request":
                faults.lose_request(call_name, contains=text)
            case "conflict":
                faults.fail_call(call_name, "TransactionConflictException", contains=text)
            case _:
                faults.interrupt(call_name, lambda: self.do(disturbance), contains=text)

    def step(self) -> None:
        if self.machine.invocation not in self.invocations:
            self.invocations.append(self.machine.invocation)
        self.machine.step()

    def step_and_answer(self) -> None:
        self.step()
        self.answer()

    def time_out_and_continue(self) -> None:
        """Let the task time out although its function still works, and run the next function."""
        if self.machine.is_invoked and not self.machine.is_over:
            self.machine.time_out()
            self.machine.step()

    def fail_and_continue(self) -> None:
        """Let the task fail although its function still works, and run the retry."""
        if self.machine.is_invoked and not self.machine.is_over:
            self.machine.fail()
            self.machine.step()

    def answer(self, result: Any = OK) -> None:
        requests = self.stage.tool_requests()
        if requests:
            self.answers.append((requests[-1].request_id, result))
            self.stage.answer_request(result)

    def repeat_answers(self) -> None:
        for request, result in self.answers:
            self.stage.answer_request(result, request)

    def answer_differently(self) -> None:
        self.answer({"ok": True, "data": "other"})

    def time_out(self) -> None:
        if self.machine.is_waiting:
            self.machine.time_out()

    def fail(self) -> None:
        if not self.machine.is_over:
            self.machine.fail()

    def cancel(self) -> None:
        self.stage.cancel_turn()

    def recover_silent_turns(self) -> None:
        self.stage.pass_time(60)
        recover_open_turns(self.stage.resources)

    def pass_the_answer_deadline(self) -> None:
        self.stage.pass_time(91)

    def pass_a_day(self) -> None:
        self.stage.pass_time(90_000)

    def deliver_the_first_task_again(self) -> None:
        """Deliver a task late that timed out long ago."""
        self.deliver_again(self.invocations[0])

    def deliver_the_task_again(self) -> None:
        """Deliver the same task once more."""
        self.deliver_again(self.machine.invocation)

    def deliver_again(self, invocation: Invocation) -> None:
        self.stage.advance_turn(replace(invocation, owner=f"another {invocation.owner}"), RecordingConnection())

    def resume_with_an_old_token(self) -> None:
        self.stage.workflow.resume_execution(self.invocations[0].token, "round")

    def prompt_again(self) -> None:
        """Send another prompt. It is refused, unless the turn has ended or stalled."""
        try:
            self.stage.start_turn("And now?")
        finally:
            if self.stage.turn.id != self.first.id:
                self.stage.cancel_turn()
            self.stage._turn = self.first

    def follow_executions(self) -> None:
        """Run the executions that recovery has started, too."""
        numbers = {machine.n for machine in self.machines}
        for turn, n in self.stage.workflow.started:
            if turn == self.first.id and n not in numbers:
                self.machines.append(StateMachine(self.stage, n=n))
                numbers.add(n)

    def finish_undisturbed(self) -> None:
        """Stop all disturbances and let the turn end; the model replies that it is done."""
        self.stage.faults.clear()
        self.stage.driver.scripts.clear()
        self.run_to_end()

    def run_to_end(self) -> None:
        for _ in range(60):
            if self.stage.terminal_events() and self.machine.is_over:
                return
            while len(self.stage.driver.scripts) < 4:
                self.stage.script_replies("Done.")
            with suppress(*EXPECTED_ERRORS):
                self.continue_turn()
            self.follow_executions()
        raise AssertionError(
            f"The turn never ends: {self.stage.event_types()}, {[machine.visited for machine in self.machines]}"
        )

    def check(self) -> None:
        assert all(count == 1 for count in self.bake_counts.values()), "a tool with side effects ran twice"
        assert not [error for machine in self.machines for error in machine.unexpected_errors]
        invariants.check_invariants(self.stage)

    def continue_turn(self) -> None:
        for machine in self.machines:
            machine.run()
        if not self.stage.terminal_events() and self.stage.show_turn()["pending"]:
            self.answer()
            return
        self.recover_silent_turns()
        for machine in self.machines:
            if machine.is_waiting:
                machine.time_out()
