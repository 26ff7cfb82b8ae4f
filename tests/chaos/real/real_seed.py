"""One seed on the local cloud: some tenants at once, each with users, a fault plan and a conversation.

async with open_real_cloud(directory) as real:
    report = await RealSeed.from_seed(real, 7).run()
"""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

from fermata.credentials import credential_store, scope_defaults
from fermata.domain.caller import Caller
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from local.cloud import LocalCloud
from local.seed import CAPABILITIES, EDITOR_CAPABILITIES, WIDE_LIMITS
from tests.chaos.campaign import RunReport
from tests.chaos.evidence import ClientTurn, Evidence
from tests.chaos.judge import judge
from tests.chaos.real.collected_evidence import (
    BucketObjects,
    find_open_turns,
    find_running_executions,
    find_unexpected_errors,
    read_rows,
)
from tests.chaos.real.fault_plan import FaultPlan, plan_faults
from tests.chaos.real.real_cloud import RealCloud
from tests.chaos.real.user_actions import RealUserActions
from tests.tenant_tokens import make_tenant

TENANTS = 3
FAULTS_PER_TENANT = (4, 8, 14)
"""Of a seed. Few faults find what many hide."""
TURNS = 2
PROVIDER_FAULT_RATE = 0.08
DISTURBED_SECONDS = 60.0
MAX_CALM_SECONDS = 240.0
"""When waiting for the end of everything is given up: recovery takes some heartbeats, on a busy machine longer."""
MAX_COUNTING_SECONDS = 30.0
"""How long an audit may take to show the whole ledger."""
MODEL = "fermata-demo"
CAPABILITIES_OF_ADA = (*CAPABILITIES, *EDITOR_CAPABILITIES)


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
    user_actions: list[RealUserActions] = field(default_factory=list)
    seconds_to_quiet: float = 0.0
    _begun_at: str = ""

    @classmethod
    def from_seed(cls, real: RealCloud, seed: int) -> "RealSeed":
        count = FAULTS_PER_TENANT[seed % 3]
        return cls(real, seed, [plan_faults(seed, number, count) for number in range(TENANTS)])

    async def run(self) -> RealReport:
        self._begun_at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        try:
            for number, plan in enumerate(self.plans):
                await self._set_up(f"chaos{self.seed}x{number}", plan)
            await self._disturb()
            await self._calm_down()
            return await self._judge()
        finally:
            for actions in self.user_actions:
                await actions.close()

    async def _set_up(self, tenant: str, plan: FaultPlan) -> None:
        """Add a tenant with a key, a budget and a conversation."""
        token = await asyncio.to_thread(add_tenant, self.real.cloud, tenant)
        actions = RealUserActions(self.real.cloud.url, token, tenant, self.seed)
        self.user_actions.append(actions)
        self.real.faults.plans[tenant] = plan
        await actions.create_conversation()

    async def _disturb(self) -> None:
        self.real.provider.scripts.fault_rate = PROVIDER_FAULT_RATE
        for plan in self.plans:
            plan.is_active = True
        self._working = [asyncio.ensure_future(actions.work(self.turns)) for actions in self.user_actions]
        await asyncio.wait(self._working, timeout=DISTURBED_SECONDS)
        for plan in self.plans:
            plan.is_active = False
        self.real.provider.scripts.fault_rate = 0.0

    async def _calm_down(self) -> None:
        """Wait until everything is over, repeat every request, and prompt once more."""
        begun = time.monotonic()
        async with asyncio.timeout(MAX_CALM_SECONDS):
            await asyncio.gather(*self._working)
            await self._wait_until_quiet()
        self.seconds_to_quiet = time.monotonic() - begun
        async with asyncio.timeout(MAX_CALM_SECONDS):
            await asyncio.gather(*(actions.prompt_once_more() for actions in self.user_actions))
            await asyncio.gather(*(actions.repeat_everything() for actions in self.user_actions))
            await self._wait_until_quiet()

    async def _wait_until_quiet(self) -> None:
        while not (self.real.faults.is_quiet and await asyncio.to_thread(self._is_quiet)):
            await asyncio.sleep(0.3)

    def _is_quiet(self) -> bool:
        """No turn is open, and no execution runs."""
        return not find_open_turns(self.real.cloud) and not find_running_executions(self.real.cloud)

    def describe_unfinished(self) -> list[str]:
        """Say what the seed waits for."""
        turns = [browser.turn for actions in self.user_actions for browser in actions.browsers if not browser.is_over]
        problems = [f"turn {turn.name} ({turn.bridge or 'not started'}) is not over" for turn in turns]
        problems += [f"{pk} is open" for pk in find_open_turns(self.real.cloud)]
        problems += [f"execution {name} runs" for name in find_running_executions(self.real.cloud)]
        return problems or ["a fault is under way"]

    # the judgement

    async def _judge(self) -> RealReport:
        problems = await asyncio.to_thread(find_unexpected_errors, self.real.cloud, self._begun_at)
        for actions in self.user_actions:
            evidence = await asyncio.to_thread(self._collect, actions)
            await wait_for_audit(actions, evidence)
            problems += await asyncio.to_thread(judge, evidence)
        tenants = tuple(actions.tenant for actions in self.user_actions)
        faults = sum((plan.occurred for plan in self.plans), Counter[tuple[str, str]]())
        faults += self.real.provider.count_faults(tenants)
        turns = [turn for actions in self.user_actions for turn in actions.turns]
        served = sum(len(self.real.provider.list_served(tenant)) for tenant in tenants)
        ends = Counter(describe_end(turn) for turn in turns)
        return RealReport(self.seed, problems, faults, len(turns), served, ends=ends)

    def _collect(self, actions: RealUserActions) -> Evidence:
        cloud, tenant = self.real.cloud, actions.tenant
        bridges, conversations, usage = (
            read_rows(cloud, table, tenant) for table in ("bridges", "conversations", "usage")
        )
        return Evidence(
            turns=actions.turns,
            bridges=bridges,
            conversations=conversations,
            usage=usage,
            blobs=BucketObjects(cloud),
            served=self.real.provider.list_served(tenant),
            refusals=self.real.provider.list_refused(),
            page=actions.page.cells,
            page_changes=actions.page.changes,
            struck_requests=self.real.faults.struck_requests,
            audits=actions.audits,
            executions=dict.fromkeys(find_running_executions(cloud), "RUNNING"),
            seconds_to_quiet=self.seconds_to_quiet,
            complaints=actions.complaints,
        )


async def wait_for_audit(actions: RealUserActions, evidence: Evidence) -> None:
    """Read audits until one shows the ledger; the judge compares the last one."""
    rows = [row for row in evidence.usage if "#turn#" in row["pk"] and row["sk"].startswith("r0")]
    total = int(sum(row["prompt"] + row["completion"] for row in rows))
    deadline = time.monotonic() + MAX_COUNTING_SECONDS
    while await actions.read_audit() != total and time.monotonic() < deadline:
        await asyncio.sleep(0.5)


def describe_end(turn: ClientTurn) -> str:
    if turn.is_abandoned or turn.error:
        return "abandoned" if turn.is_abandoned else "refused"
    event = turn.received[-1][1]
    return f"error {event.get('code')}" if event["type"] == "error" else str(event["type"])


def add_tenant(cloud: LocalCloud, tenant: str) -> str:
    """Add a tenant whose model is the provider, and return its user's token."""
    resources = cloud.resources()
    signer = make_tenant(resources, tenant, issuer=f"http://127.0.0.1/{tenant}", limits=WIDE_LIMITS)
    caller = Caller(tenant=tenant, user="ada", capabilities=frozenset(CAPABILITIES_OF_ADA))
    credential = credential_store.create_credential(resources, caller, "anthropic", "apiKey", "chaos", "chaos")
    scope_defaults.set_default(resources, caller, "site", credential.id, MODEL)
    set_budgets(resources, caller, Budgets(tenant=BudgetLimits(monthly_usd=Decimal(100))))
    return signer.sign_token("ada", CAPABILITIES_OF_ADA)
