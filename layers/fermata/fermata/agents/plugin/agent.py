"""Define the agent of the plugin editor."""

from fermata.agents.agent import Agent

PLUGIN_AGENT = Agent(
    id="plugin",
    title="Plugin",
    description="Reads, writes and validates the files of the open plugin.",
    toolsets=("fermata.tools.plugin.toolset:PLUGIN_TOOLSET",),
    prompt="fermata.agents.plugin.prompt:system_prompt",
    situation="fermata.agents.plugin.situation:situation",
)
