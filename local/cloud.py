"""Run the whole service on this machine: emulator, demo model, demo host, the deployed stack and the front door."""

import contextlib
import functools
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from local import deploy, seed
from local.deployed_stack import SWEEP_EVENT, DeployedStack
from local.forked_process import ForkedProcess, LocalProcess
from local.listening_sockets import open_listener
from local.processes import ChildProcess, DidNotStartError, EmulatorProcess, run_environment
from local.seed import SeededModel
from local.seeded_models import make_demo_model, make_real_model

LOCAL_TIMINGS = {"PollMs": "5", "IdlePollMs": "50", "FlushMs": "50"}
"""Parameters that differ from the deployed ones: polling is cheap on one machine."""
LISTENING_TIMINGS = {"PollMs": "50", "IdlePollMs": "250"}
"""Intervals of readers that are told when a log grows (decision 0167)."""
FUNCTION_PACKAGES = "fermata"
"""The package that the functions import."""
RARE_PACKAGES = "fermata.mcp_sources fermata.content.git fermata.wire.openapi fermata.wire.bodies.responses"
"""Packages in it that are large, or have large libraries, and that few requests need: 30 MB (decision 0509)."""
FUNCTION_WARM_UP = "fermata.aws.resources.create_clients"
"""What each function would do at its first invocation."""
FIRST_SWEEP_EVENT = SWEEP_EVENT | {"startGraceSeconds": 0}
"""The sweep before the front door opens: nobody can be starting a turn (decision 0161)."""


class LocalCloud(DeployedStack):
    """The local cloud as a context manager. Nothing of it outlives the `with` block."""

    def __init__(
        self,
        directory: Path,
        *,
        keep_state: bool = False,
        port: int = 0,
        minute_seconds: float = 60.0,
        model_options: Sequence[str] = (),
        real_api_key: str | None = None,
        latencies: Path | None = None,
        function_limits: Mapping[str, float] | None = None,
        parameters: Mapping[str, object] | None = None,
        environment: Mapping[str, object] | None = None,
    ) -> None:
        """
        Args:
            directory: holds logs, the tenant's secrets and, with `keep_state`, the state of the emulator.
            keep_state: whether the emulator writes its state down and reads it at the next start. What it has
                acknowledged then survives a kill (decision 0160).
            port: of the front door; 0 picks a free one.
            minute_seconds: how long a minute of a schedule lasts.
            model_options: command-line options of the demo model.
            real_api_key: asks Anthropic with this key instead of the demo model.
            latencies: a file named `latencies` of milliseconds that AWS calls take (aws/fault_injection.py).
            function_limits: limits of the functions' processes that differ from their defaults (`ProcessLimits`).
            parameters: values of template parameters that differ from the local ones (`{"PollMs": 20}`).
            environment: environment variables of all functions, in addition to those of the template.
        """
        super().__init__()
        self.directory = directory
        self.token = ""
        self.url = ""
        self.model: SeededModel | None = None
        self._keep_state = keep_state
        self._port = port
        self._minute_seconds = minute_seconds
        self._model_options = model_options
        self._real_api_key = real_api_key
        self._is_listening = latencies is None and not set(LISTENING_TIMINGS) & set(parameters or {})
        timings = LOCAL_TIMINGS | (LISTENING_TIMINGS if self._is_listening else {})
        origins = ",".join(seed.EDITOR_ORIGINS)
        own = deploy.EMULATED_PARAMETERS | {"UploadOrigins": origins}
        self._parameters = timings | own | _to_strings(parameters)
        self._environment = _to_strings(environment)
        self._function_limits = function_limits
        self._latencies = latencies
        if latencies is not None:
            self._environment["FERMATA_FAULTS"] = str(latencies.parent)
        self._listener: socket.socket | None = None
        self._demo_model: ChildProcess | None = None
        self._demo_host: ChildProcess | None = None
        self._front_door: ForkedProcess | None = None
        self._emulator: EmulatorProcess | None = None

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as cleanup:
            cleanup.callback(self._stop)
            self.directory.mkdir(parents=True, exist_ok=True)
            self._listener = self._listen()
            self._parameters.setdefault("PublicUrl", f"http://127.0.0.1:{self._listener.getsockname()[1]}")
            self.start_emulator()
            self.model = self._choose_model()
            self._demo_host = self._start_demo_host()
            self._deploy()
            self.token = seed.seed_cloud(self.resources(), self.directory, self.model, self.host_url)
            if self._keep_state:
                self.invoke_function("recover", FIRST_SWEEP_EVENT)
            self._open_front_door()
            cleanup.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    @property
    def endpoint(self) -> str:
        """URL of the emulated AWS."""
        assert self._emulator is not None
        return self._emulator.endpoint

    @property
    def host_url(self) -> str:
        """URL of the local tenant's demo host."""
        assert self._demo_host is not None
        return self._demo_host.ready_line

    def sign_token(self, **claims: Any) -> str:
        """Sign a token of the local tenant with other claims: another `sub`, fewer `capabilities`."""
        return seed.sign_token((self.directory / "secret").read_text(), **claims)

    def redeploy(
        self, *, parameters: Mapping[str, object] | None = None, environment: Mapping[str, object] | None = None
    ) -> None:
        """Deploy again with other values. Running invocations and executions finish as they began."""
        self._parameters |= _to_strings(parameters)
        self._environment |= _to_strings(environment)
        settings_before = self._front_door_settings()
        self._deploy()
        if self._front_door_settings() != settings_before:
            self._open_front_door()

    def start_emulator(self) -> None:
        """Start the emulator; after `kill_emulator`, at the same address."""
        port = int(self._emulator.endpoint.rpartition(":")[2]) if self._emulator else 0
        self._emulator = EmulatorProcess(
            self.directory,
            keep_state=self._keep_state,
            port=port,
            minute_seconds=self._minute_seconds,
            latencies=self._latencies,
            function_limits=self._function_limits,
            function_packages=FUNCTION_PACKAGES,
            rare_packages=RARE_PACKAGES,
            function_warm_up=FUNCTION_WARM_UP,
        )

    def kill(self) -> None:
        """Kill all processes as `kill -9` does."""
        for child in self._children():
            child.kill()

    def kill_emulator(self) -> None:
        """Kill the emulator as `kill -9` does. All executions end, and without `keep_state` all state is lost."""
        assert self._emulator is not None
        self._emulator.kill()

    def restart_emulator(self) -> None:
        """Stop the emulator cleanly and start it at the same address."""
        assert self._emulator is not None
        self._emulator.stop()
        self.start_emulator()

    def restart_front_door(self) -> None:
        """Start a front door at the same address, after the one before was killed."""
        self._open_front_door()

    def worker_pids(self, folder: str, *, busy: bool | None = None) -> list[int]:
        """List the processes of a function. `busy` selects those that run an invocation, or only the idle ones."""
        assert self._emulator is not None
        processes = self._emulator.list_function_processes().get(self.function_name(folder), [])
        return [process["pid"] for process in processes if busy is None or process["busy"] is busy]

    def count_function_processes(self) -> int:
        """Count the processes of all functions, busy and idle."""
        assert self._emulator is not None
        return sum(len(processes) for processes in self._emulator.list_function_processes().values())

    def kill_workers(self, folder: str) -> int:
        """Kill the processes that run an invocation of a function and return how many there were."""
        pids = self.worker_pids(folder, busy=True)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(pids)

    def find_ended_process(self) -> str | None:
        """Get the name of a process that has ended by itself, if there is one."""
        children: dict[str, LocalProcess | None] = {
            "the front door": self._front_door,
            "the emulator": self._emulator,
            "the demo model": self._demo_model,
            "the demo content system": self._demo_host,
        }
        return next((name for name, child in children.items() if child is not None and not child.is_running()), None)

    def child_pids(self) -> list[int]:
        """List the processes that this cloud has started."""
        return [child.pid for child in self._children()]

    def read_log_lines(self, folder: str) -> list[str]:
        """Read the log of a function. The streaming function runs in the front door, so its log is there."""
        if folder == self.get_streaming_folder():
            return (self.directory / "front_door.log").read_text(errors="replace").splitlines()
        log_events = self.get_client("logs").get_paginator("filter_log_events")
        group = f"/aws/lambda/{self.function_name(folder)}"
        return [event["message"] for page in log_events.paginate(logGroupName=group) for event in page["events"]]

    def emulator_pid(self) -> int:
        """Get the process of the emulated AWS, which is the parent of all function processes."""
        assert self._emulator is not None
        return self._emulator.pid

    def _listen(self) -> socket.socket:
        try:
            return open_listener(self._port)
        except OSError as error:
            raise DidNotStartError(f"The front door cannot listen on port {self._port}: {error.strerror}.") from error

    def _choose_model(self) -> SeededModel:
        if self._real_api_key:
            return make_real_model(self._real_api_key, json.loads(self._parameters.get("ProviderUrls", "{}")))
        self._demo_model = self._start_child("local.demo_model", "demo_model.log", self._model_options)
        url = str(json.loads(self._demo_model.ready_line)["url"])
        urls = {"anthropic": url, "openai": url, "openrouter": f"{url}/api", "gemini": url}
        self._parameters["ProviderUrls"] = json.dumps(urls)
        self._parameters.setdefault("CatalogueUrl", f"{url}/api/v1/models")
        return make_demo_model(url)

    def _start_demo_host(self) -> ChildProcess:
        secret_file = seed.ensure_secret_file(self.directory, seed.HOST_CREDENTIAL_FILE)
        arguments = ["--tenant", seed.TENANT, "--secret-file", str(secret_file)]
        return self._start_child("local.demo_host", "demo_host.log", arguments)

    def _deploy(self) -> None:
        self.outputs = deploy.deploy_stack(self.endpoint, self._parameters, self._environment)

    def _open_front_door(self) -> None:
        """Start a front door, then stop the one before it. Meanwhile connections queue at the socket they share."""
        assert self._listener is not None
        assert self._emulator is not None
        previous = self._front_door
        configuration = self.get_function_configuration(self.get_streaming_folder())
        settings = {
            "FERMATA_ENDPOINT": self.endpoint,
            "FERMATA_HOSTS": os.environ.get("FERMATA_HOSTS", ""),
            "FERMATA_UPLOAD_ORIGINS": self._parameters["UploadOrigins"],
            "FERMATA_API": f"{self.outputs['ApiId']}/{self.outputs['StageName']}",
            "FERMATA_STREAM_VARIABLES": json.dumps(configuration["Environment"]["Variables"]),
            "FERMATA_LISTENS": "1" if self._is_listening else "",
            "FERMATA_CONSOLE": str(self.directory.resolve()),
            "FERMATA_CONSOLE_TOKEN": self.token,
        }
        self._front_door = ForkedProcess(
            "local.front_door",
            run_environment() | settings,
            self.directory / "front_door.log",
            ask_for_copy=functools.partial(self._emulator.fork_copy, configuration),
            descriptors={"FERMATA_LISTENER": self._listener.fileno()},
        )
        self.url = self._front_door.ready_line
        if previous is not None:
            previous.stop()

    def _front_door_settings(self) -> tuple[str, dict[str, str]]:
        """Return what a front door reads once, at its start."""
        return self.outputs["ApiId"], self.get_function_variables(self.get_streaming_folder())

    def _start_child(self, module: str, log_name: str, arguments: Sequence[str]) -> ChildProcess:
        command = [sys.executable, "-m", "local.parent_watch", module, *arguments]
        return ChildProcess(command, run_environment(), self.directory / log_name)

    def _stop(self) -> None:
        """Ask all processes to stop before waiting for any: each takes its time."""
        for child in self._children():
            child.request_stop()
        for child in self._children():
            child.stop()
        if self._listener is not None:
            self._listener.close()

    def _children(self) -> list[LocalProcess]:
        children = (self._front_door, self._emulator, self._demo_host, self._demo_model)
        return [child for child in children if child is not None]


def _to_strings(values: Mapping[str, object] | None) -> dict[str, str]:
    return {name: str(value) for name, value in (values or {}).items()}
