"""statemachines/turn.asl.yaml by hand: one execution of the stage's turn, one step at a time.

machine = Machine(stage)
machine.run()              # until it waits for somebody, or is over
machine.ring()             # HeartbeatTimeout in RunRound, the end of the wait in Hold
"""

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from fermata.domain.errors import ApiError
from fermata.turns.recover.recover_turn import recover_turn
from fermata.turns.round.invocation import Invocation
from tests.faults import ProcessDied
from tests.unit.turns.stage import RecordingConnection, Stage

STATUSES = {"Finished": "SUCCEEDED", "Failed": "FAILED"}
EXPECTED_ERRORS = (ProcessDied, BotoCoreError, ClientError, ApiError)
"""What may go wrong without being our own mistake."""


class StateMachine:
    def __init__(self, stage: Stage, n: int = 1) -> None:
        self.stage, self.turn, self.n = stage, stage.turn, n
        self.input: dict[str, Any] = {}
        self.visited: list[str] = []
        self.unexpected_errors: list[Exception] = []
        """What its functions failed of that nobody has ordered."""
        self._enter("RunRound")

    @property
    def is_over(self) -> bool:
        return self.state in STATUSES

    @property
    def is_waiting(self) -> bool:
        """The function was called and returned; only a token, or the clock, goes on from here."""
        return not self.is_over and self.is_invoked and self.wake.token not in self.stage.workflow.outputs

    def run(self) -> str:
        while not self.is_waiting and not self.is_over:
            self.step()
        return self.state

    def step(self) -> None:
        """Whatever comes next by itself: call the function, or go where its token was sent."""
        output = self.stage.workflow.outputs.get(self.wake.token)
        if self.is_over or self.is_waiting:
            return
        if output is not None:
            self.input = output
            self._enter({"round": "RunRound", "hold": "Hold", "finish": "Finished"}[output["next"]])
        else:
            self._invoke()

    def time_out(self) -> None:
        """Nobody sent the token or a heartbeat in time."""
        self._void()
        self.input = {}
        self._enter("RunRound")

    def fail(self) -> None:
        """The function failed, as Step Functions sees it: once more, then Recover."""
        self._void()
        if self.retries:
            self._recover()
        else:
            self.retries += 1
            self._task()

    def _invoke(self) -> None:
        wake, self.is_invoked = self.wake, True
        try:
            self.stage.advance_turn(wake, RecordingConnection())
        except EXPECTED_ERRORS:
            self._failed(wake)
        except Exception as bug:  # noqa: BLE001 - whatever a function raises, its task has failed
            self.unexpected_errors.append(bug)
            self._failed(wake)

    def _failed(self, wake: Invocation) -> None:
        """Nobody asks how a function ended whose task was given up meanwhile."""
        if self.wake is wake:
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
        self.state, self.retries, self.entered = state, 0, self.stage.next_entered_at()
        self.visited.append(state)
        self.stage.workflow.states[self.turn.id, self.n] = (STATUSES.get(state, "RUNNING"), "")
        if not self.is_over:
            self._task()

    def _task(self) -> None:
        self.is_invoked = False
        hint = self.input.get("hint")
        holds = self.state == "Hold"
        self.wake: Invocation = self.stage.make_invocation(
            n=self.n, retry=self.retries, holds=holds, hint=hint, entered=self.entered
        )

    def _void(self) -> None:
        self.stage.workflow.open_tokens.discard(self.wake.token)
