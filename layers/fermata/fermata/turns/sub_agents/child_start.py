"""Build the turn of a sub-agent, and the writes by which it starts within the commit of the turn that asks it."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from fermata.agents.agent import Agent
from fermata.agents.registry import open_agent
from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import Item, Put, Write
from fermata.aws.resources import Resources
from fermata.conversations import message_store
from fermata.credentials.model_choice import ModelChoice
from fermata.domain.agent_ids import read_agent_id
from fermata.domain.blocks import Block, TextBlock
from fermata.domain.caller import Caller
from fermata.domain.conversation import build_child_conversation_id
from fermata.domain.errors import ApiError
from fermata.domain.events import BridgeReadyEvent
from fermata.domain.json_shortening import shorten_text
from fermata.domain.messages import Message
from fermata.domain.page_context import NO_AGENT_CONTEXT, AgentContext
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.registry import get_model_traits
from fermata.hosts.host_record import build_host_key, is_registered_host
from fermata.remote_tools.pinned_tools import pin_remote_tools
from fermata.tools.tool import Tool
from fermata.tools.tool_names import ToolNaming
from fermata.turns.mcp_pin import pin_mcp_tools
from fermata.turns.offered_tools import select_offered_tools
from fermata.turns.round.turn_context import TurnContext
from fermata.turns.round_call import RoundCall
from fermata.turns.start.build_turn import MAX_SITUATION_CHARS, NO_BROWSER_TOOLS_NOTE, count_max_rounds
from fermata.turns.start.prompt_space import PromptSpace, choose_prompt_space
from fermata.turns.sub_agents.task_and_answer import build_task_prompt
from fermata.turns.turn import Turn, TurnParent, turn_to_item
from fermata.turns.turn_log import LogEntry, log_entry_to_item
from fermata.turns.turn_state_from_log import TurnState

if TYPE_CHECKING:
    from fermata.mcp_sources.tool_listing import ListedSources


class SubAgentRefused(Exception):
    """The sub-agent cannot be asked. The message is for the model."""


@value_dataclass(frozen=True)
class ChildStart:
    """The turn of a sub-agent that is about to start."""

    turn: Turn
    writes: tuple[Write, ...]


@value_dataclass(frozen=True)
class _ChildAgent:
    agent: Agent
    context: AgentContext
    resolved: dict[str, object]


def build_child_start(
    context: TurnContext, call: RoundCall, tool: Tool, allowance: int, known_tools: "dict[str, ListedSources]"
) -> ChildStart:
    """Return the turn that will answer a call. It inherits the user, rights, policy and budget of the turn that asks.

    It has no editor: its clients would have to follow its own bridge (decision 0371).

    Args:
        context: The invocation of the turn that asks.
        call: The call.
        tool: The tool of the call.
        allowance: How many turns of sub-agents it may start in its turn.
        known_tools: What MCP servers have listed for sub-agents that start with it, by their agents.

    Raises:
        SubAgentRefused: There is no such agent, or it has no model.
    """
    resources, parent = context.resources, context.turn
    scope, _, version = tool.sub_agent.partition("@")
    child = _open_agent(resources, parent, scope, version)
    choice = _choose_model(resources, parent, child.agent)
    space = _choose_space(resources, parent, child.agent)
    turn_id = new_id()
    content = (TextBlock(text=build_task_prompt(call.input)),)
    turn = Turn(
        id=turn_id,
        tenant=parent.tenant,
        user=parent.user,
        scope=scope,
        agent=child.agent.reference,
        agent_context=child.context,
        agent_properties=child.resolved,
        parent=TurnParent(turn=parent.id, effect_key=call.effect_key, depth=parent.depth + 1, allowance=allowance),
        conversation=build_child_conversation_id(parent.conversation, turn_id),
        provider=choice.provider,
        model=choice.model,
        credential=choice.credential_id,
        credential_version=choice.version,
        capabilities=parent.capabilities,
        dialect="fermata",
        policy=parent.policy,
        known_tools=parent.known_tools,
        withheld_tools=(*_list_withheld_tools(context, child.agent), *space.withheld),
        has_browser_tools=False,
        runs_confirmed_tools=parent.runs_confirmed_tools,
        remote_tools=_pin_remote_tools(resources, parent, child.agent, scope),
        sealed_authorization=parent.sealed_authorization,
        prompt_version=parent.prompt_version,
        space=space.name,
        situation=_build_situation(context, child.agent, space),
        max_rounds=count_max_rounds(resources.settings.max_rounds, child.agent),
        thinking_tokens=parent.thinking_tokens,
        has_budget=parent.has_tool_budget and not get_model_traits(choice.provider).are_free,
        has_tool_budget=parent.has_tool_budget,
        started_ms=int(resources.clock.time() * 1000),
        expires=parent.expires,
    )
    # A start may be built again after a lost race, so no session is left open.
    turn = pin_mcp_tools(resources, turn, child.agent, keeps_sessions=False, known=known_tools)
    turn = turn.model_copy(update={"offered_tools": select_offered_tools(resources, turn, content)})
    return ChildStart(turn, _build_start_writes(context, turn, content))


def _open_agent(resources: Resources, parent: Turn, scope: str, version: str) -> _ChildAgent:
    agent_id = read_agent_id(scope)
    if not agent_id:
        return _ChildAgent(open_agent(scope), NO_AGENT_CONTEXT, {})
    # imported here because most sub-agents are looked up in a process that knows them already
    from fermata.agents.definitions.definition_store import load_definition
    from fermata.agents.definitions.resolve_operators import resolve_operators

    caller = Caller(tenant=parent.tenant, user=parent.user, capabilities=frozenset(parent.capabilities))
    try:
        definition = load_definition(resources, parent.tenant, f"{agent_id}@{version}")
        written = {name: definition.properties[name] for name in definition.dynamic_properties}
        resolved = resolve_operators(written, parent.agent_context, caller)
        known = {name: value for name, value in resolved.items() if value is not None}
        load = partial(load_definition, resources)
        agent = open_agent(definition.reference, tenant=parent.tenant, definitions=load, resolved=known)
    except (LookupError, ValueError) as error:
        raise SubAgentRefused(f"The agent {agent_id} cannot be asked now, so nothing was done.") from error
    return _ChildAgent(agent, parent.agent_context, known)


def _choose_model(resources: Resources, parent: Turn, agent: Agent) -> ModelChoice:
    """Return the model of an agent's own connection, or that of the turn that asks."""
    if not agent.connection:
        return ModelChoice(
            credential_id=parent.credential,
            version=parent.credential_version,
            provider=parent.provider,
            model=parent.model,
        )
    from fermata.agents.definitions.configured_agent import ConfiguredAgent
    from fermata.turns.agent_model_connection import choose_agent_model  # built-in agents have no connection

    assert isinstance(agent, ConfiguredAgent)
    try:
        return choose_agent_model(resources, parent.tenant, agent)
    except ApiError as error:
        raise SubAgentRefused(f"The agent {agent.id} has no model that can be asked: {error.message}") from error


def _list_withheld_tools(context: TurnContext, agent: Agent) -> tuple[str, ...]:
    toolset = agent.get_toolset()
    without_host = toolset.list_tools_without_host(None)
    if without_host:
        host = context.resources.tables.get_item_by_key(build_host_key(context.resources, context.turn.tenant))
        without_host = () if is_registered_host(host) else toolset.list_tools_without_host(context.load_snapshot())
    return (*without_host, *toolset.list_browser_tools())


def _pin_remote_tools(resources: Resources, parent: Turn, agent: Agent, scope: str) -> tuple[str, ...]:
    if agent.connection:  # the tools of a tenant's own agent are those that its definition names
        return ()
    return pin_remote_tools(resources, parent.tenant, scope, resources.tables.get_item_by_key)


def _choose_space(resources: Resources, parent: Turn, agent: Agent) -> PromptSpace:
    """Return the space of the turn that asks, for an agent that works in one."""
    caller = Caller(tenant=parent.tenant, user=parent.user, capabilities=frozenset(parent.capabilities))
    try:
        return choose_prompt_space(resources, caller, agent, "", parent.space)
    except ApiError as error:
        raise SubAgentRefused(f"The agent {agent.id} cannot be asked now: {error.message}") from error


def _build_situation(context: TurnContext, agent: Agent, space: PromptSpace) -> str:
    situation = agent.build_situation(context.load_snapshot() if agent.situation else None, ToolNaming.CANONICAL)
    if space.situation:
        situation = f"{space.situation}\n{situation}".strip()
    note = f"{NO_BROWSER_TOOLS_NOTE}\n\n" if agent.get_toolset().list_browser_tools() else ""
    return shorten_text(f"{note}{situation}".rstrip(), MAX_SITUATION_CHARS)


def _build_start_writes(context: TurnContext, turn: Turn, content: Sequence[Block]) -> tuple[Write, ...]:
    """Build START of a sub-agent: its turn, the first entry of its log, and the first message of its conversation."""
    resources, parent_state = context.resources, context.log.state
    state = TurnState(
        next_position=1,
        snapshot_key=parent_state.snapshot_key,
        revision=parent_state.revision,
        has_webhooks=parent_state.has_webhooks,
    )
    log_entry = LogEntry(1, 1, (BridgeReadyEvent(bridge_id=turn.id),), state, new_id(16), turn.started_ms)
    now = resources.clock.now_iso()
    prompt = Message(position=0, role="user", content=tuple(content), turn=turn.id, created_at=now)
    bridges = resources.settings.bridges_table
    return (
        Put(bridges, turn_to_item(turn), if_absent=True),
        Put(bridges, log_entry_to_item(resources, turn.partition, log_entry), if_absent=True),
        Put(resources.settings.conversations_table, _build_meta(turn, now), if_absent=True),
        message_store.build_message_put(resources, turn.tenant, turn.conversation, prompt),
    )


def _build_meta(turn: Turn, now: str) -> Item:
    """Build the row of the sub-agent's part of the conversation. It is in no index, so that no list shows it."""
    return {
        "pk": message_store.conversation_partition(turn.tenant, turn.conversation),
        "sk": message_store.build_meta_sort_key(turn.conversation),
        "v": 1,
        "turn": turn.id,
        "claim": turn.id,
        "next_position": 1,
        "created_at": now,
    }
