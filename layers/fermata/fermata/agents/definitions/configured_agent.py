"""Make an agent of a definition that a tenant has pushed."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fermata.agents.agent import Agent
from fermata.agents.definitions.agent_definition import AgentDefinition, AgentProperties
from fermata.domain.agent_ids import make_agent_scope
from fermata.domain.untrusted_text import FRAMES_RULE
from fermata.tools.tool_names import ToolNaming
from fermata.tools.toolset import Toolset


@dataclass(frozen=True, kw_only=True)
class ConfiguredAgent(Agent):
    """An agent that a tenant has defined. Its tools come from the sources that its definition names.

    Attributes:
        definition: The compiled definition.
        properties: Its properties for one turn; those with operators are left out where no turn resolves them.
    """

    definition: AgentDefinition
    properties: AgentProperties

    @cached_property
    def version(self) -> str:
        """The version of the definition, which its content gives."""
        return self.definition.version

    @property
    def toolset(self) -> Toolset:
        """No tools of its own: those of a turn are listed when it starts."""
        return Toolset(make_agent_scope(self.id))

    def build_system_prompt(self, naming: ToolNaming = ToolNaming.CANONICAL) -> str:
        """Return the instructions of the turn, with the rule for content from outside."""
        return self.properties.instructions + FRAMES_RULE


def make_configured_agent(definition: AgentDefinition, resolved: dict[str, Any] | None = None) -> ConfiguredAgent:
    """Return the agent of a definition.

    Args:
        definition: The compiled definition.
        resolved: The values of the properties that contain operators, as the turn has pinned them.

    Raises:
        pydantic.ValidationError: A resolved value is not allowed.
    """
    properties = definition.parse_properties(resolved)
    return ConfiguredAgent(
        id=definition.id,
        title=definition.title or definition.id,
        description=definition.description,
        prompt="",
        settings=properties.settings,
        connection=definition.connection.id,
        definition=definition,
        properties=properties,
    )
