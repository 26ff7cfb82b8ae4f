"""The whole service in one process: functions, workflow, sweep, ledger stream, browsers and readers, on simulated AWS.

world = World(seed=7, fault_rate=0.03, fault_budget=10)
world.run()            # two or more turns on a conversation, faults, then good days until everything is over
problems = judge(world)
"""

import functools
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar

import pytest

from fermata.aws import observability
from fermata.aws.blob_store import BlobStore
from fermata.aws.dynamodb_client import DynamoClient
from fermata.aws.dynamodb_types import deserialize_item
from fermata.aws.lazy_snapshot import LazySnapshot
from fermata.aws.resources import Resources
from fermata.aws.settings import Settings
from fermata.aws.vault import Vault
from fermata.aws.workflow import TurnWorkflow
from fermata.conversations import conversation_store
from fermata.credentials import credential_store
from fermata.domain.blocks import TextBlock
from fermata.domain.caller import Caller
from fermata.domain.errors import ApiError
from fermata.pricing import catalogue
from fermata.pricing.catalogue import PriceCatalogue, PricedModel
from fermata.pricing.token_cost import Price
from fermata.turns.answer.submit_tool_result import submit_tool_result
from fermata.turns.end.stop_turn import cancel_turn
from fermata.turns.read.follow_log import read_entries_after
from fermata.turns.recover.recover_open_turns import recover_open_turns
from fermata.turns.recover.recover_turn import recover_turn
from fermata.turns.round.invocation import invocation_from_event
from fermata.turns.round.run_turn_steps import run_turn_steps
from fermata.turns.start.start_turn import TurnPrompt, start_turn
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from fermata.usage.rollups.stream_consumer import LedgerStreamRecord, count_stream_records
from tests.chaos.faults import FaultPlan
from tests.chaos.memory_aws.dynamodb import MemoryDynamoDB, MemoryTable
from tests.chaos.memory_aws.kms import MemoryKms
from tests.chaos.memory_aws.s3 import MemoryS3
from tests.chaos.memory_aws.step_functions import Execution, MemoryStepFunctions, TaskError
from tests.chaos.primitives import SimulatedClock
from tests.chaos.provider import SimulatedConnection, SimulatedProvider, make_prompt
from tests.chaos.scheduler import Process, Scheduler
from tests.chaos.simulated_boto3_client import SimulatedBoto3Client

Result = TypeVar("Result")

MODEL = "model-1"
ADA = Caller(
    tenant="bakery",
    user="ada",
    capabilities=frozenset({"ai.chat", "ai.tools.write", "ai.providers.manage", "site.read", "site.structure.edit"}),
)
INDEXES = {
    "conversations": {"byUser": ("gpk", "gsk")},
    "bridges": {"open": ("open", "openSince")},
    "usage": {"byTime": ("gpk", "gsk")},
    "pricing": {},
    "settings": {},
}
FUNCTION_SECONDS = {"round": 900.0, "hold": 30.0, "recover": 120.0}
SWEEP_SECONDS = 60.0
READER_SECONDS = 0.3
DISTURBED_SECONDS = 300.0
CALM_SECONDS = 3600.0
MAX_SKEW_SECONDS = 2.0
ABANDON_RATE = 0.7
SECOND_TAB_RATE = 0.3
RIVAL_RATE = 0.3


class FunctionDied(Exception):
    """The process of a function ended before it answered."""


@dataclass
class SimulatedTurn:
    """One prompt of one user, and what its browser saw."""

    name: str
    rounds: int
    idempotency_key: str
    conversation: str
    bridge: str = ""
    error: str = ""
    """Why the prompt was refused for good."""
    received: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    """Events by number, as a reader that reconnects got them."""
    executed: list[str] = field(default_factory=list)
    """Effect keys of the edits that the browser made."""
    acknowledged: dict[str, Any] = field(default_factory=dict)
    """Results by request id that the service answered with success."""
    was_cancelled: bool = False
    is_abandoned: bool = False
    """The tab was closed before it had an answer: nobody repeats the prompt, nobody reads the turn."""
    refused_repeats: list[str] = field(default_factory=list)
    """Refusals of an answer that had been given already."""

    @property
    def is_over(self) -> bool:
        return (
            bool(self.error)
            or self.is_abandoned
            or any(event["type"] in ("done", "error", "cancelled") for _, event in self.received)
        )


class World:
    def __init__(
        self, seed: int, *, fault_rate: float = 0.0, fault_budget: int = 0, turns: int = 2, kinds: tuple[str, ...] = ()
    ) -> None:
        self.seed = seed
        self.scheduler = Scheduler(seed)
        draw = self.scheduler.random
        self.faults = FaultPlan(draw, fault_rate, fault_budget, **({"kinds": kinds} if kinds else {}))
        self.is_disturbed = False
        self.dynamodb = MemoryDynamoDB(
            [MemoryTable(name, indexes) for name, indexes in INDEXES.items()], lambda: self.scheduler.now
        )
        self.s3 = MemoryS3(lambda: self.scheduler.now)
        self.kms = MemoryKms()
        self.step_functions = MemoryStepFunctions(self.scheduler, self._run_function, heartbeat_seconds=90)
        self.step_functions.on_end = self._report_end
        self.provider = SimulatedProvider(self.scheduler, fault_rate=fault_rate)
        self.settings = Settings(
            **{f"{table}_table": table for table in INDEXES},
            bucket="fermata",
            key_id="key",
            state_machine_arn="arn:aws:states:eu-central-1:123456789012:stateMachine:fermata-turn",
        )
        self.turns: list[SimulatedTurn] = []
        self._turn_count = turns
        self._numbers = itertools.count(1)
        self._stream_position = 0
        self.calm_since = self.quiet_after = 0.0
        self.function_errors: list[Exception] = []
        """What functions raised; the judge passes over errors of AWS and those of the API."""

    # processes

    def new_resources(self, name: str) -> Resources:
        """Return the resources of a new process."""
        skew = self.scheduler.random.uniform(-MAX_SKEW_SECONDS, MAX_SKEW_SECONDS)
        return self.resources_of(self.scheduler.new_process(f"{name}-{next(self._numbers)}", skew))

    def resources_of(self, process: Process) -> Resources:
        clock = SimulatedClock(self.scheduler, process)
        resources = Resources(self.settings, clock)

        def client(service: str, backend: Any) -> Any:
            return SimulatedBoto3Client(service, backend, self.scheduler, process, lambda: self.active_faults)

        resources.__dict__.update(
            tables=DynamoClient(client("dynamodb", self.dynamodb), clock.sleep),
            blobs=BlobStore(client("s3", self.s3), self.settings.bucket, clock),
            vault=Vault(client("kms", self.kms), self.settings.key_id, clock.monotonic),
            workflow=TurnWorkflow(client("stepfunctions", self.step_functions), self.settings.state_machine_arn),
        )
        return resources

    @property
    def active_faults(self) -> FaultPlan | None:
        return self.faults if self.is_disturbed else None

    def call(self, name: str, function: Callable[[Resources], Result], seconds: float = 29.0) -> Result:
        """Call a function in a process of its own, as a Lambda invocation; from a simulated task.

        Raises:
            FunctionDied: It was killed, or took longer than `seconds`.
        """
        process = self.scheduler.new_process(
            f"{name}-{next(self._numbers)}", self.scheduler.random.uniform(-MAX_SKEW_SECONDS, MAX_SKEW_SECONDS)
        )
        answer: list[Result] = []
        errors: list[Exception] = []

        def run() -> None:
            try:
                answer.append(function(self.resources_of(process)))
            except Exception as error:  # noqa: BLE001 (raised again where the function was called)
                errors.append(error)
                self.function_errors.append(error)

        task = self.scheduler.start(process, run, name=name)
        if not self.scheduler.wait("function", lambda: task.is_over, seconds):
            self.scheduler.kill(process)
        if errors:
            raise errors[0]
        if not answer:
            raise FunctionDied(name)
        return answer[0]

    # the workflow's functions

    def _run_function(self, function: str, payload: dict[str, Any]) -> Any:
        seconds = FUNCTION_SECONDS[function]
        try:
            if function == "recover":
                return self.call(
                    function,
                    lambda resources: recover_turn(
                        resources,
                        payload["tenant"],
                        payload["turn"],
                        execution_number=payload["n"],
                        has_execution_failed=True,
                    ),
                    seconds,
                )
            return self.call(function, lambda resources: self._advance(resources, function, payload), seconds)
        except FunctionDied as died:
            raise TaskError("Lambda.Unknown", str(died)) from died
        except Exception as error:
            raise TaskError(type(error).__name__, str(error)) from error

    def _advance(self, resources: Resources, function: str, payload: dict[str, Any]) -> None:
        begun = self.scheduler.now
        context = _LambdaContext(
            f"request-{next(self._numbers)}", lambda: FUNCTION_SECONDS[function] - (self.scheduler.now - begun)
        )
        invocation = invocation_from_event(payload, context, is_hold=function == "hold")
        connection: Any = SimulatedConnection(self.scheduler)
        run_turn_steps(resources, invocation, None if function == "hold" else connection)

    def _report_end(self, execution: Execution) -> None:
        """EventBridge reports how an execution ended, unless the event gets lost."""
        if execution.status == "SUCCEEDED" or self.scheduler.random.random() < 0.2:
            return
        given = execution.input
        self._attempt(
            "recover",
            lambda: self.call(
                "recover",
                lambda resources: recover_turn(resources, given["tenant"], given["turn"], execution_number=given["n"]),
                120,
            ),
        )

    def _attempt(self, name: str, act: Callable[[], object]) -> None:
        """Start an asynchronous invocation, which the platform repeats when it fails."""

        def run() -> None:
            for _ in range(3):
                try:
                    act()
                except Exception:  # noqa: BLE001 (whatever a function raises is retried by the platform)
                    self.scheduler.switch("asynchronous retry", 60.0)
                else:
                    return

        self.scheduler.start(Process(name), run, name=name)

    # what happens around the turns

    def _sweep(self) -> None:
        while True:
            self.scheduler.switch("sweep", SWEEP_SECONDS)
            try:
                self.call("sweep", recover_open_turns, 60.0)
            except Exception:  # noqa: BLE001 (the next sweep tries again)
                continue

    def _consume_ledger(self) -> None:
        """Deliver the ledger's stream in order; a batch that fails comes again, and sometimes one comes twice."""
        stream = self.dynamodb.tables["usage"].stream
        while True:
            self.scheduler.switch("ledger stream", 1.0)
            inserted = [record for record in stream[self._stream_position :] if record.event == "INSERT"]
            end = len(stream)
            ledger = [record for record in inserted if record.new and "turn" in record.new]
            batch = [
                LedgerStreamRecord(str(record.sequence), deserialize_item(record.new))
                for record in ledger
                if record.new and record.new["sk"]["S"][:1] in "re"
            ]
            try:
                stuck = self.call("rollup", lambda resources, b=batch: count_stream_records(resources, b), 60.0)  # type: ignore[misc]
            except Exception:  # noqa: BLE001 (the batch comes again)
                continue
            if not stuck and self.scheduler.random.random() > 0.1:
                self._stream_position = end

    # browsers

    def _browse(self, turn: SimulatedTurn) -> None:
        self._start(turn)
        if turn.error or turn.is_abandoned:
            return
        self.scheduler.start(Process("reader"), lambda: self._read(turn), name="reader")
        handled: set[str] = set()
        while not turn.is_over:
            self.scheduler.switch("browser", 0.2)
            request = next((event for _, event in turn.received if self._is_new_request(event, handled)), None)
            if request is not None:
                handled.add(request["requestId"])
                self._answer(turn, request)

    @staticmethod
    def _is_new_request(event: dict[str, Any], handled: set[str]) -> bool:
        return event["type"] == "toolRequest" and event["requestId"] not in handled

    def _start(self, turn: SimulatedTurn) -> None:
        content = (TextBlock(text=make_prompt(turn.name, turn.rounds, self.seed)),)
        prompt = TurnPrompt(
            scope="site",
            conversation_id=turn.conversation,
            content=content,
            dialect="fermata",
            snapshot=LazySnapshot.from_value({"site": {"pages": [], "note": turn.name}}),
            idempotency_key=turn.idempotency_key,
        )
        problem = ""
        for _ in range(60):
            try:
                turn.bridge = self.call("stream", lambda resources: start_turn(resources, ADA, prompt).turn.id)
                return
            except ApiError as refusal:
                problem = f"{refusal.status}: {refusal.message}"
                if refusal.status < 500 and refusal.status not in (409, 429):
                    break
            except Exception as error:  # noqa: BLE001 (a browser sees a 5xx and sends the same request again)
                problem = repr(error)
                if self.scheduler.random.random() < ABANDON_RATE:
                    turn.is_abandoned = True
                    return
            self.scheduler.switch("browser retry", 5.0)
        turn.error = problem

    def _read(self, turn: SimulatedTurn) -> None:
        """Follow the log: reconnect after every failure with the number of the last event."""
        after = 0
        while not turn.is_over:
            try:
                after = self.call("reader", lambda resources, n=after: self._follow(resources, turn, n), 840.0)  # type: ignore[misc]
            except Exception:  # noqa: BLE001 (the connection broke: the client reconnects)
                after = turn.received[-1][0] if turn.received else 0
            self.scheduler.switch("reconnect", READER_SECONDS)

    def _follow(self, resources: Resources, turn: SimulatedTurn, after: int) -> int:
        row = self._load_turn(resources, turn)
        while not turn.is_over:
            for entry in read_entries_after(resources, row, after):
                for number, event in enumerate(entry.events, entry.first_number):
                    if number > after:
                        turn.received.append((number, event.to_wire()))
                after = max(after, entry.next_number - 1)
            resources.clock.sleep(READER_SECONDS)
        return after

    def _load_turn(self, resources: Resources, turn: SimulatedTurn) -> Any:
        from fermata.turns.turn import build_turn_pk, turn_from_item

        row = resources.tables.get_item("bridges", build_turn_pk(ADA.tenant, turn.bridge), "turn")
        return turn_from_item(row, resources.clock.time())

    def _answer(self, turn: SimulatedTurn, request: dict[str, Any]) -> None:
        draw = self.scheduler.random
        if draw.random() < 0.03:
            self.scheduler.switch("slow browser", draw.uniform(30, 130))
        if request["effectKey"] not in turn.executed:
            turn.executed.append(request["effectKey"])
        result = {"ok": True, "data": {"effect": request["effectKey"]}}
        if draw.random() < SECOND_TAB_RATE:
            self.scheduler.start(
                Process("tab"), lambda: self._post_result(turn, request, result, draw.random()), name="tab"
            )
        self._post_result(turn, request, result)

    def _post_result(
        self, turn: SimulatedTurn, request: dict[str, Any], result: dict[str, Any], delay: float = 0.0
    ) -> None:
        self.scheduler.switch("browser", delay)
        for _ in range(40):
            try:
                self.call(
                    "tool_result",
                    lambda resources: submit_tool_result(
                        resources, ADA, bridge_id=turn.bridge, request_id=request["requestId"], result=result
                    ),
                )
            except ApiError as refusal:
                if refusal.status < 500 and refusal.status != 429:
                    if refusal.status == 409:
                        turn.refused_repeats.append(f"{request['requestId']}: {refusal.message}")
                    return
            except Exception:  # noqa: BLE001 (a browser sees a 5xx and sends the same answer again)
                pass
            else:
                turn.acknowledged[request["requestId"]] = result
                return
            self.scheduler.switch("browser retry", 3.0)

    def _cancel_sometimes(self, turn: SimulatedTurn) -> None:
        draw = self.scheduler.random
        if draw.random() > 0.25:
            return
        self.scheduler.switch("user", draw.uniform(0.5, 40))
        for _ in range(20):
            if turn.is_over:
                return
            try:
                if turn.bridge:
                    self.call("api", lambda resources: cancel_turn(resources, ADA, turn.bridge))
                    turn.was_cancelled = True
                    return
            except Exception:  # noqa: BLE001 (a browser sees a 5xx and tries again)
                pass
            self.scheduler.switch("browser retry", 3.0)

    # the course of a simulation

    def run(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fermata.turns.round.model_request.get_provider", lambda _name: self.provider)
            patch.setattr("fermata.aws.clock.secrets", _SeededSecrets(self.seed))  # ids that a seed repeats
            patch.setattr(functools.cached_property, "__get__", _get_cached_property)
            random.seed(self.seed)  # jitter
            for name in ("log_event", "log_warning", "log_exception", "log_audit_event", "emit_metrics"):
                patch.setattr(observability, name, lambda *_, **__: None)
            try:
                self._run()
            finally:
                self.scheduler.close()

    def _run(self) -> None:
        users = Process("users")
        conversation = self._set_up()
        self.scheduler.start(users, self._sweep, name="sweep")
        self.scheduler.start(users, self._consume_ledger, name="ledger-stream")
        self.is_disturbed = True
        draw = self.scheduler.random
        finished: list[SimulatedTurn] = []

        def live() -> None:
            for number in range(self._turn_count):
                turn = SimulatedTurn(f"t{number}", draw.randint(1, 4), f"key-{number}", conversation)
                self.turns.append(turn)
                self.scheduler.start(users, lambda turn=turn: self._cancel_sometimes(turn), name="user")  # type: ignore[misc]
                if draw.random() < RIVAL_RATE:
                    self._start_rival(users, conversation)
                self._browse(turn)
                finished.append(turn)

        begun = self.scheduler.now
        self.scheduler.start(users, live, name="browser")
        self.scheduler.run(
            lambda: len(finished) == self._turn_count or self.scheduler.now - begun > DISTURBED_SECONDS, CALM_SECONDS
        )
        self.is_disturbed, self.provider.fault_rate, self.calm_since = False, 0.0, self.scheduler.now
        self.scheduler.run(lambda: len(finished) == self._turn_count and self._is_quiet(), CALM_SECONDS)
        self.quiet_after = self.scheduler.now - self.calm_since
        self._prompt_once_more(users, conversation)

    def _start_rival(self, users: Process, conversation: str) -> None:
        """Send another prompt at the same time, from another tab: one of them waits for the other."""
        number = len(self.turns)
        rival = SimulatedTurn(f"r{number}", 1, f"rival-{number}", conversation)
        self.turns.append(rival)
        self.scheduler.start(users, lambda: self._browse(rival), name="rival")

    def _set_up(self) -> str:
        created: list[str] = []

        def set_up() -> None:
            resources = self.resources_of(self.scheduler.current.process)
            prices = PriceCatalogue(
                refreshed_at=1, priced_models={MODEL: PricedModel(price=Price(input_per_mtok=1, output_per_mtok=2))}
            )
            catalogue.store_catalogue(resources, prices)
            credential = credential_store.create_credential(resources, ADA, "anthropic", "apiKey", "key", "sk-ant-test")
            conversation = conversation_store.create_conversation(resources, ADA, "site", None, credential.id, MODEL)
            budgets = Budgets(tenant=BudgetLimits(monthly_usd=Decimal(100)))
            set_budgets(resources, ADA, budgets)
            created.append(conversation.id)

        self.scheduler.start(Process("set-up"), set_up, name="set-up")
        self.scheduler.run(lambda: bool(created), 60)
        return created[0]

    def _prompt_once_more(self, users: Process, conversation: str) -> None:
        turn = SimulatedTurn("last", 1, "key-last", conversation)
        self.turns.append(turn)
        done: list[bool] = []

        def prompt() -> None:
            self._browse(turn)
            done.append(True)

        self.scheduler.start(users, prompt, name="browser")
        self.scheduler.run(lambda: bool(done) and self._is_quiet(), CALM_SECONDS)

    def _is_quiet(self) -> bool:
        """No execution runs, no turn is open, and the ledger's stream is consumed."""
        executions = self.step_functions.executions.values()
        is_open = any(
            "open" in item for rows in self.dynamodb.tables["bridges"].partitions.values() for item in rows.values()
        )
        is_counted = self._stream_position == len(self.dynamodb.tables["usage"].stream)
        are_over = all(turn.is_over for turn in self.turns)
        return (
            are_over and not is_open and is_counted and all(execution.status != "RUNNING" for execution in executions)
        )


class _SeededSecrets(random.Random):
    """In place of the module `secrets`."""

    def token_bytes(self, size: int) -> bytes:
        return self.randbytes(size)


def _get_cached_property(descriptor: Any, instance: Any, owner: Any = None) -> Any:
    """Work like a cached property without its lock.

    Before Python 3.12 all instances share one lock, so a task would really block while another one waits for AWS.
    """
    if instance is None:
        return descriptor
    if descriptor.attrname not in instance.__dict__:
        instance.__dict__[descriptor.attrname] = descriptor.func(instance)
    return instance.__dict__[descriptor.attrname]


@dataclass
class _LambdaContext:
    aws_request_id: str
    remaining: Callable[[], float]

    def get_remaining_time_in_millis(self) -> int:
        return int(self.remaining() * 1000)
