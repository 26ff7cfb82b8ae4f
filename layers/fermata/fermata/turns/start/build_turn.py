"""Build the turn of a prompt: everything that it keeps from its start until its end."""

from typing import Any

from fermata.agents.agent import Agent
from fermata.agents.page_context import build_page_context
from fermata.agents.policy_store import build_policy_key, policy_from_item
from fermata.aws.resources import Resources
from fermata.credentials.model_choice import ModelChoice
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import InvalidRequest
from fermata.domain.json_shortening import shorten_text
from fermata.domain.page_context import AgentContext
from fermata.domain.untrusted_text import escape_frames_in_text
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.registry import get_model_traits
from fermata.hosts.host_record import build_host_key, is_registered_host
from fermata.remote_tools.caller_authorization import seal_caller_authorization
from fermata.remote_tools.pinned_tools import list_tools_of_scope
from fermata.tools.tool_names import ToolNaming
from fermata.tools.toolset import Toolset
from fermata.turns.approvals.decision_commit import read_known_tools
from fermata.turns.approvals.decision_trail import build_known_tools_key
from fermata.turns.mcp_pin import pin_mcp_tools
from fermata.turns.offered_tools import select_offered_tools
from fermata.turns.start.prefetched_rows import PrefetchedRows
from fermata.turns.start.prompt_agent import PromptAgent
from fermata.turns.start.prompt_space import PromptSpace
from fermata.turns.start.turn_prompt import TurnPrompt
from fermata.turns.turn import Turn
from fermata.usage.budgets.budget_limits import get_budgets

SYSTEM_PROMPT_VERSION = "1"
DEFAULT_STEP_LIMIT = 10
"""Of an agent of a tenant that does not say how many model requests its turns may make."""
NO_BROWSER_TOOLS_NOTE = (
    "No editor is connected in this turn: you cannot read the document beyond what is said here, and cannot change it. "
    "Answer in words, and say so where a change is asked for."
)
OWN_OUTPUT_MESSAGE = "The answers of this agent have a form of their own. Leave the format out of the request."
MAX_SITUATION_CHARS = 24_000
"""The situation is part of the turn's row and of every request. The model reads more of the editor's state by tools."""


@value_dataclass(frozen=True)
class TurnBuilder:
    """Builds the turn of one prompt. Rows come from `rows`, which has read them together."""

    resources: Resources
    caller: Caller
    prompt: TurnPrompt
    turn_id: str
    rows: PrefetchedRows

    def build_turn(self, opened: PromptAgent, chosen_model: ModelChoice, situation: str, space: PromptSpace) -> Turn:
        """Build the turn, with the policy and the tools that it pins.

        Args:
            opened: The agent that the prompt names.
            chosen_model: The model, and the credential that pays for it.
            situation: The part of the prompt that changes from turn to turn, from `build_situation`.
            space: The content space that the turn works in.
        """
        agent = opened.agent
        if self.prompt.output and agent.settings.output:
            raise InvalidRequest(OWN_OUTPUT_MESSAGE)
        withheld_tools = self._list_withheld_tools(agent)
        is_budgeted = self._is_budgeted()
        is_free = self.prompt.direct_call is not None or get_model_traits(chosen_model.provider).are_free
        turn = self._build_row(agent, chosen_model, situation).model_copy(
            update={
                "withheld_tools": (*withheld_tools, *space.withheld),
                "has_budget": is_budgeted and not is_free,
                "has_tool_budget": is_budgeted,
                "agent_context": opened.context,
                "agent_properties": opened.resolved,
                "space": space.name,
            }
        )
        turn = self._pin_policy(turn, agent)
        if (
            not agent.connection and self.caller.has_remote_tools
        ):  # the tools of a tenant's own agent are those that its definition names
            turn = self._pin_remote_tools(turn)
        turn = pin_mcp_tools(self.resources, turn, agent)
        return turn.model_copy(
            update={"offered_tools": select_offered_tools(self.resources, turn, self.prompt.content)}
        )

    def _build_row(self, agent: Agent, chosen_model: ModelChoice, situation: str) -> Turn:
        prompt, caller, settings, now = self.prompt, self.caller, self.resources.settings, self.resources.clock.time()
        return Turn(
            id=self.turn_id,
            tenant=caller.tenant,
            user=caller.user,
            scope=prompt.scope,
            agent=agent.reference,
            conversation=prompt.conversation_id,
            provider=chosen_model.provider,
            model=chosen_model.model,
            credential=chosen_model.credential_id,
            credential_version=chosen_model.version,
            capabilities=tuple(sorted(caller.capabilities - {Capability.APPROVE})),  # no tool may decide for its user
            dialect=prompt.dialect,
            tool_names=prompt.tool_names,
            generation=prompt.generation,
            prompt_version=SYSTEM_PROMPT_VERSION,
            has_browser_tools=prompt.has_browser_tools,
            protocol=prompt.protocol,
            client_tools=prompt.client_tools or (),
            runs_confirmed_tools=prompt.runs_confirmed_tools,
            output=prompt.output,
            direct_call=prompt.direct_call,
            situation=shorten_text(situation, MAX_SITUATION_CHARS),
            max_rounds=count_max_rounds(settings.max_rounds, agent, prompt.max_rounds),
            thinking_tokens=settings.thinking_tokens if prompt.thinking_tokens is None else prompt.thinking_tokens,
            prompt_digest=prompt.content_digest,
            is_cancelled_on_disconnect=prompt.is_cancelled_on_disconnect,
            started_ms=int(now * 1000),
            written_ms=prompt.written_ms,
            expires=int(now) + settings.turn_lifetime_seconds,
        )

    def _list_withheld_tools(self, agent: Agent) -> tuple[str, ...]:
        """List the tools that need a content system, if the tenant has none, and the browser's, if the client has none.

        The turn keeps the list from its start, so that providers can cache the tools.
        """
        toolset = agent.get_toolset(self.prompt.generation)
        has_host = is_registered_host(self.rows.read_item(build_host_key(self.resources, self.caller.tenant)))
        without_host = () if has_host else toolset.list_tools_without_host(self.prompt.snapshot_content.value)
        return (*without_host, *_list_tools_without_client(self.prompt, toolset))

    def _pin_policy(self, turn: Turn, agent: Agent) -> Turn:
        """Pin the tenant's policy, and the tools that it knows where a policy asks for new ones."""
        read_item = self.rows.read_item
        policy = policy_from_item(read_item(build_policy_key(self.resources, turn.tenant))).policy
        asks_for_new_tools = policy.new_tools or agent.policy.new_tools
        known = read_item(build_known_tools_key(self.resources, turn.tenant)) if asks_for_new_tools else None
        return turn.model_copy(update={"policy": policy, "known_tools": read_known_tools(known)})

    def _pin_remote_tools(self, turn: Turn) -> Turn:
        """Pin the tenant's remote tools, and the user's Authorization header where one of them is sent it."""
        caller, prompt = self.caller, self.prompt
        tools = list_tools_of_scope(self.resources, caller.tenant, prompt.scope, self.rows.read_item)
        pinned: dict[str, Any] = {"remote_tools": tuple(tool.definition for tool in tools)}
        if any(tool.forwards_authorization for tool in tools):
            sealed = seal_caller_authorization(self.resources, caller, turn.root_conversation, prompt.authorization)
            pinned["sealed_authorization"] = sealed
        return turn.model_copy(update=pinned)

    def _is_budgeted(self) -> bool:
        """Return whether a limit applies to what the turn costs.

        Budgets are read past the cache, so that a limit applies to every turn that starts after it was set.
        """
        budgets = get_budgets(self.resources, self.caller.tenant, refresh=True, read_item=self.rows.read_item)
        month = self.resources.clock.now_iso()[:7]
        return bool(budgets.list_accounts(self.caller.tenant, self.caller.user, month))


def build_situation(agent: Agent, prompt: TurnPrompt, context: AgentContext, space: PromptSpace) -> str:
    """Build the part of the prompt that changes from turn to turn. Without browser tools it says so first.

    Args:
        agent: The agent that is asked.
        prompt: The validated request.
        context: What the page shares with the agent.
        space: The content space that the turn works in.
    """
    page = build_page_context(context) if agent.connection and agent.settings.page_context else ""
    if agent.connection and not agent.toolset.tools:
        return page
    situation = agent.build_situation(prompt.snapshot_content.value, ToolNaming(prompt.tool_names))
    situation = f"{page}\n\n{situation}".strip()
    if space.situation:
        situation = f"{space.situation}\n{situation}".strip()
    if prompt.notes:
        situation = f"{situation}\n\n{escape_frames_in_text(prompt.notes)}".strip()
    if prompt.has_browser_tools or not _needs_editor(agent):
        return situation
    return f"{NO_BROWSER_TOOLS_NOTE}\n\n{situation}".rstrip()


def _needs_editor(agent: Agent) -> bool:
    return bool(agent.toolset.list_browser_tools()) if agent.connection else not agent.space_situation


def _list_tools_without_client(prompt: TurnPrompt, toolset: Toolset) -> tuple[str, ...]:
    """List the browser's tools that the client does not carry out."""
    browser_tools = toolset.list_browser_tools()
    if not prompt.has_browser_tools:
        return browser_tools
    if prompt.client_tools is None:
        return ()
    declared = {tool.name for name in prompt.client_tools if (tool := toolset.find_tool(name.name))}
    return tuple(name for name in browser_tools if name not in declared)


def count_max_rounds(max_rounds: int, agent: Agent, tenant_max_rounds: int | None = None) -> int:
    """Return the lowest limit of rounds.

    Args:
        max_rounds: The deployment's.
        agent: The agent of the turn.
        tenant_max_rounds: The tenant's, if it has one.
    """
    steps = agent.settings.max_steps or (DEFAULT_STEP_LIMIT if agent.connection else max_rounds)
    return min(max_rounds, tenant_max_rounds or max_rounds, agent.max_rounds or max_rounds, steps)
