"""An added agent runs turns with its own tools, prompt and situation, and a turn keeps the version it started with."""

from dataclasses import replace

import pytest

from fermata.conversations import conversation_store
from fermata.domain.agent_ids import SCOPES
from fermata.turns.start.start_turn import start_turn
from tests.unit.agents.example_agent.agent import KITCHEN_AGENT
from tests.unit.turns.stage import Stage, as_posted_snapshot, reply_with_calls, tool_call_block

AGENT_PATH = "tests.unit.agents.example_agent.agent:KITCHEN_AGENT"
RECIPES = {"recipes": {"rye": 120}}


@pytest.fixture
def kitchen(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setitem(SCOPES, "kitchen", AGENT_PATH)
    stage.caller = stage.caller.model_copy(update={"capabilities": stage.caller.capabilities | {"recipes.read"}})
    stage.conversation = conversation_store.create_conversation(
        stage.resources, stage.caller, "kitchen", None, stage.credential.id, "model-1"
    )
    return stage


def start_kitchen_turn(kitchen: Stage) -> None:
    prompt = replace(kitchen.make_prompt("Scale it"), scope="kitchen", snapshot=as_posted_snapshot(RECIPES))
    kitchen._turn = start_turn(kitchen.resources, kitchen.caller, prompt).turn


def test_a_turn_of_an_added_agent_calls_its_tools_and_reads_its_prompt(kitchen: Stage) -> None:
    start_kitchen_turn(kitchen)
    kitchen.script_replies(reply_with_calls(tool_call_block("scale_recipe", recipe="rye", portions=2)), "240 g.")
    assert kitchen.run_workflow() == "finished"
    first, second = kitchen.driver.requests
    assert [tool.name for tool in first.tools] == ["scale_recipe", "highlight_step"]
    assert first.system.startswith("You help a cook.")
    assert "Recipes: rye" in first.volatile
    assert "240" in str(second.messages[-1].content)
    assert kitchen.event_types()[-1] == "done"


def test_a_turn_pins_the_agent_and_its_version(kitchen: Stage) -> None:
    start_kitchen_turn(kitchen)
    assert kitchen.turn.agent == f"kitchen@{KITCHEN_AGENT.version}"


def test_the_version_changes_with_the_definition() -> None:
    version = replace(KITCHEN_AGENT).version
    assert replace(KITCHEN_AGENT).version == version
    assert replace(KITCHEN_AGENT, title="Bakery").version != version
    assert replace(KITCHEN_AGENT, toolsets=()).version != version


def test_a_turn_that_pinned_an_earlier_version_goes_on_with_the_deployed_one(
    kitchen: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_kitchen_turn(kitchen)
    changed = replace(KITCHEN_AGENT, title="Bakery")
    monkeypatch.setattr("tests.unit.agents.example_agent.agent.KITCHEN_AGENT", changed)
    kitchen.script_replies("Good morning.")
    assert kitchen.run_workflow() == "finished"
    assert kitchen.turn.agent != changed.reference
