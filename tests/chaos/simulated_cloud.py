"""The account in which the service runs: its processes, its functions, and whoever invokes them.

Functions run in simulated processes that stay warm for further invocations, as Lambda's do, until they are killed.
"""

import itertools
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import functions.api.app
import functions.credentials.app
import functions.stream_turns.app
import functions.tool_result.app
from fermata.aws.blob_store import BlobStore
from fermata.aws.dynamodb_client import DynamoClient
from fermata.aws.message_queue import MessageQueue
from fermata.aws.resources import Resources
from fermata.aws.settings import Settings
from fermata.aws.vault import Vault
from fermata.aws.workflow import TurnWorkflow
from fermata.turns.read.abandonment import AbandonmentWatcher
from fermata.wire.http.dispatch import handle_request
from fermata.wire.http.messages import HttpRequest
from tests.chaos.fault_rules import FaultPlan
from tests.chaos.habits import USUAL_HABITS, Habits
from tests.chaos.memory_aws.dynamodb import MemoryDynamoDB
from tests.chaos.memory_aws.kms import MemoryKms
from tests.chaos.memory_aws.s3 import MemoryS3
from tests.chaos.memory_aws.sqs import MemorySqs
from tests.chaos.memory_aws.tables import MemoryTable
from tests.chaos.primitives import SimulatedClock
from tests.chaos.provider import SimulatedConnection, SimulatedProvider
from tests.chaos.provider_responses import HOSTS
from tests.chaos.scheduler import Process, Scheduler, Task
from tests.chaos.simulated_boto3_client import SimulatedBoto3Client

Result = TypeVar("Result")
INDEXES = {
    "conversations": {"byUser": ("gpk", "gsk")},
    "bridges": {"open": ("open", "openSince")},
    "usage": {"byTime": ("gpk", "gsk")},
    "pricing": {},
    "settings": {},
    "content": {"byDue": ("gpk", "gsk")},
}
KEYS_ONLY_INDEXES = frozenset({"open", "byDue"})
ROUTERS = {
    "stream": functions.stream_turns.app.router,
    "tool_result": functions.tool_result.app.router,
    "api": functions.api.app.router,
    "credentials": functions.credentials.app.router,
}
MAX_SKEW_SECONDS = 2.0
REQUEST_SECONDS = 29.0
WARM_RATE = 0.8


class FunctionDied(Exception):
    """The process of a function ended before it answered."""


@dataclass(frozen=True)
class HttpAnswer:
    status: int
    body: Any = None

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_final(self) -> bool:
        """Whether the same request again would be answered in the same way."""
        return self.status < 500 and self.status not in (409, 429)

    @property
    def error(self) -> str:
        return f"{self.status}: {self.body.get('error') if isinstance(self.body, dict) else self.body}"


@dataclass(eq=False)
class FunctionProcess(Process):
    """A process of a function, with what it keeps between invocations."""

    resources: Resources | None = None
    connection: SimulatedConnection | None = None
    watcher: AbandonmentWatcher | None = None
    """Of the turns that this process's readers follow."""


@dataclass
class SimulatedCloud:
    scheduler: Scheduler
    faults: FaultPlan
    settings_changes: Mapping[str, Any] = field(default_factory=dict)
    habits: Habits = USUAL_HABITS
    is_left_alone: Callable[[Mapping[str, Any]], bool] = lambda _request: False
    """Whether browsers leave a tool request to a server of the tenant."""
    errors: list[str] = field(default_factory=list)
    """Errors that functions raised or logged and that are neither AWS's nor the API's."""

    def __post_init__(self) -> None:
        tables = [MemoryTable(name, indexes, KEYS_ONLY_INDEXES) for name, indexes in INDEXES.items()]
        self.dynamodb = MemoryDynamoDB(tables, lambda: self.scheduler.now)
        self.s3 = MemoryS3(lambda: self.scheduler.now)
        self.kms = MemoryKms()
        self.sqs = MemorySqs(lambda: self.scheduler.now)
        self.provider = SimulatedProvider(self.scheduler, self.faults, slow_rate=self.habits.slow_provider)
        self.settings = _build_settings(self.settings_changes)
        self.step_functions: Any = None
        self._numbers = itertools.count(1)
        self._warm: dict[str, list[FunctionProcess]] = {}
        self._shared: dict[str, FunctionProcess] = {}
        self.scheduler.on_switch = self._strike_at_point

    # processes

    def resources_of(self, process: Process) -> Resources:
        clock = SimulatedClock(self.scheduler, process)
        resources = Resources(self.settings, clock)

        def client(service: str, backend: Any) -> Any:
            return SimulatedBoto3Client(service, backend, self.scheduler, process, self.faults)

        resources.__dict__.update(
            tables=DynamoClient(client("dynamodb", self.dynamodb), clock.sleep),
            blobs=BlobStore(client("s3", self.s3), self.settings.bucket, clock),
            vault=Vault(client("kms", self.kms), self.settings.key_id, clock.monotonic),
            webhook_queue=MessageQueue(client("sqs", self.sqs), self.settings.webhook_queue_url),
            workflow=TurnWorkflow(client("stepfunctions", self.step_functions), self.settings.state_machine_arn),
        )
        return resources

    def _take_process(self, name: str) -> FunctionProcess:
        """Return a warm process of a function, or a new one. On one machine all readers are in one process."""
        if name in self._shared and not self._shared[name].is_dead:
            return self._shared[name]
        warm = [process for process in self._warm.get(name, []) if not process.is_dead]
        if warm and self.scheduler.random.random() < WARM_RATE:
            process = self.scheduler.random.choice(warm)
            self._warm[name] = [other for other in warm if other is not process]
            return process
        skew = self.scheduler.random.uniform(-MAX_SKEW_SECONDS, MAX_SKEW_SECONDS)
        process = FunctionProcess(f"{name}-{next(self._numbers)}", skew, may_be_struck=True)
        process.resources = self.resources_of(process)
        process.connection = SimulatedConnection(self.scheduler, self.provider)
        process.watcher = AbandonmentWatcher(process.resources)
        if name == "reader" and self.sees_departures:
            self._shared[name] = process
        return process

    @property
    def sees_departures(self) -> bool:
        """Whether the service runs on one machine, where it sees that a reader leaves."""
        return self.settings.fermata_stage == "local"

    def restart(self) -> None:
        """Replace every warm process."""
        self._warm.clear()
        self._shared.clear()

    def call(self, name: str, function: Callable[[FunctionProcess], Result], seconds: float) -> Result:
        """Invoke a function; from a simulated task.

        Raises:
            FunctionDied: It was killed, or took longer than `seconds`.
            Exception: What it raised.
        """
        process = self._take_process(name)
        process.request_id = f"request-{next(self._numbers)}"
        answer: list[Result] = []
        errors: list[Exception] = []

        def run() -> None:
            try:
                answer.append(function(process))
            except Exception as error:  # noqa: BLE001 (raised again where the function was called)
                errors.append(error)
                self.note_error(error)

        task = self.scheduler.start(process, run, name=name)
        if not self.scheduler.wait("function", lambda: task.is_over, seconds):
            self.scheduler.kill(process)
        if errors:
            raise errors[0]
        if not answer:
            raise FunctionDied(name)
        if process is not self._shared.get(name):
            self._warm.setdefault(name, []).append(process)
        return answer[0]

    def request(
        self, function: str, method: str, path: str, token: str, body: Any = None, **headers: str
    ) -> HttpAnswer:
        """Send an HTTP request through API Gateway; 502 when the function died, or took too long."""
        sent = {"authorization": f"Bearer {token}", "content-type": "application/json", "accept": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        raw = b"" if body is None else json.dumps(body).encode()
        path, _, query = path.partition("?")
        parameters = dict(pair.split("=", 1) for pair in query.split("&")) if query else {}
        address = path if path.startswith("/") else f"/admin/api/ai/{path}"

        def handle(process: FunctionProcess) -> HttpAnswer:
            assert process.resources is not None
            request = HttpRequest(process.request_id, method, address, sent, parameters, raw)
            response = handle_request(process.resources, ROUTERS[function].routes, request)
            return HttpAnswer(response.status, response.body)

        try:
            return self.call(function, handle, REQUEST_SECONDS)
        except FunctionDied:
            return HttpAnswer(502)

    # faults and errors

    def _strike_at_point(self, task: Task, label: str) -> None:
        process = task.process
        if not process.may_be_struck or label.startswith(("before", "after")):
            return
        fault = self.faults.draw(f"point.{label}", process.name)
        if fault is not None:
            process.strike(self.scheduler, fault)

    def note_error(self, error: BaseException | None) -> None:
        """Keep an error, unless it is one of AWS or one that the API answers a caller with."""
        modules = [base.__module__ for base in type(error).__mro__]
        if error is not None and not any(name.startswith(("botocore", "fermata.domain.errors")) for name in modules):
            self.errors.append(repr(error))

    def note_logged_exception(self, *_: Any, **__: Any) -> None:
        """Take the place of `observability.log_exception`."""
        self.note_error(sys.exc_info()[1])


def _build_settings(changes: Mapping[str, Any]) -> Settings:
    urls = {name: f"https://{host}" for host, name in HOSTS.items()}
    return Settings(
        **{f"{table}_table": table for table in INDEXES},
        bucket="fermata",
        key_id="key",
        webhook_queue_url="https://sqs.example/webhooks",
        state_machine_arn="arn:aws:states:eu-central-1:123456789012:stateMachine:fermata-turn",
        provider_urls=json.dumps(urls),
        **changes,
    )
