"""Define the agent of the content workspace."""

from fermata.agents.agent import Agent

CONTENT_AGENT = Agent(
    id="content",
    title="Content",
    description="Writes and revises documents in the content workspace.",
    toolsets=("fermata.tools.content.toolset:CONTENT_TOOLSET",),
    prompt="fermata.agents.content.prompt:system_prompt",
    situation="fermata.agents.content.situation:situation",
)
