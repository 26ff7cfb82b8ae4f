"""A simulation: users and the whole service in one process, on an account in memory, under faults drawn from a seed.

world = World(seed=7, fault_rate=0.03, fault_budget=10)
evidence = world.run()     # some turns on a conversation under faults, then good days until everything is over
problems = judge(evidence)
"""

import functools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from typing import Any

import httpx  # noqa: F401 - importing it draws a random number, which would shift those of the first simulation
import jwt
import pytest
from jwt.api_jws import PyJWS

from fermata.agents.approval_policy import ApprovalPolicy
from fermata.agents.policy_store import set_policy
from fermata.agents.tool_sources.sub_agents import build_sub_agent_tool
from fermata.aws import observability
from fermata.conversations import conversation_store
from fermata.credentials import credential_store
from fermata.domain.use_limits import DEFAULT_CALLER_LIMITS
from fermata.drivers.transport import url_guard
from fermata.pricing import catalogue
from fermata.pricing.catalogue import PriceCatalogue, PricedModel
from fermata.pricing.token_cost import Price
from fermata.remote_tools import remote_tool_caller
from fermata.remote_tools.tool_registry import register_tool
from fermata.tools.site.toolset import SITE_TOOLSET
from fermata.tools.toolset import Toolset
from fermata.turns.sub_agents.sub_agent_limits import MAX_DEPTH
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from fermata.wire.auth.tenant import TenantLimits
from fermata.wire.auth.tenant_store import add_tenant
from tests.chaos import remote_tool_server
from tests.chaos.account_recorder import AccountRecorder, list_landed_writes, to_plain_row
from tests.chaos.approvers import Approvers
from tests.chaos.evidence import Evidence, Row
from tests.chaos.fault_rules import RULES, FaultPlan, FaultRule
from tests.chaos.habits import GOOD_DAY_HABITS, USUAL_HABITS, DayKind
from tests.chaos.page import Page
from tests.chaos.platform_invocations import PlatformInvocations
from tests.chaos.provider import SUB_AGENT_TOOL
from tests.chaos.provider_responses import HOSTS
from tests.chaos.queuers import Queuers
from tests.chaos.remote_tool_server import RemoteToolServer
from tests.chaos.scheduler import Process, Scheduler
from tests.chaos.simulated_cloud import SimulatedCloud
from tests.chaos.sub_agent_cancellers import SubAgentCancellers
from tests.chaos.turn_recorder import TurnRecorder
from tests.chaos.user_actions import UserActions
from tests.chaos.users import AUDIENCE, ISSUER, SECRET, TENANT, User
from tests.chaos.world_extension import WorldExtension

MODELS = {name: "gpt-5" if name == "openai" else "model-1" for name in HOSTS.values()}
"""By provider. OpenAI's strict fake knows which models reason."""
PROVIDERS = tuple(HOSTS.values())
MONTH_END = "2026-02-01T00:00:00+00:00"
NOON = "2026-01-15T12:00:00+00:00"
SETTINGS: tuple[dict[str, Any], ...] = ({}, {"browser_wait_seconds": 600}, {})
"""With the longer wait a request outlasts the workflow's heartbeat, so the turn is held."""
INSTATIC_EVERY = 7
"""One workspace in so many has editors that speak the Instatic dialect."""
TURN_COUNTS = (1, 2, 3, 3, 4)
LARGE_LIMIT_USD = Decimal(100)
"""Enough for everything."""
SMALL_LIMIT_USD = Decimal("0.03")
SMALL_LIMITS_USD = {"openai": 4 * SMALL_LIMIT_USD, "openrouter": 4 * SMALL_LIMIT_USD, "gemini": 2 * SMALL_LIMIT_USD}
"""Enough for one request at a time, for which more is held where models may answer at length."""
SMALL_BUDGET_EVERY = 7
"""One workspace in so many has the small one. No number of providers, so that each of them meets it."""
NARROW_LIMITS_EVERY = 13
"""One workspace in so many may run few turns at once."""
NARROW_LIMITS = TenantLimits(user_turns_at_once=1, tenant_turns_at_once=2)
RUSH_RATES = (0.05, 1.0)
"""How often several prompts begin at once: with the large budget and wide limits, and with one that is small."""
PRICE_USD = (Decimal(1), Decimal(2))
"""Of a million prompt and completion tokens, of every model that is not the workspace's own."""
DISTURBED_SECONDS = 300.0
CALM_SECONDS = 7200.0
RECOVERY_SECONDS = 400.0
"""Of a turn whose function was struck last: what a provider may be silent, two sweeps, and their grace."""
SLOW_DAY_SECONDS = 1800.0
"""What slow providers may take on a day without faults, and browsers that are always slow on any day."""
DEEP_TASKS_EVERY = 6
"""In one seed of so many, agents ask each other more often in a row than they may."""
SHORT_WAITS_EVERY = 4
SHORT_WAIT_SECONDS = 100
"""How long after its start a turn may wait for sub-agents in one seed of so many, in the place of days."""
MUCH_LATER_SECONDS = 40 * 86_400.0
"""Longer than turns are kept, and deleted conversations."""
MUCH_LATER_EVERY = 5
REPEAT_SECONDS = 20 * 3600.0
"""Shorter than idempotency keys live."""


class World:
    def __init__(
        self,
        seed: int,
        *,
        fault_rate: float = 0.0,
        fault_budget: int = 0,
        turns: int = 0,
        rules: tuple[FaultRule, ...] = RULES,
        focus: str = "",
        day: DayKind | None = None,
        policy: ApprovalPolicy | None = None,
        has_queuers: bool = False,
        has_remote_tool: bool = False,
        has_sub_agents: bool = False,
        extend: Callable[["World"], WorldExtension] = WorldExtension,
    ) -> None:
        self.seed = seed
        self.scheduler = Scheduler(seed, _choose_start(seed))
        self.faults = FaultPlan(self.scheduler.random, fault_rate, fault_budget, rules, focus)
        self._policy = policy
        self.approvers = Approvers(self)
        self.queuers = Queuers(self)
        self._has_queuers = has_queuers
        self.tool_server = RemoteToolServer(self)
        self._has_remote_tool = has_remote_tool
        self.has_sub_agents = has_sub_agents
        self._day = day or _choose_day(seed, is_good=not fault_budget)
        self.cloud = SimulatedCloud(self.scheduler, self.faults, self._day.settings, habits=self._day.habits)
        self.cloud.provider.has_sub_agents = has_sub_agents
        self.cancellers = SubAgentCancellers(self)
        if has_sub_agents and seed % DEEP_TASKS_EVERY == 5:
            self.cloud.provider.task_depth = MAX_DEPTH + 1
        self.events = PlatformInvocations(self.cloud)
        self.page = Page()
        self._has_small_budget = day.has_small_budget if day else seed % SMALL_BUDGET_EVERY == 3
        self._accounts = AccountRecorder(self.cloud.dynamodb.tables["bridges"], self._choose_limit())
        self._turns = TurnRecorder(self.cloud.dynamodb.tables["bridges"], lambda: self.scheduler.now)
        self.extension = extend(self)
        has_narrow_limits = day is None and seed % NARROW_LIMITS_EVERY == 4
        self._limits = NARROW_LIMITS if has_narrow_limits else TenantLimits()
        rush_rate = RUSH_RATES[self._has_small_budget or has_narrow_limits]
        self._rush_rate = rush_rate if self._day.habits.rush is None else self._day.habits.rush
        self._turn_count = turns or TURN_COUNTS[seed % len(TURN_COUNTS)]
        self._credentials: dict[str, str] = {}
        self.evidence = Evidence(struck_requests=self.scheduler.struck_requests, freezes=self.scheduler.freezes)
        self.much_later = Evidence()
        """Of what happened after the turns of `evidence` had expired; empty in most seeds."""

    @property
    def dialect(self) -> str:
        """What the editors of the workspace speak."""
        return self._day.dialect

    def _choose_limit(self) -> Decimal:
        if not self._has_small_budget:
            return LARGE_LIMIT_USD
        return SMALL_LIMITS_USD.get(PROVIDERS[self.seed % len(PROVIDERS)], SMALL_LIMIT_USD)

    def run(self) -> Evidence:
        """Run to the end and return what is left behind."""
        with simulated_process(self):
            try:
                self._run()
            finally:
                self.scheduler.close()
        return self.evidence

    def _run(self) -> None:
        actions = self._set_up()
        self.events.start(Process("platform"))
        begun = self.scheduler.now
        self.faults.is_active = True
        actions.start()
        if self._policy:
            self.approvers.start()
        if self.has_sub_agents and self.faults.budget:
            self.cancellers.start()
        if self._has_queuers:
            self.queuers.start(actions.conversation)
        self.extension.start(actions)
        self.scheduler.run(lambda: actions.is_over or self.scheduler.now - begun > DISTURBED_SECONDS, CALM_SECONDS)
        self.faults.is_active = False
        calm_since = self.scheduler.now
        self._run_until_quiet(actions)
        self.evidence.calm_since = max(calm_since, self.scheduler.last_landing)
        self.evidence.sees_departures = self.cloud.sees_departures
        self.evidence.is_undisturbed = not self.faults.budget
        self.evidence.seconds_to_quiet = self.scheduler.now - max(calm_since, self.scheduler.last_landing)
        self._run_epilogue(actions)
        self._collect(actions)
        if self.seed % MUCH_LATER_EVERY == 0:
            self._run_much_later(actions)

    def _run_much_later(self, actions: UserActions) -> None:
        """Go on after turns and deleted conversations have expired, of which only some rows are deleted by then."""
        self.scheduler.now += MUCH_LATER_SECONDS
        for table in self.cloud.dynamodb.tables:
            self.cloud.dynamodb.expire(table, self.scheduler.now, lambda: self.scheduler.random.random() < 0.5)
        self.cloud.s3.expire("turns/", self.scheduler.now - MUCH_LATER_SECONDS)
        self.cloud.restart()
        self.faults.budget = self.faults.injected + 3 if self.faults.rate else 0
        self.faults.is_active = True
        known = len(actions.browsers)
        self._do(actions, actions.purge)
        self.faults.is_active = False
        self._do(actions, actions.use_what_has_expired)
        self._do(actions, lambda: actions.prompt_once_more(actions.credential, actions.model, "later"))
        self.much_later.turns = [browser.turn for browser in actions.browsers[known:]]
        rows = self._read_rows("bridges")
        self.much_later.bridges = [row for row in rows if row.get("ttl", self.scheduler.now) >= self.scheduler.now]
        self.much_later.conversations = list(self._read_rows("conversations"))
        self.much_later.blobs = {key: stored.body for key, stored in self.cloud.s3.objects.items()}
        self.much_later.deleted_conversations = actions.deleted
        self.much_later.errors, self.much_later.complaints = self.cloud.errors, actions.complaints

    def _run_epilogue(self, actions: UserActions) -> None:
        """Let time pass, replace all processes, repeat everything; then prompt once more, and read the audit."""
        self.scheduler.now += REPEAT_SECONDS
        self.cloud.s3.expire("uploads/", self.scheduler.now)
        self.cloud.restart()
        self._do(actions, actions.repeat_everything)
        self._do(actions, self._raise_budget)
        provider = PROVIDERS[self.seed // 3 % len(PROVIDERS)]
        self._do(actions, lambda: actions.prompt_once_more(self._credentials[provider], MODELS[provider]))
        self._do(actions, actions.read_audit)

    def _do(self, actions: UserActions, act: Callable[[], None]) -> None:
        """Do something as a user, and go on until nothing runs any more."""
        task = self.scheduler.start(Process("user"), act, name="user")
        self.scheduler.run(lambda: task.is_over, CALM_SECONDS)
        self._run_until_quiet(actions)

    def _run_until_quiet(self, actions: UserActions) -> None:
        users = (actions, self.queuers, self.extension)
        self.scheduler.run(lambda: all(user.is_over for user in users) and self._is_quiet(), CALM_SECONDS)

    def _is_quiet(self) -> bool:
        """No execution runs, no turn is open, the ledger's stream is consumed, and nothing is on its way.

        A plan may wait for a person after its turn has ended.
        """
        return (
            all(execution.status != "RUNNING" for execution in self.cloud.step_functions.executions.values())
            and self.events.is_ledger_counted
            and not any(task.process is self.scheduler.network for task in self.scheduler.tasks)
            and all(sk.startswith("a#") for _, sk in self.cloud.dynamodb.tables["bridges"].iter_keys_in_index("open"))
            and self.extension.is_quiet
        )

    # setting up

    def _set_up(self) -> UserActions:
        prepared: list[UserActions] = []

        def set_up() -> None:
            resources = self.cloud.resources_of(self.scheduler.current.process)
            ada = User("ada").caller
            dialect = self._day.dialect
            add_tenant(
                resources,
                TENANT,
                issuer=ISSUER,
                audience=AUDIENCE,
                secret=SECRET,
                dialect=dialect,
                limits=self._limits,
            )
            price = PricedModel(price=Price(input_per_mtok=PRICE_USD[0], output_per_mtok=PRICE_USD[1]))
            prices = dict.fromkeys(MODELS.values(), price)
            catalogue.store_catalogue(resources, PriceCatalogue(refreshed_at=1, priced_models=prices))
            for provider in PROVIDERS:
                self._credentials[provider] = _create_credential(resources, ada, provider)
            provider = PROVIDERS[self.seed % len(PROVIDERS)]
            credential = self._credentials[provider]
            set_budgets(resources, ada, Budgets(tenant=BudgetLimits(monthly_usd=self._accounts.limit)))
            if self._policy:
                set_policy(resources, ada, self._policy)
            if self._has_remote_tool:
                self._add_remote_tool(resources, ada)
            self.extension.set_up(resources, credential, MODELS[provider])
            conversation = conversation_store.create_conversation(
                resources, ada, "site", None, credential, MODELS[provider]
            )
            actions = UserActions(
                self.cloud,
                self.page,
                self.seed,
                conversation.id,
                credential,
                MODELS[provider],
                self._turn_count,
                dialect,
                self._rush_rate,
            )
            prepared.append(actions)

        self.scheduler.start(Process("set-up"), set_up, name="set-up")
        self.scheduler.run(lambda: bool(prepared), 60)
        return prepared[0]

    def _add_remote_tool(self, resources: Any, caller: Any) -> None:
        registered = register_tool(resources, caller, remote_tool_server.MANIFEST, remote_tool_server.URL)
        self.tool_server.signing_secret = registered.signing_secret or ""
        self.cloud.provider.tenant_tools = (remote_tool_server.TOOL_ALIAS,)

    def _raise_budget(self) -> None:
        self._accounts.limit = LARGE_LIMIT_USD
        body = {"tenant": {"monthlyUsd": int(LARGE_LIMIT_USD)}}
        self.cloud.request("api", "PUT", "budgets", User("ada").token, body)

    # the evidence

    def _collect(self, actions: UserActions) -> None:
        evidence = self.evidence
        evidence.turns = [browser.turn for browser in actions.browsers]
        evidence.bridges, evidence.conversations, evidence.usage = (
            list(self._read_rows(name)) for name in ("bridges", "conversations", "usage")
        )
        evidence.blobs = {key: stored.body for key, stored in self.cloud.s3.objects.items()}
        evidence.served, evidence.refusals = [*self.cloud.provider.served], [*self.cloud.provider.refusals]
        evidence.page, evidence.page_changes = {**self.page.cells}, [*self.page.changes]
        evidence.audits, evidence.deleted_conversations = [*actions.audits], {*actions.deleted}
        executions = self.cloud.step_functions.executions
        evidence.executions = {name: execution.status for name, execution in executions.items()}
        evidence.execution_ends = {name: execution.ended_at for name, execution in executions.items()}
        evidence.prices = dict.fromkeys(PROVIDERS, PRICE_USD) | {"ollama": (Decimal(0), Decimal(0))}
        evidence.owners = {name: user.name for name, user in actions.conversations.items()} | self.extension.owners
        evidence.scopes = dict.fromkeys(self.extension.owners, self.extension.scope)
        evidence.child_scope = self.extension.child_scope
        evidence.ended_at = self.scheduler.now
        evidence.titles = {**actions.titles}
        evidence.interruptions = [*self.queuers.interruptions]
        evidence.seconds_allowed = (
            SLOW_DAY_SECONDS * (evidence.is_undisturbed or self._day.habits.slow_browser == 1)
            + RECOVERY_SECONDS
            + self.cloud.settings_changes.get("browser_wait_seconds", 0)
            + self.extension.patience_seconds
        )
        evidence.holds_taken = [*self._accounts.holds_taken]
        limits = self._limits.apply_to(DEFAULT_CALLER_LIMITS)
        evidence.turns_at_once = [*self._turns.turns_at_once]
        evidence.turn_limits = {"user": limits.user.turns_at_once, "tenant": limits.tenant.turns_at_once}
        evidence.landed_writes = list_landed_writes(self.cloud.dynamodb)
        evidence.errors, evidence.complaints = [*self.cloud.errors], [*actions.complaints]

    def _read_rows(self, table: str) -> Iterator[Row]:
        for item in self.cloud.dynamodb.tables[table].items.values():
            yield to_plain_row(item)


def _choose_day(seed: int, *, is_good: bool) -> DayKind:
    """Choose who uses which editors, and where they run.

    Every second workspace of Instatic's editors is on one machine, where the service sees that readers leave.
    """
    is_instatic = seed % INSTATIC_EVERY == 2
    stage = {"fermata_stage": "local"} if is_instatic and seed % 2 else {}
    return DayKind(
        settings=SETTINGS[seed % len(SETTINGS)] | stage,
        dialect="instatic" if is_instatic else "fermata",
        habits=GOOD_DAY_HABITS if is_good else USUAL_HABITS,
    )


def _choose_start(seed: int) -> float:
    """Start at noon, or in every third seed less than a minute before a month ends."""
    if seed % 3 != 1:
        return datetime.fromisoformat(NOON).timestamp()
    return datetime.fromisoformat(MONTH_END).timestamp() - random.Random(seed).uniform(2, 60)


def _create_credential(resources: Any, caller: Any, provider: str) -> str:
    has_own_url = provider in ("ollama", "openai-compatible")
    mode: Any = "baseUrl" if has_own_url else "apiKey"
    url = f"https://{provider}.example" if has_own_url else None
    return credential_store.create_credential(resources, caller, provider, mode, provider, "sk-ant-test", url).id


@contextmanager
def simulated_process(world: World) -> Iterator[None]:
    """Let ids and jitter come from the seed, and keep what functions log."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fermata.aws.clock.secrets", _SeededSecrets(world.seed))
        patch.setattr(functools.cached_property, "__get__", _get_cached_property)
        patch.setattr(jwt, "decode", _decode_token)
        patch.setattr(PyJWS, "_decode_base64url_segment", staticmethod(_decode_part_of_token))
        random.seed(world.seed)
        patch.setattr(observability, "log_exception", world.cloud.note_logged_exception)
        patch.setattr(remote_tool_caller, "open_guarded_connection", world.tool_server.open_connection)
        patch.setattr(url_guard, "_resolve", lambda *_: ("93.184.216.34",))
        world.extension.patch(patch)
        if world.has_sub_agents:
            tool = build_sub_agent_tool("site", "site", name=SUB_AGENT_TOOL)
            toolset = Toolset("site", (*SITE_TOOLSET.tools, tool))
            patch.setattr("fermata.tools.site.toolset.SITE_TOOLSET", toolset)
            if world.seed % SHORT_WAITS_EVERY == 2:
                kept = world.cloud.settings.turn_lifetime_seconds - SHORT_WAIT_SECONDS
                patch.setattr("fermata.turns.pause.TURN_RETENTION_SECONDS", kept)
        for name in ("log_event", "log_warning", "log_audit_event", "emit_metrics"):
            patch.setattr(observability, name, lambda *_, **__: None)
        yield


_decode_part_of_token = functools.lru_cache(4096)(PyJWS._decode_base64url_segment)
"""A few users send the same tokens again and again, and PyJWT looks at each character."""


_decode_with_checks = jwt.decode


def _decode_token(token: str, key: Any = "", **checks: Any) -> dict[str, Any]:
    """Decode and check a token as PyJWT does, once for each key and kind of check (decision 0503)."""
    place = token, key, repr(checks)
    if place not in _decoded_tokens:
        _decoded_tokens[place] = _decode_with_checks(token, key, **checks)
    return {**_decoded_tokens[place]}


_decoded_tokens: dict[tuple[str, Any, str], dict[str, Any]] = {}


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
