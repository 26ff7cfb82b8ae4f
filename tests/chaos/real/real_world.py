"""One seed on the local cloud: some tenants at once, each with a browser, a fault plan and a conversation.

async with open_real_cloud(directory) as cloud:
    report = await run_real_seed(cloud, seed=7, faults_per_tenant=6)
"""

import asyncio
import contextlib
import json
import re
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from fermata.credentials import credential_store, scope_defaults
from fermata.domain.caller import Caller
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from local.cloud import LocalCloud
from local.seed import CAPABILITIES, EDITOR_CAPABILITIES
from tests.chaos.campaign import RunReport
from tests.chaos.judge import judge
from tests.chaos.real import evidence
from tests.chaos.real.browser import Browser
from tests.chaos.real.fault_injection import FaultInjector
from tests.chaos.real.fault_plan import FaultPlan, plan_faults
from tests.chaos.real.fault_proxy import FaultProxy
from tests.chaos.real.provider import RealProvider, run_provider
from tests.chaos.world import SimulatedTurn
from tests.tenant_tokens import make_tenant

SHORT_CLOCKS = {
    "HeartbeatSeconds": 6,
    "BrowserWaitSeconds": 30,
    "ReaderHeartbeatSeconds": 1,
    "ProviderStallSeconds": 3,
    "PollMs": 50,
    "IdlePollMs": 100,
    "START_GRACE_SECONDS": 3,
    "STALLED_TURN_SECONDS": 20,
}
"""Recovery takes seconds instead of minutes."""
MINUTE_SECONDS = 3.0
TENANT_NAME = re.compile(rb"chaos\d+x\d+")
TENANTS = 3
FAULTS_PER_TENANT = (4, 8, 14)
"""Of a seed. Few faults find what many hide."""
TURNS = 2
PROVIDER_FAULT_RATE = 0.08
DISTURBED_SECONDS = 60.0
MAX_CALM_SECONDS = 240.0
"""When waiting for the end of everything is given up: recovery takes some heartbeats, on a busy machine longer."""
MODEL = "fermata-demo"
CAPABILITIES_OF_ADA = (*CAPABILITIES, *EDITOR_CAPABILITIES)


@dataclass
class RealCloud:
    """The local cloud, the proxy before it, the provider, and the process that may be missing after a kill."""

    cloud: LocalCloud
    provider: RealProvider
    proxy: FaultProxy
    faults: FaultInjector = field(init=False)
    outages: int = 0
    front_door_kills: int = 0
    _replacing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def kill_emulator(self) -> None:
        """Kill the emulated AWS and start it with the state that it had acknowledged."""
        async with self._replacing, self.proxy.hold_requests():
            self.outages += 1
            await asyncio.to_thread(self.cloud.save_state)
            await asyncio.to_thread(self.cloud.kill_emulator)
            await asyncio.to_thread(self.cloud.start_emulator)

    async def stop_execution(self, turn: str) -> None:
        names = await asyncio.to_thread(evidence.find_running_executions, self.cloud)
        for name in names:
            if name.rpartition("-")[0] == turn:
                await asyncio.to_thread(self.cloud.stop_execution, name)

    async def keep_front_door(self) -> None:
        """Start another front door whenever one was killed, as AWS starts another process of a function."""
        while True:
            if self.cloud.find_ended_process() == "the front door":
                self.front_door_kills += 1
                async with self._replacing:
                    await asyncio.to_thread(self.cloud.restart_front_door)
            await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def open_real_cloud(directory: Path) -> AsyncIterator[RealCloud]:
    """Start the provider and the local cloud, whose functions call AWS through the fault proxy."""
    with run_provider() as provider:
        proxy = FaultProxy(lambda: cloud.endpoint, lambda request, forward: real.faults.treat(request, forward))
        await proxy.start()
        endpoints = {f"AWS_ENDPOINT_URL_{name}": proxy.url for name in ("DYNAMODB", "S3", "KMS", "SFN")}
        cloud = LocalCloud(
            directory,
            keep_state=True,
            minute_seconds=MINUTE_SECONDS,
            real_api_key="chaos",
            ProviderUrls=json.dumps({"anthropic": provider.url}),
            CatalogueUrl=f"{provider.url}/api/v1/models",
            **SHORT_CLOCKS,
            **endpoints,
        )
        real = RealCloud(cloud, provider, proxy)
        real.faults = FaultInjector(TENANT_NAME, real.kill_emulator, real.stop_execution)
        await asyncio.to_thread(cloud.__enter__)
        keeper = asyncio.create_task(real.keep_front_door())
        try:
            yield real
        finally:
            keeper.cancel()
            await asyncio.to_thread(cloud.__exit__, None, None, None)
            await proxy.close()


@dataclass
class RealReport(RunReport):
    ends: Counter[str] = field(default_factory=Counter)
    """How the turns ended, as their browsers saw it."""


@dataclass
class RealSeed:
    """The run of one seed."""

    real: RealCloud
    seed: int
    plans: list[FaultPlan]
    """One for each tenant."""
    turns: int = TURNS
    browsers: list[Browser] = field(default_factory=list)
    quiet_after: float = 0.0

    @classmethod
    def from_seed(cls, real: RealCloud, seed: int) -> "RealSeed":
        count = FAULTS_PER_TENANT[seed % 3]
        return cls(real, seed, [plan_faults(seed, number, count) for number in range(TENANTS)])

    async def run(self) -> "RealReport":
        conversations = [await self._set_up(number) for number in range(len(self.plans))]
        try:
            await self._disturb(conversations)
            await self._calm_down(conversations)
            return await self._judge()
        finally:
            for browser in self.browsers:
                await browser.close()

    async def _set_up(self, number: int) -> str:
        """Add a tenant with a key, a budget and a conversation."""
        tenant = f"chaos{self.seed}x{number}"
        token = await asyncio.to_thread(add_tenant, self.real.cloud, tenant)
        browser = Browser(self.real.cloud.url, token, tenant, self.seed)
        self.browsers.append(browser)
        return await browser.create_conversation()

    async def _disturb(self, conversations: list[str]) -> None:
        for browser, plan in zip(self.browsers, self.plans, strict=True):
            self.real.faults.plans[browser.tenant] = plan
        self.real.provider.scripts.fault_rate = PROVIDER_FAULT_RATE
        for plan in self.plans:
            plan.is_active = True
        self._working = [
            asyncio.ensure_future(browser.run_turns(conversation, self.turns))
            for browser, conversation in zip(self.browsers, conversations, strict=True)
        ]
        await asyncio.wait(self._working, timeout=DISTURBED_SECONDS)
        for plan in self.plans:
            plan.is_active = False
        self.real.provider.scripts.fault_rate = 0.0

    async def _calm_down(self, conversations: list[str]) -> None:
        begun = time.monotonic()
        async with asyncio.timeout(MAX_CALM_SECONDS):
            await asyncio.gather(*self._working)
            await self._wait_until_quiet()
        self.quiet_after = time.monotonic() - begun
        async with asyncio.timeout(MAX_CALM_SECONDS):
            await asyncio.gather(
                *(
                    browser.run_last_turn(conversation)
                    for browser, conversation in zip(self.browsers, conversations, strict=True)
                )
            )
            await self._wait_until_quiet()

    async def _wait_until_quiet(self) -> None:
        while not (self.real.faults.is_quiet and await asyncio.to_thread(self._is_quiet)):
            await asyncio.sleep(0.3)

    def _is_quiet(self) -> bool:
        """No turn of these tenants is open, and no execution runs."""
        return not any(evidence.find_open_turns(self.real.cloud)) and not evidence.find_running_executions(
            self.real.cloud
        )

    def describe_unfinished(self) -> list[str]:
        """Say what the seed waits for."""
        problems = [
            f"turn {turn.name} ({turn.bridge or 'not started'}) is not over"
            for browser in self.browsers
            for turn in browser.turns
            if not turn.is_over
        ]
        problems += [f"{pk} is open" for pk in evidence.find_open_turns(self.real.cloud)]
        problems += [f"execution {name} runs" for name in evidence.find_running_executions(self.real.cloud)]
        return problems or ["a fault is under way"]

    # the judgement

    async def _judge(self) -> "RealReport":
        problems: list[str] = []
        for browser in self.browsers:
            found = await asyncio.to_thread(self._collect, browser)
            problems += await asyncio.to_thread(judge, found)
            problems += await find_reader_differences(browser)
        faults = sum((plan.occurred for plan in self.plans), Counter[tuple[str, str]]())
        faults += Counter({(kind, "provider"): count for (_, kind), count in self._provider_faults().items()})
        turns = [turn for browser in self.browsers for turn in browser.turns]
        ends = Counter(describe_end(turn) for turn in turns)
        return RealReport(self.seed, problems, faults, len(turns), len(self._served()), ends)

    def _collect(self, browser: Browser) -> evidence.Evidence:
        cloud, tenant = self.real.cloud, browser.tenant
        tables = {name: evidence.read_tenant_table(cloud, name, tenant) for name in evidence.TABLES}
        served = [request for request in self._served() if request.turn.startswith(tenant)]
        refusals = [f"{record.status} {record.body}"[:400] for record in self.real.provider.refusals.find_refused()]
        return evidence.Evidence(
            browser.turns,
            evidence.DynamoEvidence(tables),
            evidence.S3Evidence(evidence.BucketObjects(cloud)),
            evidence.collect_workflow(cloud, evidence.list_tenant_turns(tables["bridges"])),
            evidence.ProviderEvidence(served, refusals),
            evidence.FaultEvidence(self.real.faults.plans[tenant].occurred + self._shared_faults()),
            self.quiet_after,
        )

    def _shared_faults(self) -> Counter[tuple[str, str]]:
        """Kills that ended processes of all tenants: each turn under way may have announced a request."""
        outages = sum(plan.occurred["emulator killed", "dynamodb.TransactWriteItems"] for plan in self.plans)
        return Counter({("kill after", "everything"): 2 * outages})

    def _served(self) -> list[evidence.ServedRequest]:
        prefix = f"chaos{self.seed}x"
        return [one for one in self.real.provider.scripts.served.values() if one.turn.startswith(prefix)]

    def _provider_faults(self) -> Counter[tuple[str, str]]:
        prefix = f"chaos{self.seed}x"
        faults = self.real.provider.scripts.faults
        return Counter({key: count for key, count in faults.items() if key[0].startswith(prefix)})


def describe_end(turn: SimulatedTurn) -> str:
    if turn.is_abandoned:
        return "abandoned"
    if turn.error:
        return "refused"
    event = turn.received[-1][1]
    return f"error {event.get('code')}" if event["type"] == "error" else str(event["type"])


async def find_reader_differences(browser: Browser) -> list[str]:
    """Compare what each turn's reader got with what one gets that reads it afterwards."""
    problems = []
    for turn in browser.turns:
        if turn.bridge and (again := await browser.read_again(turn)) != turn.received:
            problems.append(f"turn {turn.name}: read again it has {len(again)} events, its reader {len(turn.received)}")
    return problems


def add_tenant(cloud: LocalCloud, tenant: str) -> str:
    """Add a tenant whose model is the provider, and return its user's token."""
    resources = cloud.resources()
    signer = make_tenant(resources, tenant, issuer=f"http://127.0.0.1/{tenant}")
    caller = Caller(tenant=tenant, user="ada", capabilities=frozenset(CAPABILITIES_OF_ADA))
    credential = credential_store.create_credential(resources, caller, "anthropic", "apiKey", "chaos", "chaos")
    scope_defaults.set_default(resources, caller, "site", credential.id, MODEL)
    set_budgets(resources, caller, Budgets(tenant=BudgetLimits(monthly_usd=Decimal(100))))
    return signer.sign_token("ada", CAPABILITIES_OF_ADA)
