"""Run a turn with its sub-agents: every turn has its own script, and a workflow that runs until it waits.

family = Family(stage)
family.start("Ask both")                       # a turn of the site's agent, which may ask content, data and site
family.script("site", reply_with_calls(ask("data", "Count")), "Three.")
family.script("data", "There are three.")
family.run()
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fermata.agents.data.agent import DATA_AGENT
from fermata.agents.tool_sources.sub_agents import build_sub_agent_tool
from fermata.domain.blocks import ToolCallBlock
from fermata.domain.events import Event, SubAgentStartedEvent, TerminalEvent, UsageEvent
from fermata.domain.model_io import ModelRequest
from fermata.tools.content.toolset import CONTENT_TOOLSET
from fermata.tools.site.toolset import SITE_TOOLSET
from fermata.tools.toolset import Toolset
from fermata.turns.round.invocation import Invocation, build_epoch
from fermata.turns.round.run_turn_steps import run_turn_steps
from fermata.turns.turn import Turn, load_turn
from fermata.turns.turn_log import read_entries_from, read_last_entry
from tests.unit.turns.stage import Stage, reply_with_text, tool_call_block

MARKS = {"site": "visual website editor", "content": "content workspace", "data": "data area"}


def ask(agent: str, task: str, **arguments: Any) -> ToolCallBlock:
    return tool_call_block(f"ask_{agent}", task=task, **arguments)


@dataclass
class DriverByAgent:
    """Answers each request by the script of the agent whose prompt it has."""

    provider: str = "anthropic"
    scripts: dict[str, deque[list[Any]]] = field(default_factory=lambda: defaultdict(deque))
    requests: list[tuple[str, ModelRequest]] = field(default_factory=list)

    def stream(self, request: ModelRequest, connection: Any, endpoint: Any) -> Iterator[Any]:
        agent = next(name for name, mark in MARKS.items() if mark in request.system)
        self.requests.append((agent, request))
        for step in self.scripts[agent].popleft():
            if isinstance(step, BaseException):
                raise step
            if callable(step):
                step()
            else:
                yield step


class Family:
    """A turn and the turns of its sub-agents."""

    def __init__(self, stage: Stage, monkeypatch: Any) -> None:
        self.stage = stage
        self.resources = stage.resources
        self.driver = DriverByAgent()
        monkeypatch.setattr(stage, "driver", self.driver)
        tools = tuple(build_sub_agent_tool(one, one, name=f"ask_{one}") for one in MARKS)
        monkeypatch.setattr("fermata.tools.site.toolset.SITE_TOOLSET", Toolset("site", (*SITE_TOOLSET.tools, *tools)))
        monkeypatch.setattr(
            "fermata.tools.content.toolset.CONTENT_TOOLSET", Toolset("content", (*CONTENT_TOOLSET.tools, *tools))
        )
        monkeypatch.setitem(DATA_AGENT.__dict__, "_merged_toolset", Toolset("data", tools))
        self._tokens: dict[str, str] = {}
        self.transitions: dict[str, int] = defaultdict(int)

    def start(self, text: str = "Do something", **members: Any) -> Turn:
        return self.stage.start_turn(text, **members)

    def script(self, agent: str, *replies: Any) -> None:
        self.driver.scripts[agent] += [
            reply_with_text(reply) if isinstance(reply, str) else list(reply) for reply in replies
        ]

    def children(self, turn: Turn | None = None) -> list[Turn]:
        started = [event for event in self.events(turn) if isinstance(event, SubAgentStartedEvent)]
        return [self.load(event.bridge_id) for event in started]

    def load(self, turn_id: str) -> Turn:
        turn = load_turn(self.resources, self.stage.caller.tenant, turn_id)
        assert turn is not None
        return turn

    def events(self, turn: Turn | None = None) -> list[Event]:
        entries = read_entries_from(self.resources, (turn or self.stage.turn).pk, 1)
        return [event for entry in entries for event in entry.events]

    def end(self, turn: Turn | None = None) -> TerminalEvent:
        terminals = [event for event in self.events(turn) if isinstance(event, TerminalEvent)]
        assert len(terminals) == 1
        return terminals[0]

    def usage(self, turn: Turn | None = None) -> UsageEvent:
        return next(event for event in self.events(turn) if isinstance(event, UsageEvent))

    def is_over(self, turn: Turn) -> bool:
        last = read_last_entry(self.resources, turn.pk)
        return last is not None and last.state.phase == "ended"

    def run(self, *turns: Turn) -> None:
        """Run every execution that was started, until nothing happens any more."""
        workflow = self.stage.workflow
        while True:
            runnable = [key for key in workflow.started if self._is_runnable(key)]
            if not runnable:
                return
            for turn_id, n in runnable:
                self.step(turn_id, n)

    def _is_runnable(self, key: tuple[str, int]) -> bool:
        token = self._tokens.get(key[0])
        if token is None:
            return True
        output = self.stage.workflow.outputs.get(token)
        return output is not None and output["next"] != "finish"

    def step(self, turn_id: str, n: int = 1, *, seconds: float = 900) -> Invocation:
        """Enter the next state of an execution, as the workflow does."""
        output = self.stage.workflow.outputs.get(self._tokens.get(turn_id, ""), {"next": "round", "hint": None})
        return self.invoke(turn_id, n, holds=output["next"] == "hold", hint=output["hint"], seconds=seconds)

    def time_out(self, turn_id: str, n: int = 1) -> Invocation:
        """Let the heartbeat of the waiting state run out."""
        self.stage.workflow.open_tokens.discard(self._tokens[turn_id])
        return self.invoke(turn_id, n)

    def invoke(
        self, turn_id: str, n: int = 1, *, holds: bool = False, hint: Any = None, seconds: float = 900
    ) -> Invocation:
        stage = self.stage
        token = f"token-{next(stage.tokens)}"
        stage.workflow.open_tokens.add(token)
        self._tokens[turn_id] = token
        self.transitions[turn_id] += 1
        invocation = Invocation(
            tenant=stage.caller.tenant,
            turn=turn_id,
            execution_number=n,
            token=token,
            epoch=build_epoch(n, stage.next_entered_at(), 0),
            owner=f"owner of {token}",
            remaining_seconds=lambda: seconds,
            hint=hint,
            is_hold=holds,
        )
        run_turn_steps(stage.resources, invocation, None if holds else stage.connection)
        return invocation
