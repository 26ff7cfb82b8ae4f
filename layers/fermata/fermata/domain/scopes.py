"""Name the agents that are built in, one per scope: the part of the editor that a conversation can belong to.

To add an agent, add its line to SCOPES (docs/agents.md).
"""

from typing import TYPE_CHECKING, Literal

SCOPES: dict[str, str] = {
    "site": "fermata.agents.site.agent:SITE_AGENT",
    "content": "fermata.agents.content.agent:CONTENT_AGENT",
    "data": "fermata.agents.data.agent:DATA_AGENT",
    "plugin": "fermata.agents.plugin.agent:PLUGIN_AGENT",
    "planner": "fermata.agents.planner.agent:PLANNER_AGENT",
}
"""The scopes by their names, with the path `package.module:name` of the Agent that `chat/{scope}` asks.

They are paths because every package reads the names of the scopes, and only `agents/registry.py` loads what is behind
them (decision 0312).
"""

if TYPE_CHECKING:
    ScopeName = str
else:
    ScopeName = Literal[tuple(SCOPES)]
    """A name in SCOPES, as the models of requests and responses check and document it."""
