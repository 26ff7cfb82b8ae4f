"""An example of an agent: a record that names the toolset, the prompt and the situation in its folder."""

from fermata.agents.agent import Agent

KITCHEN_AGENT = Agent(
    id="kitchen",
    title="Kitchen",
    description="Helps a cook with recipes.",
    toolsets=("tests.unit.agents.example_agent.toolset:KITCHEN_TOOLSET",),
    prompt="tests.unit.agents.example_agent.prompt:system_prompt",
    situation="tests.unit.agents.example_agent.situation:situation",
)
