"""Users who ask agents that their workspace defines in YAML: with tools of an MCP server, and with another agent."""

import re
from functools import partial
from typing import TYPE_CHECKING

import pytest
import yaml

from fermata.agents.definitions.agent_definition import AgentDefinition
from fermata.agents.definitions.compile_definitions import compile_definitions
from fermata.agents.definitions.definition_problems import SourceDocument
from fermata.agents.definitions.definition_store import replace_agents
from fermata.aws.resources import Resources
from tests.chaos.browser import Browser
from tests.chaos.evidence import ClientTurn
from tests.chaos.mcp_server import READING_TOOL, URL, WRITING_TOOL, SimulatedMcpServer
from tests.chaos.provider import make_prompt
from tests.chaos.scheduler import Process
from tests.chaos.users import User
from tests.chaos.world_extension import WorldExtension

if TYPE_CHECKING:
    from tests.chaos.user_actions import UserActions
    from tests.chaos.world import World

AGENTS = f"""
agents:
  - id: boss
    type: ClaudeAgent
    connectionId: claude
    properties: {{model: model-1, instructions: You lead. Release RELEASE.}}
    mcp: [{{url: "{URL}"}}]
    agents: [{{agentId: helper, name: ask_helper}}]
  - id: helper
    type: ClaudeAgent
    connectionId: claude
    properties: {{model: model-1, instructions: You help. Release RELEASE.}}
    mcp: [{{url: "{URL}"}}]
connections:
  - {{id: claude, type: Anthropic, properties: {{credential: anthropic}}}}
"""
SCOPE, CHILD_SCOPE = "agent:boss", "agent:helper"
TURNS = 3
CANCEL_RATE = 0.25
FORGETTING_RATE = 0.7
"""How likely the server forgets its sessions at some moment of a turn, on days with faults."""
FORGETTING_SECONDS = (15.0, 40.0)
"""Longer than a call needs that begins anew in another session."""
RELEASE_SECONDS = (2.0, 60.0)
"""When the agents are pushed anew."""


class ToolSourceUsers(WorldExtension):
    """One who prompts and may cancel, whoever pushes the next release of the agents, and the server of their tools."""

    scope = SCOPE
    child_scope = CHILD_SCOPE

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self.server = SimulatedMcpServer(world, is_stable=not world.faults.budget)
        self.releases: dict[str, str] = {}
        """Each version of the agent that asks, with the version of the other one that it was compiled with."""

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        # Only the simulations that ask an MCP server import its package, which takes long.
        from fermata.mcp_sources import cancellable_run, end_sessions, mcp_session

        patch.setattr(cancellable_run, "CancellableRun", self.server.make_run)
        patch.setattr(mcp_session, "open_mcp_session", self.server.open_session)
        patch.setattr(end_sessions, "open_guarded_connection", self.server.open_connection)

    def set_up(self, resources: Resources, credential: str, model: str) -> None:
        self._push(resources, 1)

    def _push(self, resources: Resources, release: int) -> None:
        definitions = compile_release(release)
        self.releases[definitions["boss"].reference] = definitions["helper"].reference
        replace_agents(resources, User("ada").caller, definitions)

    def start(self, actions: "UserActions") -> None:
        self._actions = actions
        self._begin(self._work)
        self._begin(self._release)
        if not self.server.is_stable:
            self.world.scheduler.start(Process("mcp-server"), self._forget_sessions, name="mcp-server")

    def _work(self) -> None:
        scheduler, actions = self.world.scheduler, self._actions
        created = actions._ask("api", "POST", "conversations", {"scope": SCOPE})
        if not created.is_success:
            return
        self.conversation = created.body["conversation"]["id"]
        for number in range(TURNS):
            name = f"m{number}"
            self._plan_calls(name)
            content = [{"kind": "text", "text": make_prompt(name, scheduler.random.randint(2, 3), self.world.seed)}]
            body = {"conversationId": self.conversation, "content": content}
            turn = ClientTurn(name, "prompt", self.conversation, dialect=self.world.dialect)
            browser = Browser(self.world.cloud, self.world.page, User("ada"), turn, body, f"chat/{SCOPE}")
            actions.browsers.append(browser)
            if scheduler.random.random() < CANCEL_RATE:
                self._begin(partial(browser.cancel, scheduler.random.uniform(0.0, 20.0)))
            browser.run()

    def _plan_calls(self, name: str) -> None:
        """Say what the models of a turn and of its sub-agents call."""
        draw, planned = self.world.scheduler.random, self.world.cloud.provider.planned_calls
        tools = draw.choices((READING_TOOL, WRITING_TOOL), k=draw.randint(1, 3))
        planned[name] = [(tool, {"sku": f"{name}-{index}"}) for index, tool in enumerate(tools)]
        for index in range(draw.randint(0, 2)):
            task = f"{name}h{index}"
            planned[task] = [(draw.choice((READING_TOOL, WRITING_TOOL)), {"sku": task})]
            asked = {"task": f"[task {task} rounds 2 seed {self.world.seed}] Do it."}
            planned[name].insert(draw.randint(0, len(planned[name])), ("ask_helper", asked))

    def _release(self) -> None:
        """Push the next release of both agents while turns run, until that is answered."""
        scheduler = self.world.scheduler
        scheduler.switch("release", scheduler.random.uniform(*RELEASE_SECONDS))
        for _ in range(8):
            try:
                self.world.cloud.call("credentials", lambda process: self._push(process.resources, 2), 29.0)  # type: ignore[arg-type]
            except Exception:  # noqa: BLE001 (whoever pushes does it again)
                scheduler.switch("release", 3.0)
            else:
                return

    def _forget_sessions(self) -> None:
        while not self.is_over:
            self.world.scheduler.switch("mcp server", self.world.scheduler.random.uniform(*FORGETTING_SECONDS))
            if self.world.scheduler.random.random() < FORGETTING_RATE:
                self.server.forget_sessions()


def compile_release(release: int) -> dict[str, AgentDefinition]:
    """Return both agents as a release has them, compiled from their YAML."""
    content = yaml.safe_load(re.sub("RELEASE", str(release), AGENTS))
    compiled = compile_definitions([SourceDocument("agents.yaml", content)])
    assert not compiled.errors, compiled.errors
    return dict(compiled.definitions)
