"""Know the names that no registered tool may have."""

from fermata.agents.registry import list_agents
from fermata.remote_tools.built_in.built_in_tools import BUILT_IN_TOOLS_BY_NAME
from fermata.remote_tools.provider_alias import RESERVED_ALIASES, make_provider_alias
from fermata.remote_tools.tool_manifest import normalize_tool_name
from fermata.tools.toolset import list_tool_names

_RESERVED = frozenset(map(normalize_tool_name, frozenset(BUILT_IN_TOOLS_BY_NAME) | RESERVED_ALIASES | {"find_tools"}))


def is_built_in_name(name: str) -> bool:
    """Return whether a tool of the service has this name, or one that models cannot tell from it."""
    spellings = {normalize_tool_name(name), normalize_tool_name(make_provider_alias(name, ()))}
    taken = _RESERVED | {normalize_tool_name(make_provider_alias(one, ())) for one in _RESERVED}
    if spellings & taken:
        return True
    tools = [tool for agent in list_agents() if agent.toolsets for tool in agent.toolset.tools]
    return any(normalize_tool_name(own) in spellings for tool in tools for own in list_tool_names(tool))
