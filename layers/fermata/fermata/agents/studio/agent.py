"""Define the agent of the governed studio, which works on models and content in branches."""

from fermata.agents.agent import Agent

STUDIO_AGENT = Agent(
    id="studio",
    title="Studio",
    description="Changes models and content of a project in branches, within phases, roles and a workflow.",
    toolsets=("fermata.tools.studio.toolset:STUDIO_TOOLSET",),
    prompt="fermata.agents.studio.prompt:system_prompt",
    space_situation="fermata.agents.studio.situation:describe_studio_space",
    space_withheld="fermata.agents.studio.situation:list_withheld_studio_tools",
    max_rounds=5,
)
"""Five requests a turn; the last one is without tools, so that the user always gets an answer."""
