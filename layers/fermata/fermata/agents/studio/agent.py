"""Define the agent of the governed studio, which works on models and content in branches."""

from fermata.agents.agent import Agent
from fermata.domain.run_settings import RunSettings

STUDIO_AGENT = Agent(
    id="studio",
    title="Studio",
    description="Changes models and content of a project in branches, within phases, roles and a workflow.",
    toolsets=("fermata.tools.studio.toolset:STUDIO_TOOLSET",),
    prompt="fermata.agents.studio.prompt:system_prompt",
    space_situation="fermata.agents.studio.situation:describe_studio_space",
    space_withheld="fermata.agents.studio.situation:list_withheld_studio_tools",
    max_rounds=5,
    settings=RunSettings(max_output_tokens=4_096),
)
"""Five requests a turn, each for a short answer; the last one is without tools, so that the user always gets one."""
