"""Carry out planned faults at the requests that pass through the proxy."""

import asyncio
import json
import os
import re
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import psutil

from tests.chaos.real.fault_plan import FaultPlan, PlannedFault
from tests.chaos.real.fault_proxy import Forward, ProxiedRequest, ProxiedResponse

THROTTLE_CODES = {
    "dynamodb": "ProvisionedThroughputExceededException",
    "s3": "SlowDown",
    "kms": "ThrottlingException",
    "stepfunctions": "ThrottlingException",
}
TURN_KEY = re.compile(rb"#turn#([\w-]+)")
ROUND_OWNER = re.compile(rb"owner\W{1,6}([\w-]+)/")
"""The owner of a round is the request id of its invocation, and a nonce."""
TASK_TOKEN = re.compile(rb"AQC[\w+/=-]{20,}")
Response = ProxiedResponse | None
Effect = Callable[[PlannedFault, ProxiedRequest, Forward], Awaitable[Response]]


class FaultInjector:
    """Finds the tenant of a request, asks its plan, and disturbs the request.

    `tenant_pattern` finds a tenant's name in what a request says. Requests of others pass.
    """

    def __init__(
        self,
        tenant_pattern: re.Pattern[bytes],
        kill_emulator: Callable[[], Awaitable[None]],
        stop_execution: Callable[[str], Awaitable[None]],
    ) -> None:
        self.plans: dict[str, FaultPlan] = {}
        self._tenant_pattern = tenant_pattern
        self._kill_emulator, self._stop_execution = kill_emulator, stop_execution
        self.struck_requests: set[str] = set()
        """Request ids of the invocations whose processes were killed or frozen."""
        self._tenants_of_tokens: dict[bytes, str] = {}
        self._owners: dict[int, str] = {}
        """Request ids of the invocations that have taken a round, by the port of the connection that said so."""
        self._pending: set[asyncio.Task[Any]] = set()
        self._effects: dict[str, Effect] = {
            "throttle": self._throttle,
            "conflict": self._conflict,
            "error before it ran": self._fail_before,
            "error though it ran": self._fail_after,
            "request lost": self._lose_request,
            "response lost": self._lose_response,
            "late copy": self._copy_later,
            "late request": self._deliver_later,
            "delay": self._delay_request,
            "late response": self._delay_response,
            "kill before": self._strike_before,
            "freeze before": self._strike_before,
            "kill after": self._strike_after,
            "freeze after": self._strike_after,
            "execution stopped": self._stop_after,
            "emulator killed": self._kill_emulator_after,
        }

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is under way: no late copy, no frozen process."""
        return not self._pending

    async def treat(self, request: ProxiedRequest, forward: Forward) -> Response:
        tenant = self._find_tenant(request)
        if owner := ROUND_OWNER.search(request.body):
            self._owners[request.client_port] = owner[1].decode()
        plan = self.plans.get(tenant or "")
        fault = plan.take_fault(request.call) if plan is not None else None
        if fault is None:
            return await forward(request)
        return await self._effects[fault.kind](fault, request, forward)

    def _find_tenant(self, request: ProxiedRequest) -> str | None:
        """The workflow's calls name only a token, which the tenant's pause rows have named before."""
        tokens = TASK_TOKEN.findall(request.text)
        found = self._tenant_pattern.search(request.text)
        if found is None:
            return next((self._tenants_of_tokens[token] for token in tokens if token in self._tenants_of_tokens), None)
        tenant = found[0].decode()
        self._tenants_of_tokens |= dict.fromkeys(tokens, tenant)
        return tenant

    # answers of AWS

    async def _throttle(self, fault: PlannedFault, request: ProxiedRequest, forward: Forward) -> Response:
        service = request.call.partition(".")[0]
        return make_error(request, THROTTLE_CODES[service], 503 if service == "s3" else 400)

    async def _conflict(self, fault: PlannedFault, request: ProxiedRequest, forward: Forward) -> Response:
        reasons = [{"Code": "None"} for _ in request.json["TransactItems"]]
        reasons[0] = {"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}
        return make_error(request, "TransactionCanceledException", 400, CancellationReasons=reasons)

    async def _fail_before(self, fault: PlannedFault, request: ProxiedRequest, forward: Forward) -> Response:
        return make_error(request, "InternalServerError", 500)

    async def _fail_after(self, fault: PlannedFault, request: ProxiedRequest, forward: Forward) -> Response:
        await forward(request)
        return make_error(request, "InternalServerError", 500)

    # the network

    async def _lose_request(self, fault: PlannedFault, request: ProxiedRequest, forward: Forward) -> Response:
        return None

    async def _lose_response(self, fault: PlannedFault, request: ProxiedRequest, forward: Forward) -> Response:
        await forward(request)
        return None

    async def _copy_later(self, fault: PlannedFault, request: ProxiedRequest, forward: Forward) -> Response:
        self._start(self._forward_later(fault, request, forward))
        return await forward(request)

    async def _deliver_later(self, fault: PlannedFault, request: ProxiedRequest, forward: Forward) -> Response:
        """The sender sees a lost connection and repeats the request, which arrives before this one."""
        self._start(self._forward_later(fault, request, forward))
        return None

    async def _delay_request(self, fault: PlannedFault, request: ProxiedRequest, forward: Forward) -> Response:
        await asyncio.sleep(fault.seconds)
        return await forward(request)

    async def _delay_response(self, fault: PlannedFault, request: ProxiedRequest, forward: Forward) -> Response:
        response = await forward(request)
        await asyncio.sleep(fault.seconds)
        return response

    async def _forward_later(self, fault: PlannedFault, request: ProxiedRequest, forward: Forward) -> None:
        await asyncio.sleep(fault.seconds)
        await forward(request)

    # processes

    async def _strike_before(self, fault: PlannedFault, request: ProxiedRequest, forward: Forward) -> Response:
        self._strike(fault, request)
        if fault.kind == "kill before":
            return None
        await asyncio.sleep(fault.seconds)
        return await forward(request)

    async def _strike_after(self, fault: PlannedFault, request: ProxiedRequest, forward: Forward) -> Response:
        response = await forward(request)
        self._strike(fault, request)
        return response

    def _strike(self, fault: PlannedFault, request: ProxiedRequest) -> None:
        """Kill the process that has sent a request, or stop it for a while."""
        pid = find_sender(request.client_port)
        if pid is None:
            return  # it has died meanwhile
        self._note_struck_requests(pid)
        if fault.kind.startswith("kill"):
            send_signal(pid, signal.SIGKILL)
            return
        send_signal(pid, signal.SIGSTOP)
        self._start(self._continue_later(pid, fault.seconds))

    def _note_struck_requests(self, pid: int) -> None:
        """A process serves one invocation at a time, over several connections."""
        ports = list_local_ports(psutil.Process(pid))
        self.struck_requests |= {owner for port, owner in self._owners.items() if port in ports}

    def strike_all_owners(self) -> None:
        """Note that all processes are about to be killed."""
        self.struck_requests |= set(self._owners.values())

    async def _continue_later(self, pid: int, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
        finally:
            send_signal(pid, signal.SIGCONT)

    async def _stop_after(self, fault: PlannedFault, request: ProxiedRequest, forward: Forward) -> Response:
        response = await forward(request)
        turn = TURN_KEY.search(request.text)
        if turn is not None:
            await self._stop_execution(turn[1].decode())
        return response

    async def _kill_emulator_after(self, fault: PlannedFault, request: ProxiedRequest, forward: Forward) -> Response:
        response = await forward(request)
        self._start(self._kill_emulator())
        return response

    def _start(self, work: Coroutine[Any, Any, None] | Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)


def make_error(request: ProxiedRequest, code: str, status: int, **members: Any) -> ProxiedResponse:
    """Make an error response as the service of the request does."""
    if request.call.startswith("s3."):
        body = f"<Error><Code>{code}</Code><Message>injected</Message></Error>".encode()
        return ProxiedResponse(status, [(b"content-type", b"application/xml")], body)
    body = json.dumps({"__type": code, "message": "injected", **members}).encode()
    return ProxiedResponse(status, [(b"content-type", b"application/x-amz-json-1.0")], body)


def find_sender(port: int) -> int | None:
    """Find the process that has a connection with this local port."""
    others = (process for process in psutil.process_iter() if process.pid != os.getpid())
    return next((process.pid for process in others if port in list_local_ports(process)), None)


def list_local_ports(process: psutil.Process) -> set[int]:
    """List the ports of a process's connections; none if it has ended or belongs to somebody else."""
    try:
        connections = process.net_connections("tcp4")
    except psutil.Error:
        return set()
    return {connection.laddr.port for connection in connections if connection.laddr and connection.raddr}


def send_signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
