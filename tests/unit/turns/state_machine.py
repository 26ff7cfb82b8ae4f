"""Execute statemachines/turn.asl.yaml for the stage's turn, one step at a time.

machine = StateMachine(stage)
machine.run()              # until it waits for a token or has ended
machine.time_out()         # HeartbeatTimeout in RunRound, the time-out in Hold
"""

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from fermata.domain.errors import ApiError
from fermata.turns.recover.recover_turn import recover_turn
from fermata.turns.round.invocation import Invocation
from tests.faults import ProcessDied
from tests.unit.turns.stage import RecordingConnection, Stage

STATUSES = {"Finished": "SUCCEEDED", "Failed": "FAILED"}
ERRORS = {"Failed": "TurnFailed"}
EXPECTED_ERRORS = (ProcessDied, BotoCoreError, ClientError, ApiError)
"""Errors that injected faults cause, in contrast to bugs."""


class StateMachine:
    """One execution of the workflow."""

    def __init__(self, stage: Stage, n: int = 1) -> None:
        self.stage = stage
        self.turn = stage.turn
        self.n = n
        self.input: dict[str, Any] = {}
        self.visited: list[str] = []
        self.unexpected_errors: list[Exception] = []
        """Exceptions of its functions that no injected fault explains."""
        self._enter("RunRound")

    @property
    def is_over(self) -> bool:
        return self.state in STATUSES

    @property
    def is_waiting(self) -> bool:
        """Whether the function has returned and the task waits for its token or its time-out."""
        return not self.is_over and self.is_invoked and self.invocation.token not in self.stage.workflow.outputs

    def run(self) -> str:
        while not self.is_waiting and not self.is_over:
            self.step()
        return self.state

    def step(self) -> None:
        """Call the function, or enter the state that its token was completed with."""
        output = self.stage.workflow.outputs.get(self.invocation.token)
        if self.is_over or self.is_waiting:
            return
        if output is not None:
            self.input = output
            self._enter({"round": "RunRound", "hold": "Hold", "finish": "Finished"}[output["next"]])
        else:
            self._invoke()

    def time_out(self) -> None:
        """Let the task time out: neither its token nor a heartbeat came in time."""
        self._expire_token()
        self.input = {}
        self._enter("RunRound")

    def fail(self) -> None:
        """Let the task fail. It is retried once, then the state Recover runs."""
        self._expire_token()
        if self.retries:
            self._recover()
        else:
            self.retries += 1
            self._start_task()

    def _invoke(self) -> None:
        invocation = self.invocation
        self.is_invoked = True
        try:
            self.stage.advance_turn(invocation, RecordingConnection())
        except EXPECTED_ERRORS:
            self._fail_task(invocation)
        except Exception as error:  # noqa: BLE001 - whatever a function raises, its task has failed
            self.unexpected_errors.append(error)
            self._fail_task(invocation)

    def _fail_task(self, invocation: Invocation) -> None:
        """Let the task fail, unless it has timed out meanwhile: then the function's error has no effect."""
        if self.invocation is invocation:
            self.fail()

    def _recover(self) -> None:
        for _ in range(4):
            try:
                recover_turn(
                    self.stage.resources,
                    self.turn.tenant,
                    self.turn.id,
                    execution_number=self.n,
                    has_execution_failed=True,
                )
            except EXPECTED_ERRORS:  # the state's Retry
                continue
            break
        self._enter("Failed")

    def _enter(self, state: str) -> None:
        self.state = state
        self.retries = 0
        self.entered = self.stage.next_entered_at()
        self.visited.append(state)
        self.stage.workflow.states[self.turn.id, self.n] = (STATUSES.get(state, "RUNNING"), ERRORS.get(state, ""))
        if not self.is_over:
            self._start_task()

    def _start_task(self) -> None:
        self.is_invoked = False
        hint = self.input.get("hint")
        holds = self.state == "Hold"
        self.invocation: Invocation = self.stage.make_invocation(
            n=self.n, retry=self.retries, holds=holds, hint=hint, entered=self.entered
        )

    def _expire_token(self) -> None:
        self.stage.workflow.open_tokens.discard(self.invocation.token)
