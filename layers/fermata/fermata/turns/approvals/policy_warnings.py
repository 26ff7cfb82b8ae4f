"""Say which names in the rules of a policy are those of nothing that a workspace has now (decision 0517).

Such a rule is stored: it may be for a tool that is registered later. But it does nothing until then, and a name that
was misspelled would never do anything.
"""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Literal, NamedTuple

from fermata.agents.approval_policy import ApprovalPolicy, PolicyRule, fold_tool_name
from fermata.agents.definitions.agent_definition import AgentDefinition
from fermata.agents.definitions.agent_list import read_agent_list
from fermata.agents.definitions.definition_store import load_definition
from fermata.agents.registry import list_agents
from fermata.agents.tool_sources.endpoint_tools import ENDPOINT_TOOLSET, list_endpoint_tools
from fermata.agents.tool_sources.file_tools import FILE_TOOLSET, list_file_tools
from fermata.agents.tool_sources.mcp_tools import MCP_TOOLSET
from fermata.agents.tool_sources.page_state import PAGE_TOOLSET, UPDATE_PAGE_STATE_NAME
from fermata.agents.tool_sources.sub_agents import SUB_AGENT_TOOLSET, list_sub_agent_tools
from fermata.aws.resources import Resources
from fermata.domain.agent_ids import SCOPES, make_agent_scope
from fermata.domain.value_dataclass import value_dataclass
from fermata.remote_tools.built_in.built_in_tools import BUILT_IN_TOOLS_BY_NAME
from fermata.remote_tools.deployment_tools import list_deployment_lines
from fermata.remote_tools.pinned_tools import REMOTE_TOOLSET
from fermata.remote_tools.provider_alias import make_provider_alias
from fermata.remote_tools.stored_tools import read_registered_tools
from fermata.tools.tool import Tool
from fermata.tools.toolset import list_tool_names
from fermata.turns.turn_toolset import CLIENT_TOOLSET

MAX_POLICY_WARNINGS = 50
MAX_SHOWN_NAME_CHARS = 120
_SIMILARITY = 0.7
_OTHER_TOOLSETS = frozenset(
    {REMOTE_TOOLSET, MCP_TOOLSET, ENDPOINT_TOOLSET, SUB_AGENT_TOOLSET, FILE_TOOLSET, PAGE_TOOLSET, CLIENT_TOOLSET}
)


@value_dataclass(frozen=True)
class _KnownNames:
    """What rules of a workspace can be about. The names of tools are as `fold_tool_name` returns them."""

    tools: frozenset[str]
    toolsets: frozenset[str]
    agents: frozenset[str]
    has_mcp_servers: bool


def list_policy_warnings(resources: Resources, tenant: str, policy: ApprovalPolicy) -> list[str]:
    """Return a sentence for each name in a rule that nothing has now, in the order of the rules.

    Args:
        resources: Where the tenant's tools and agents are.
        tenant: The tenant's name.
        policy: Its policy.
    """
    if not any(rule.tools or rule.toolsets or rule.agents for rule in policy.rules):
        return []
    known = _read_known_names(resources, tenant)
    unknown = [one for number, rule in enumerate(policy.rules, 1) for one in _iter_unknown_names(number, rule, known)]
    warnings = [_describe(one, known) for one in unknown[:MAX_POLICY_WARNINGS]]
    more = len(unknown) - len(warnings)
    return [*warnings, f"And {more} more names that nothing has now."] if more else warnings


class _UnknownName(NamedTuple):
    """A name in a rule that nothing has; `rule` is counted from 1."""

    rule: int
    kind: Literal["tool", "toolset", "agent"]
    name: str


def _iter_unknown_names(number: int, rule: PolicyRule, known: _KnownNames) -> Iterator[_UnknownName]:
    yield from (_UnknownName(number, "tool", name) for name in rule.tools if fold_tool_name(name) not in known.tools)
    yield from (_UnknownName(number, "toolset", name) for name in rule.toolsets if name not in known.toolsets)
    yield from (_UnknownName(number, "agent", name) for name in rule.agents if name not in known.agents)


def _describe(unknown: _UnknownName, known: _KnownNames) -> str:
    kind, name = unknown.kind, unknown.name
    shown = repr(name[:MAX_SHOWN_NAME_CHARS])
    text = f"Rule {unknown.rule}: no {kind} is called {shown} now, so it counts for one that comes later."
    if similar := _find_similar(unknown, known):
        text += f" Did you mean {similar!r}?"
    is_perhaps_listed = kind == "tool" and known.has_mcp_servers
    return f"{text} Tools of MCP servers are known only while a turn runs." if is_perhaps_listed else text


def _find_similar(unknown: _UnknownName, known: _KnownNames) -> str:
    if unknown.kind == "agent" and make_agent_scope(unknown.name) in known.agents:
        return make_agent_scope(unknown.name)
    names = {"tool": known.tools, "toolset": known.toolsets, "agent": known.agents}[unknown.kind]
    name = unknown.name[:MAX_SHOWN_NAME_CHARS].casefold()
    return next(iter(get_close_matches(name, sorted(names), 1, _SIMILARITY)), "")


def _read_known_names(resources: Resources, tenant: str) -> _KnownNames:
    built_in = [tool for agent in list_agents() if agent.toolsets for tool in agent.iter_tools()]
    agents = read_agent_list(resources, tenant).agents
    definitions = [load_definition(resources, tenant, f"{name}@{entry.version}") for name, entry in agents.items()]
    own_tools = [tool for one in definitions for tool in _iter_tools_of_definition(resources, one, tenant)]
    names = {*_iter_names(built_in), *_iter_names(own_tools), *_iter_remote_names(resources, tenant)}
    return _KnownNames(
        tools=frozenset(map(fold_tool_name, {*names, UPDATE_PAGE_STATE_NAME})),
        toolsets=_OTHER_TOOLSETS | {tool.toolset for tool in built_in},
        agents=frozenset({*SCOPES, *map(make_agent_scope, agents)}),
        has_mcp_servers=any(one.mcp for one in definitions),
    )


def _iter_names(tools: Iterable[Tool]) -> Iterator[str]:
    for tool in tools:
        yield from list_tool_names(tool)


def _iter_tools_of_definition(resources: Resources, definition: AgentDefinition, tenant: str) -> Iterator[Tool]:
    yield from list_endpoint_tools(definition, tenant)
    yield from list_sub_agent_tools(definition)
    yield from list_file_tools(resources, definition)


def _iter_remote_names(resources: Resources, tenant: str) -> Iterator[str]:
    """Yield the names of remote tools, also of built-in ones that are not turned on."""
    registered = read_registered_tools(resources, tenant).tools.values()
    lines = (*registered, *list_deployment_lines(resources).values())
    for name in (*BUILT_IN_TOOLS_BY_NAME, *(line.name for line in lines)):
        yield from (name, make_provider_alias(name, ()))
