"""Define the agent that plans the changes of a site's pages."""

from fermata.agents.agent import Agent

PLANNER_MAX_ROUNDS = 6
PLANNER_AGENT = Agent(
    id="planner",
    title="Planner",
    description="Plans the changes of a site's pages, and applies a plan as a whole.",
    toolsets=("fermata.tools.planner.toolset:PLANNER_TOOLSET",),
    prompt="fermata.agents.planner.prompt:system_prompt",
    situation="fermata.agents.planner.situation:situation",
    text_reader="fermata.agents.planner.text_plan:find_plan_in_text",
    max_rounds=PLANNER_MAX_ROUNDS,
)
