"""Define an agent: the record that says which tools, prompt, situation and settings a turn works with."""

from collections.abc import Callable, Iterator
from functools import cached_property
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, cast

from fermata.agents.approval_policy import NO_POLICY, ApprovalPolicy
from fermata.domain.blocks import ToolCallBlock
from fermata.domain.dialect import OLDEST_GENERATION, EditorGeneration
from fermata.domain.run_settings import DEFAULT_RUN_SETTINGS, RunSettings
from fermata.domain.untrusted_text import FRAMES_RULE, escape_frames_in_text
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.tool import Tool, compute_definition_digest
from fermata.tools.tool_names import ToolNaming
from fermata.tools.toolset import Toolset, merge_toolsets

if TYPE_CHECKING:
    from fermata.agents.agent_space import AgentSpace


@value_dataclass(frozen=True, kw_only=True)
class Agent:
    """What makes one assistant different from another. Its definition never changes: a changed one has another version.

    Tools, prompt and situation are paths `package.module:name`, loaded on first use. A round of a site turn therefore
    imports neither the tools of other agents nor the code that reads snapshots.

    Attributes:
        toolsets: Toolsets, whose tools are offered in this order.
        prompt: A function from a ToolNaming to the stable part of the prompt.
        situation: A function from a snapshot and a ToolNaming to the part that changes from turn to turn; empty for
            none.
        space_situation: A function from a content space, as an `AgentSpace`, to the lines of the situation about it;
            empty for an agent that works in none.
        space_withheld: A function from an `AgentSpace` to the names of the tools that a turn in it is not offered;
            empty for an agent that is offered the same tools in all spaces.
        text_reader: A function from the model's text and an id to the call that the text stands for, or None; empty
            for an agent whose text is always an answer.
        has_memory: Whether its prompts name what earlier turns of the conversation were about.
        max_rounds: The agent's limit, where it is lower than the deployment's.
        policy: Which calls of the agent a person has to approve, besides the tenant's own policy.
        settings: How its turns run.
        connection: The id of the connection that its requests go through; empty for the scope's default model.
    """

    id: str
    title: str
    description: str
    toolsets: tuple[str, ...] = ()
    prompt: str
    situation: str = ""
    space_situation: str = ""
    space_withheld: str = ""
    text_reader: str = ""
    has_memory: bool = False
    max_rounds: int | None = None
    policy: ApprovalPolicy = NO_POLICY
    settings: RunSettings = DEFAULT_RUN_SETTINGS
    connection: str = ""

    @cached_property
    def version(self) -> str:
        """The digest of the definition: settings, prompt and tools, as all generations of editors know them."""
        return compute_definition_digest(self._describe_definition())

    @property
    def reference(self) -> str:
        """The agent's id and version, which a turn pins when it starts."""
        return f"{self.id}@{self.version}"

    @property
    def toolset(self) -> Toolset:
        """The tools of all toolsets, in the form that the oldest generation of editors knows."""
        return cast(Toolset, resolve_name(self.toolsets[0])) if len(self.toolsets) == 1 else self._merged_toolset

    def get_toolset(self, generation: EditorGeneration = OLDEST_GENERATION) -> Toolset:
        """Return the agent's tools as the editors of a generation know them."""
        return self.toolset.for_generation(generation)

    def build_system_prompt(self, naming: ToolNaming = ToolNaming.CANONICAL) -> str:
        """Build the stable part of the prompt.

        It depends on the agent and the tool names only, so that providers can cache it (decision 0100).
        """
        return cast(Callable[[ToolNaming], str], resolve_name(self.prompt))(naming) + FRAMES_RULE

    def build_situation(self, snapshot: Any, naming: ToolNaming = ToolNaming.CANONICAL) -> str:
        """Build the part of the prompt that changes from turn to turn.

        Drivers put it at the end of the request, between tags. Text of users cannot close them: a `<` that could start
        such a tag is escaped.

        Args:
            snapshot: The document's state as its editor posted it; None without one.
            naming: The variant of the tool names that the text mentions.
        """
        if not self.situation:
            return ""
        text = cast(Callable[[Any, ToolNaming], str], resolve_name(self.situation))(snapshot, naming)
        return escape_frames_in_text(text)

    def build_space_situation(self, space: "AgentSpace") -> str:
        """Build the lines of the situation about the space of a turn.

        Args:
            space: The space as it is at the turn's start, or that none is chosen.
        """
        text = cast("Callable[[AgentSpace], str]", resolve_name(self.space_situation))(space)
        return escape_frames_in_text(text)

    def list_withheld_in_space(self, space: "AgentSpace") -> tuple[str, ...]:
        """Return the names of the tools that a turn in a space is not offered."""
        if not self.space_withheld:
            return ()
        return cast("Callable[[AgentSpace], tuple[str, ...]]", resolve_name(self.space_withheld))(space)

    def find_call_in_text(self, text: str, call_id: str) -> ToolCallBlock | None:
        """Return the call that a model has written into its text, or None.

        Args:
            text: All that the model has written in a round without calls.
            call_id: The id of the call.
        """
        if not self.text_reader or not text:
            return None
        return cast(Callable[[str, str], ToolCallBlock | None], resolve_name(self.text_reader))(text, call_id)

    @cached_property
    def _merged_toolset(self) -> Toolset:
        return merge_toolsets(self.id, [cast(Toolset, resolve_name(path)) for path in self.toolsets])

    def _describe_definition(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": self.title,
            "description": self.description,
            "prompts": [self.build_system_prompt(naming) for naming in ToolNaming],
            "situation": self.situation,
            "max_rounds": self.max_rounds,
            "policy": self.policy.to_wire(),
            "tools": [tool.definition for tool in self.iter_tools()],
        }

    def iter_tools(self) -> Iterator[Tool]:
        """Yield the tools as all generations of editors know them."""
        toolset = self.toolset
        yield from toolset.tools
        for generation in sorted(toolset.revised_tools):
            yield from toolset.revised_tools[generation]
