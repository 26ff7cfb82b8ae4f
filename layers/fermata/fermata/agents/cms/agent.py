"""Define the agent that works on pages, posts, navigation and settings of a site."""

from fermata.agents.agent import Agent
from fermata.domain.run_settings import RunSettings

CMS_AGENT = Agent(
    id="cms",
    title="CMS",
    description="Creates and changes pages, posts, navigation and settings of a site in the content store.",
    toolsets=("fermata.tools.cms.toolset:CMS_TOOLSET",),
    prompt="fermata.agents.cms.prompt:system_prompt",
    space_situation="fermata.agents.cms.situation:describe_cms_space",
    has_memory=True,
    max_rounds=15,
    settings=RunSettings(max_retries=3),
)
