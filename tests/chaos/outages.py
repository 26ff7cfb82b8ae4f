"""A simulated service whose users go on while one dependency refuses every call, and what CloudWatch gets of it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from fermata.aws import observability
from tests.chaos.fault_rules import FaultPlan
from tests.chaos.habits import GOOD_DAY_HABITS, DayKind
from tests.chaos.memory_aws.step_functions import Execution
from tests.chaos.scheduler import Process
from tests.chaos.simulated_cloud import FunctionDied, HttpAnswer
from tests.chaos.user_actions import UserActions
from tests.chaos.users import User
from tests.chaos.world import World, simulated_process

DAY = DayKind(habits=replace(GOOD_DAY_HABITS, slow_browser=0.0))
"""On which browsers answer, so that a turn that fails does so because of the outage."""
SEED = 5
"""Of a workspace with a large budget, in the middle of a month, whose turns are not held."""
PROMPTED_SECONDS = 800.0
SECONDS_BETWEEN_PROMPTS = 20.0
CALM_SECONDS = 30.0
"""Before the dependency breaks, so that turns are under way."""
OUTAGE_SECONDS = 900.0
STREAM_RETRY_SECONDS = 10.0
FUNCTIONS = {
    "stream": "StreamFunction",
    "reader": "StreamFunction",
    "tool_result": "ToolResultFunction",
    "api": "ApiFunction",
    "credentials": "CredentialsFunction",
    "round": "RoundFunction",
    "hold": "HoldFunction",
    "recover": "RecoverFunction",
    "sweep": "RecoverFunction",
    "rollup": "RollupFunction",
}
EXECUTION_METRICS = {"FAILED": "ExecutionsFailed", "TIMED_OUT": "ExecutionsTimedOut", "ABORTED": "ExecutionsAborted"}


@dataclass(frozen=True)
class EmittedValue:
    """A value of a metric, with logical ids of the template as values of its dimensions."""

    namespace: str
    name: str
    dimensions: frozenset[tuple[str, str]]
    at: float
    """Seconds since users have begun."""
    value: float


@dataclass(frozen=True)
class LogLine:
    function: str
    facts: dict[str, Any]
    at: float


@dataclass(frozen=True)
class Outage:
    """What is refused: calls at points that begin with `point`, of processes whose name begins with `process`.

    `kind` is how: one of the kinds of faults at an AWS call.
    """

    point: str
    process: str = ""
    kind: str = "denied"


class Refusal(FaultPlan):
    """Refuses every call of an outage, from the moment on at which it is active."""

    outage: Outage

    def draw(self, point: str, process: str) -> str | None:
        is_hit = point.startswith(self.outage.point) and process.startswith(self.outage.process)
        if not self.is_active or not is_hit:
            return None
        return "unreachable" if point.startswith("provider") else self.outage.kind


class OutageWorld(World):
    """A workspace whose user sends a prompt every few seconds, each in a conversation of its own."""

    def __init__(self, outage: Outage, seconds_between_prompts: float = SECONDS_BETWEEN_PROMPTS) -> None:
        super().__init__(SEED, day=DAY)
        self._seconds_between_prompts = seconds_between_prompts
        self.values: list[EmittedValue] = []
        self.lines: list[LogLine] = []
        refusal = Refusal(self.scheduler.random, 0.0, 0)
        refusal.outage = outage
        self.faults = self.cloud.faults = self.cloud.provider.faults = refusal
        self._begun = self.scheduler.now
        self._watch_platform()

    def run_outage(self) -> None:
        with simulated_process(self), self._recorded_output():
            try:
                actions = self._set_up()
                conversations = self._create_conversations(actions)
                self._begun = self.scheduler.now
                self.events.start(Process("platform"))
                for number, conversation in enumerate(conversations):
                    self._prompt_later(actions, number, conversation)
                self._pass_time(CALM_SECONDS)
                self.faults.is_active = True
                self._pass_time(OUTAGE_SECONDS)
            finally:
                self.scheduler.close()
        for at in self.events.dead_letters:
            self._emit_at(at, "AWS/SQS", "ApproximateNumberOfMessagesVisible", 1, QueueName="RecoverDeadLetters")

    def _create_conversations(self, actions: UserActions) -> list[str]:
        made: list[str] = []
        count = int(PROMPTED_SECONDS / self._seconds_between_prompts)
        body = {"scope": "site", "credentialId": actions.credential, "modelId": actions.model}

        def create() -> None:
            for _ in range(count):
                answer = self.cloud.request("api", "POST", "conversations", User("ada").token, body)
                made.append(answer.body["conversation"]["id"])

        self.scheduler.start(Process("ada"), create, name="ada")
        self.scheduler.run(lambda: len(made) == count, 600)
        return made

    def _prompt_later(self, actions: UserActions, number: int, conversation: str) -> None:
        def prompt() -> None:
            actions.make_prompt(f"c{number}", conversation=conversation, max_rounds=2).run()

        self.scheduler.start(Process("ada"), prompt, name="ada", delay=number * self._seconds_between_prompts)

    def _pass_time(self, seconds: float) -> None:
        until = self.scheduler.now + seconds
        self.scheduler.start(Process("time"), lambda: self.scheduler.switch("time", seconds), name="time")
        self.scheduler.run(lambda: self.scheduler.now >= until, seconds + 60)

    # what AWS measures

    def _watch_platform(self) -> None:
        call, request, report_end = self.cloud.call, self.cloud.request, self.cloud.step_functions.on_end

        def call_and_count(name: str, *given: Any) -> Any:
            self._emit("AWS/Lambda", "Invocations", 1, FunctionName=FUNCTIONS[name])
            try:
                return call(name, *given)
            except Exception as error:
                if name != "reader" or isinstance(error, FunctionDied):  # of a stream, Lambda sees no exception
                    self._emit("AWS/Lambda", "Errors", 1, FunctionName=FUNCTIONS[name])
                raise

        def request_and_count(*given: Any, **headers: Any) -> HttpAnswer:
            answer = request(*given, **headers)
            place = {"ApiName": "AWS::StackName", "Stage": "Stage"}
            self._emit("AWS/ApiGateway", "Count", 1, **place)
            self._emit("AWS/ApiGateway", "5XXError", int(answer.status >= 500), **place)
            return answer

        def count_and_report(execution: Execution) -> None:
            if execution.status in EXECUTION_METRICS:
                self._emit("AWS/States", EXECUTION_METRICS[execution.status], 1, StateMachineArn="TurnMachine")
            report_end(execution)

        vars(self.cloud).update(call=call_and_count, request=request_and_count)
        self.cloud.step_functions.on_end = count_and_report
        self._watch_ledger_stream()

    def _watch_ledger_stream(self) -> None:
        """Measure the age of what the ledger's stream delivers. A batch that failed comes again some seconds later."""
        deliver, table = self.events._deliver, self.cloud.dynamodb.tables["usage"]

        def deliver_and_measure(batch: list[int], start: int, reached: int) -> int:
            position = deliver(batch, start, reached)
            age = (self.scheduler.now - table.stream[batch[-1]].at) * 1000
            self._emit("AWS/Lambda", "IteratorAge", age, FunctionName="RollupFunction")
            if position < reached:
                self.scheduler.switch("stream retry", STREAM_RETRY_SECONDS)
            return position

        vars(self.events).update(_deliver=deliver_and_measure)

    def _emit(self, namespace: str, name: str, value: float, **dimensions: str) -> None:
        self._emit_at(self.scheduler.now, namespace, name, value, **dimensions)

    def _emit_at(self, at: float, namespace: str, name: str, value: float, **dimensions: str) -> None:
        place = frozenset(dimensions.items())
        self.values.append(EmittedValue(namespace, name, place, at - self._begun, value))

    # what functions write

    @contextmanager
    def _recorded_output(self) -> Iterator[None]:
        def log(event: str, **facts: Any) -> None:
            function = self.scheduler.current.process.name.rpartition("-")[0]
            facts = {"event": event, **facts}
            self.lines.append(LogLine(FUNCTIONS.get(function, function), facts, self.scheduler.now - self._begun))

        def log_exception(event: str, **facts: Any) -> None:
            self.cloud.note_error(sys.exc_info()[1])
            log(event, **facts)

        def emit(values: dict[str, float], dimensions: dict[str, str] | None = None, **_: Any) -> None:
            for name, value in values.items():
                self._emit("Fermata", name, value, service="fermata", **(dimensions or {}))

        with pytest.MonkeyPatch.context() as patch:
            for name in ("log_event", "log_warning", "log_audit_event"):
                patch.setattr(observability, name, log)
            patch.setattr(observability, "log_exception", log_exception)
            patch.setattr(observability, "emit_metrics", emit)
            yield
