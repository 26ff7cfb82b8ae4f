"""The whole service on this machine: emulator, demo model and content system, the deployed stack, the front door."""

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fermata.drivers.registry import get_provider
from local import deploy, seed, template
from local.aws_clients import get_client
from local.front_door.api_gateway import ApiGateway
from local.processes import ChildProcess, EmulatorProcess, inherited_environment
from local.seed import LocalResources, SeededModel

LOCAL_TIMINGS = {"PollMs": "5", "IdlePollMs": "50", "FlushMs": "30"}
"""One machine, so looking often is cheap and waiting is not. Everything else is as deployed."""
DEFAULT_REAL_MODEL = "claude-sonnet-4-5"
DEMO_LABEL, REAL_LABEL = "Demo model (fixed rules, not an AI)", "Anthropic"
SWEEP_EVENT = {"v": 1, "sweep": True}


class LocalCloud:
    """A context manager: everything runs inside `with`, and nothing of it after.

    `directory` holds logs, the tenant's secrets and, with `keep_state`, what the emulator knows. `overrides` of the
    template's parameters are written as there (`PollMs=20`), environment variables in capitals.
    """

    def __init__(
        self,
        directory: Path,
        *,
        keep_state: bool = False,
        port: int = 0,
        minute_seconds: float = 60.0,
        model_options: Sequence[str] = (),
        real_api_key: str | None = None,
        **overrides: object,
    ) -> None:
        self.directory = directory
        self.token = ""
        self.url = ""
        self.model: SeededModel | None = None
        self._keep_state = keep_state
        self._port = port
        self._minute = minute_seconds
        self._model_options = model_options
        self._real_key = real_api_key
        self._overrides: dict[str, str] = LOCAL_TIMINGS | {"Stage": "local"} | _texts(overrides)
        self._outputs: dict[str, str] = {}
        self._demo: ChildProcess | None = None
        self._host: ChildProcess | None = None
        self._front: ChildProcess | None = None
        self._emulator: EmulatorProcess | None = None

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as starting:
            starting.callback(self._stop)
            self.directory.mkdir(parents=True, exist_ok=True)
            self.start_emulator()
            self.model = self._choose_model()
            self._host = self._start_host()
            self._deploy()
            self.token = seed.seed_cloud(self.resources(), self.directory, self.model, self.host_url)
            self._open_front_door()
            if self._keep_state:
                self.run_recovery_sweep()
            starting.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    @property
    def endpoint(self) -> str:
        """Where AWS is."""
        assert self._emulator is not None
        return self._emulator.endpoint

    @property
    def host_url(self) -> str:
        """Where the demo content system of the local tenant is."""
        assert self._host is not None
        return self._host.ready_line

    def get_client(self, service: str) -> Any:
        return get_client(service, self.endpoint)

    def resources(self) -> LocalResources:
        """What the verbs of `fermata` need to act on this cloud, with the round function's configuration."""
        return LocalResources.for_endpoint(self.endpoint, self._variables("round"))

    def get_output(self, name: str) -> str:
        """Of the deployed stack: a table's name, the machine's ARN."""
        return self._outputs[name]

    def sign_token(self, **claims: Any) -> str:
        """A token of the local tenant with other claims: another `sub`, fewer `capabilities`."""
        return seed.sign_token((self.directory / "secret").read_text(), **claims)

    def redeploy(self, **overrides: object) -> None:
        """Deploy again, with other parameters or variables; what runs finishes as it was started."""
        self._overrides |= _texts(overrides)
        before = self._front_door_settings()
        self._deploy()
        if self._front_door_settings() != before:
            self._open_front_door()

    def start_emulator(self) -> None:
        """Again at the same address, after `kill_emulator`."""
        port = int(self._emulator.endpoint.rpartition(":")[2]) if self._emulator else 0
        self._emulator = EmulatorProcess(
            self.directory, keep_state=self._keep_state, port=port, minute_seconds=self._minute
        )

    def save_state(self) -> None:
        """What happened so far outlives a kill (with `keep_state`)."""
        assert self._emulator is not None
        self._emulator.save_snapshot()

    def kill_emulator(self) -> None:
        """As a power cut would. What it had not written down is lost, and every execution."""
        assert self._emulator is not None
        self._emulator.kill()

    def restart_emulator(self) -> None:
        assert self._emulator is not None
        self._emulator.stop()
        self.start_emulator()

    def run_recovery_sweep(self) -> int:
        """Have the sweep look at every open turn now; how many it saw."""
        answer = self.invoke_function("recover", SWEEP_EVENT)
        return int(answer["seen"]) if isinstance(answer, dict) else 0

    def invoke_function(self, function: str, event: Any) -> Any:
        answer = self.get_client("lambda").invoke(FunctionName=self.function_name(function), Payload=json.dumps(event))
        return json.loads(answer["Payload"].read())

    def function_name(self, folder: str) -> str:
        """The deployed name of the function whose code is in `functions/<folder>`."""
        functions = template.resources_of_type(template.load_template(), "Function")
        logical = next(name for name, it in functions.items() if it["Properties"]["CodeUri"].endswith(f"/{folder}"))
        resource = self.get_client("cloudformation").describe_stack_resource(
            StackName=deploy.STACK_NAME, LogicalResourceId=logical
        )
        return str(resource["StackResourceDetail"]["PhysicalResourceId"])

    def worker_pids(self, function: str, *, busy: bool | None = None) -> list[int]:
        """The processes of a function; with `busy`, only those that run an invocation, or only the idle ones."""
        assert self._emulator is not None
        found = self._emulator.list_function_processes().get(self.function_name(function), [])
        return [process["pid"] for process in found if busy is None or process["busy"] is busy]

    def kill_workers(self, function: str) -> int:
        """Kill the processes that run an invocation of a function; how many there were."""
        pids = self.worker_pids(function, busy=True)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(pids)

    def find_ended_process(self) -> str | None:
        """The name of a process that is no longer running."""
        named = {"the front door": self._front, "the emulator": self._emulator, "the demo model": self._demo}
        named["the demo content system"] = self._host
        return next((name for name, child in named.items() if child is not None and not child.is_running()), None)

    def child_pids(self) -> list[int]:
        """Of everything that was started here."""
        return [child.pid for child in self._children()]

    def list_executions(self, turn: str | None = None) -> list[dict[str, Any]]:
        """Executions of the turn machine, the newest first; of one turn, or all."""
        machine = self.get_output("TurnMachineArn")
        found = self.get_client("stepfunctions").list_executions(stateMachineArn=machine)["executions"]
        return [execution for execution in found if turn is None or execution["name"].rpartition("-")[0] == turn]

    def wait_for_executions(self, turn: str, timeout_seconds: float = 10.0) -> list[dict[str, Any]]:
        """The executions of a turn once all have ended, which is a moment after its client has heard the end."""
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            found = self.list_executions(turn)
            if all(execution["status"] != "RUNNING" for execution in found):
                return found
            time.sleep(0.02)
        raise TimeoutError(f"An execution of turn {turn} still runs.")

    def stop_execution(self, name: str) -> None:
        """Stop an execution from outside, as an operator at the console may."""
        arn = f"{self.get_output('TurnMachineArn').replace(':stateMachine:', ':execution:')}:{name}"
        self.get_client("stepfunctions").stop_execution(executionArn=arn)

    def read_log_lines(self, function: str) -> list[str]:
        """What a function has printed so far; the streaming function's lines are the front door's."""
        if function == self._stream_folder():
            return (self.directory / "front_door.log").read_text(errors="replace").splitlines()
        logs = self.get_client("logs").get_paginator("filter_log_events")
        group = f"/aws/lambda/{self.function_name(function)}"
        return [event["message"] for page in logs.paginate(logGroupName=group) for event in page["events"]]

    def _choose_model(self) -> SeededModel:
        if self._real_key:
            urls = json.loads(self._overrides.get("ProviderUrls", "{}"))
            url = urls.get("anthropic") or get_provider("anthropic").default_url or ""
            return SeededModel(REAL_LABEL, self._real_key, os.environ.get("FERMATA_MODEL", DEFAULT_REAL_MODEL), url)
        self._demo = self._start("local.demo_model", "demo_model.log", {}, *self._model_options)
        url = str(json.loads(self._demo.ready_line)["url"])
        urls = {"anthropic": url, "openai": url, "openrouter": f"{url}/api"}
        self._overrides["ProviderUrls"] = json.dumps(urls)
        self._overrides.setdefault("CatalogueUrl", f"{url}/api/v1/models")
        return SeededModel(DEMO_LABEL, "demo", "fermata-demo", url)

    def _start_host(self) -> ChildProcess:
        secret = seed.ensure_secret_file(self.directory, seed.HOST_CREDENTIAL_FILE)
        arguments = ("--tenant", seed.TENANT, "--secret-file", str(secret))
        return self._start("local.demo_host", "demo_host.log", {}, *arguments)

    def _deploy(self) -> None:
        parameters = {name: value for name, value in self._overrides.items() if not name.isupper()}
        variables = {name: value for name, value in self._overrides.items() if name.isupper()}
        self._outputs = deploy.deploy_stack(self.endpoint, parameters, variables)

    def _open_front_door(self) -> None:
        if self._front is not None:
            self._front.stop()
        settings = {
            "FERMATA_PORT": str(self._port),
            "FERMATA_ENDPOINT": self.endpoint,
            "FERMATA_API": f"{self._outputs['ApiId']}/{self._outputs['StageName']}",
            "FERMATA_STREAM": self.function_name(self._stream_folder()),
        }
        self._front = self._start("local.front_door.app", "front_door.log", settings)
        self.url = self._front.ready_line
        self._port = int(self.url.rpartition(":")[2])

    def _front_door_settings(self) -> tuple[str, dict[str, str]]:
        """What the front door reads once, when it opens."""
        return self._outputs["ApiId"], self._variables(self._stream_folder())

    def _stream_folder(self) -> str:
        document = template.load_template()
        (name,) = ApiGateway(document).streaming_functions()
        return str(document["Resources"][name]["Properties"]["CodeUri"]).rpartition("/")[2]

    def _variables(self, function: str) -> dict[str, str]:
        config = self.get_client("lambda").get_function_configuration(FunctionName=self.function_name(function))
        return dict(config["Environment"]["Variables"])

    def _start(self, module: str, log: str, settings: Mapping[str, str], *arguments: str) -> ChildProcess:
        command = [sys.executable, "-m", "local.parent_watch", module, *arguments]
        return ChildProcess(command, inherited_environment() | dict(settings), self.directory / log)

    def _stop(self) -> None:
        """All at once: each has its own goodbyes to say."""
        for child in self._children():
            child.request_stop()
        for child in self._children():
            child.stop()

    def _children(self) -> list[ChildProcess]:
        return [child for child in (self._front, self._emulator, self._host, self._demo) if child is not None]


def _texts(overrides: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in overrides.items()}
