"""Define the agent of the data area, which has no tools yet."""

from fermata.agents.agent import Agent
from fermata.tools.tool_names import ToolNaming

DATA_AGENT = Agent(
    id="data",
    title="Data",
    description="Answers questions about the data area. It has no tools yet.",
    prompt="fermata.agents.data.agent:build_data_prompt",
)
_PROMPT = (
    "You help the user of a content system in its data area. You have no tools there yet, so answer from what you "
    "are told and say so when something would need one."
)


def build_data_prompt(_naming: ToolNaming) -> str:
    """Return the stable part of the prompt, which mentions no tool."""
    return _PROMPT
