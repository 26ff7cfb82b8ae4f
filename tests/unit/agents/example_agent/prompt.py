"""The stable part of the example's prompt."""

from fermata.tools.tool_names import ToolNaming, insert_tool_names
from tests.unit.agents.example_agent.toolset import KITCHEN_TOOLSET


def system_prompt(naming: ToolNaming) -> str:
    return insert_tool_names(
        "You help a cook. Calculate amounts with {scale_recipe}, and show where you are with {highlight_step}.",
        KITCHEN_TOOLSET.tools,
        naming,
    )
