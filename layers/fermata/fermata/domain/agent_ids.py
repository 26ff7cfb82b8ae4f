"""Name the agents that are built in, one per scope: the part of the editor that a conversation can belong to.

To add an agent, add its line to SCOPES (docs/agents.md).
"""

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, WithJsonSchema

SCOPES: dict[str, str] = {
    "site": "fermata.agents.site.agent:SITE_AGENT",
    "content": "fermata.agents.content.agent:CONTENT_AGENT",
    "data": "fermata.agents.data.agent:DATA_AGENT",
    "plugin": "fermata.agents.plugin.agent:PLUGIN_AGENT",
    "planner": "fermata.agents.planner.agent:PLANNER_AGENT",
    "cms": "fermata.agents.cms.agent:CMS_AGENT",
    "studio": "fermata.agents.studio.agent:STUDIO_AGENT",
}
"""The scopes by their names, with the path `package.module:name` of the Agent that `chat/{scope}` asks.

They are paths because every package reads the names of the scopes, and only `agents/registry.py` loads what is behind
them (decision 0312).
"""

AGENT_SCOPE_PREFIX = "agent:"
AGENT_ID_PATTERN = "[a-zA-Z0-9_-]{1,64}"
AGENT_SCOPE_PATTERN = f"^{AGENT_SCOPE_PREFIX}{AGENT_ID_PATTERN}$"
_AGENT_SCOPE = re.compile(AGENT_SCOPE_PREFIX + AGENT_ID_PATTERN)


def make_agent_scope(agent_id: str) -> str:
    """Return the scope of the conversations with an agent that a tenant has defined."""
    return AGENT_SCOPE_PREFIX + agent_id


def read_agent_id(scope: str) -> str:
    """Return the id of the tenant's agent that a scope is of; empty for the scope of a built-in agent."""
    return scope.removeprefix(AGENT_SCOPE_PREFIX) if _AGENT_SCOPE.fullmatch(scope) else ""


def build_scope_schema() -> dict[str, Any]:
    """Return the JSON Schema of the scope of a conversation."""
    return {"anyOf": [{"type": "string", "enum": list(SCOPES)}, {"type": "string", "pattern": AGENT_SCOPE_PATTERN}]}


def is_scope(scope: str) -> bool:
    """Return whether conversations can belong to a scope: that of a built-in agent, or of an agent of a tenant."""
    return scope in SCOPES or bool(read_agent_id(scope))


def _require_scope(scope: str) -> str:
    if is_scope(scope):
        return scope
    names = ", ".join(repr(name) for name in SCOPES)
    raise ValueError(f"must be {names} or 'agent:' and the id of an agent of the workspace")


if TYPE_CHECKING:
    ScopeName = str
    ConversationScope = str
else:
    ScopeName = Literal[tuple(SCOPES)]
    """A name in SCOPES, as the models of requests and responses check and document it."""
    ConversationScope = Annotated[str, AfterValidator(_require_scope), WithJsonSchema(build_scope_schema())]
    """The same, or the scope of an agent of the tenant."""
