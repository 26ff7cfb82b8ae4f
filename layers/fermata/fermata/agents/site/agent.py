"""Define the agent of the site editor."""

from fermata.agents.agent import Agent

SITE_AGENT = Agent(
    id="site",
    title="Site",
    description="Edits the pages, styles and code of a website in its editor.",
    toolsets=("fermata.tools.site.toolset:SITE_TOOLSET",),
    prompt="fermata.agents.site.prompt:system_prompt",
    situation="fermata.agents.site.situation:situation",
)
