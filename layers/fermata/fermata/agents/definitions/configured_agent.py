"""Make an agent of a definition that a tenant has pushed."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fermata.agents.agent import Agent
from fermata.agents.definitions.agent_definition import AgentDefinition, AgentProperties
from fermata.agents.tool_sources.built_in_tools import build_shared_toolset, list_toolset_agents
from fermata.domain.untrusted_text import FRAMES_RULE
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.tool_names import ToolNaming
from fermata.tools.toolset import Toolset

if TYPE_CHECKING:
    from fermata.agents.agent_space import AgentSpace


@value_dataclass(frozen=True, kw_only=True)
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
        """The tools of the toolsets that it names. The others of a turn are listed when it starts."""
        return build_shared_toolset(self.definition.toolsets or ())

    def build_system_prompt(self, naming: ToolNaming = ToolNaming.CANONICAL) -> str:
        """Return the instructions of the turn, with the rule for content from outside."""
        return self.properties.instructions + FRAMES_RULE

    def build_situation(self, snapshot: Any, naming: ToolNaming = ToolNaming.CANONICAL) -> str:
        """Build the situations of the built-in agents whose toolsets it has: its tools need what they say."""
        return _join_parts(agent.build_situation(snapshot, naming) for agent in self._toolset_agents)

    def build_space_situation(self, space: "AgentSpace") -> str:
        """Build the lines about the space of a turn, for each toolset that works in one."""
        return _join_parts(
            agent.build_space_situation(space) for agent in self._toolset_agents if agent.space_situation
        )

    def list_withheld_in_space(self, space: "AgentSpace") -> tuple[str, ...]:
        """Return the names of the tools that a turn in a space is not offered."""
        return tuple(name for agent in self._toolset_agents for name in agent.list_withheld_in_space(space))

    @property
    def _toolset_agents(self) -> tuple[Agent, ...]:
        return list_toolset_agents(self.definition.toolsets or ())


def make_configured_agent(definition: AgentDefinition, resolved: dict[str, Any] | None = None) -> ConfiguredAgent:
    """Return the agent of a definition.

    Args:
        definition: The compiled definition.
        resolved: The values of the properties that contain operators, as the turn has pinned them.

    Raises:
        pydantic.ValidationError: A resolved value is not allowed.
    """
    properties = definition.parse_properties(resolved)
    agents = list_toolset_agents(definition.toolsets or ())
    return ConfiguredAgent(
        id=definition.id,
        title=definition.title or definition.id,
        description=definition.description,
        prompt="",
        situation=next((one.situation for one in agents if one.situation), ""),
        space_situation=next((one.space_situation for one in agents if one.space_situation), ""),
        has_memory=any(one.has_memory for one in agents),
        settings=properties.settings,
        connection=definition.connection.id,
        definition=definition,
        properties=properties,
    )


def _join_parts(parts: Iterable[str]) -> str:
    return "\n\n".join(dict.fromkeys(filter(None, parts)))
