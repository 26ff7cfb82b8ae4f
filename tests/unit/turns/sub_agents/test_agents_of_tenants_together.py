"""Agents that a tenant has defined ask each other, read their files, and fill in the page of their user."""

from typing import Any

from fermata.agents.definitions.agent_definition import AgentDefinition
from fermata.agents.definitions.tenant_secrets import set_secret
from fermata.agents.files.bundle_store import PushedFile, store_bundle
from fermata.agents.tool_sources.mcp_tools import McpPin
from fermata.domain.blocks import ToolResultBlock
from fermata.domain.events import DoneEvent, ToolRequestEvent, ToolResultEvent, WarningEvent
from fermata.domain.page_context import AgentContext
from fermata.mcp_sources.tool_listing import ListedSources
from fermata.turns.turn_toolset import open_turn_toolset
from tests.agent_definitions import make_definition, push_definitions, start_agent_turn
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block
from tests.unit.turns.sub_agents.sub_agent_stage import MARKS, Family


def make_pair(**members: Any) -> tuple[AgentDefinition, AgentDefinition]:
    """Return an agent `boss` that may ask the agent `helper`."""
    helper = make_definition("helper", properties={"instructions": "I am the helper."}, **members)
    schema = {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]}
    reference = {
        "agentId": "helper",
        "version": helper.version,
        "name": "helper",
        "description": "Delegate task to the helper agent",
        "inputSchema": schema,
    }
    return make_definition("boss", properties={"instructions": "I am the boss."}, agents=[reference]), helper


def push(stage: Stage, *definitions: AgentDefinition) -> None:
    push_definitions(stage.resources, stage.caller, *definitions)
    set_secret(stage.resources, stage.caller, "ANTHROPIC_KEY", "sk-ant-secret")


def test_an_agent_of_a_tenant_asks_another_one_in_the_version_it_was_compiled_with(
    family: Family, monkeypatch: Any
) -> None:
    monkeypatch.setitem(MARKS, "boss", "I am the boss.")
    monkeypatch.setitem(MARKS, "helper", "I am the helper.")
    boss, helper = make_pair()
    push(family.stage, boss, helper)
    turn = start_agent_turn(family.stage, "boss")
    tool = open_turn_toolset(family.resources, turn).find_tool("helper")  # tools-01
    assert tool is not None
    assert (tool.description, tool.input_schema["required"]) == ("Delegate task to the helper agent", ["task"])
    push(family.stage, boss, make_definition("helper", properties={"instructions": "I am another one."}))
    family.script("boss", reply_with_calls(tool_call_block("helper", task="Help")), "Done.")
    family.script("helper", "Helped.")
    family.run()
    (child,) = family.children(turn)
    assert isinstance(family.end(turn), DoneEvent)
    assert (child.scope, child.agent) == ("agent:helper", helper.reference)
    result = family.driver.requests[-1][1].messages[-1].content[0]
    assert isinstance(result, ToolResultBlock)
    assert result.data == {"_subAgent": True, "agentId": "helper", "text": "Helped."}  # tools-04


def test_servers_are_asked_once_for_all_sub_agents_that_start_together(family: Family, monkeypatch: Any) -> None:
    asked: list[str] = []

    def list_nothing(_resources: Any, _tenant: str, definition: AgentDefinition, **_members: Any) -> ListedSources:
        asked.append(definition.id)
        return ListedSources(McpPin(), ("Tools are missing in this turn.",))

    monkeypatch.setattr("fermata.mcp_sources.tool_listing.list_sources", list_nothing)
    monkeypatch.setitem(MARKS, "boss", "I am the boss.")
    monkeypatch.setitem(MARKS, "helper", "I am the helper.")
    push(family.stage, *make_pair(mcp=[{"url": "https://tools.example/mcp"}]))
    turn = start_agent_turn(family.stage, "boss")
    calls = [tool_call_block("helper", task=f"Help {number}") for number in range(3)]
    family.script("boss", reply_with_calls(*calls), "Done.")
    family.script("helper", "One.", "Two.", "Three.")
    family.run()
    assert len(family.children(turn)) == 3
    assert asked == ["helper"]
    warned = [event.message for event in family.events(turn) if isinstance(event, WarningEvent)]
    assert warned == ["helper: Tools are missing in this turn."], "whoever asked does not follow the sub-agent's log"


def test_a_sub_agent_without_a_task_reads_the_input_as_json(family: Family, monkeypatch: Any) -> None:
    monkeypatch.setitem(MARKS, "boss", "I am the boss.")
    monkeypatch.setitem(MARKS, "helper", "I am the helper.")
    boss, helper = make_pair()
    reference = boss.agents[0].model_copy(update={"input_schema": {"type": "object"}})  # tools-03
    push(family.stage, boss.model_copy(update={"agents": (reference,)}), helper)
    start_agent_turn(family.stage, "boss")
    family.script("boss", reply_with_calls(tool_call_block("helper", number=3)), "Done.")
    family.script("helper", "Helped.")
    family.run()
    asked = next(request for agent, request in family.driver.requests if agent == "helper")
    assert asked.messages[0].content[0].text == '{"number": 3}'  # type: ignore[union-attr]


def test_a_sub_agent_has_its_own_limit_of_steps_and_makes_no_title(family: Family, monkeypatch: Any) -> None:
    monkeypatch.setitem(MARKS, "boss", "I am the boss.")
    monkeypatch.setitem(MARKS, "helper", "I am the helper.")
    helper = make_definition(
        "helper", properties={"instructions": "I am the helper.", "maxSteps": 3, "generateTitle": True}
    )
    boss, _ = make_pair()
    reference = boss.agents[0].model_copy(update={"version": helper.version})
    push(family.stage, boss.model_copy(update={"agents": (reference,)}), helper)
    turn = start_agent_turn(family.stage, "boss")
    family.script("boss", reply_with_calls(tool_call_block("helper", task="Help")), "Done.")
    family.script("helper", "Helped.")
    family.run()
    (child,) = family.children(turn)
    assert (turn.max_rounds, child.max_rounds) == (10, 3)
    assert len(family.driver.requests) == 3


def test_a_sub_agent_that_cannot_be_asked_is_an_error_result(family: Family, monkeypatch: Any) -> None:
    monkeypatch.setitem(MARKS, "boss", "I am the boss.")
    boss, helper = make_pair(credential="gone")
    gone = boss.agents[0].model_copy(update={"version": "0" * 32, "name": "gone"})
    push(family.stage, boss.model_copy(update={"agents": (*boss.agents, gone)}), helper)
    turn = start_agent_turn(family.stage, "boss")
    calls = [tool_call_block("helper", task="Help"), tool_call_block("gone", task="Help")]
    family.script("boss", reply_with_calls(*calls), "Done.")
    family.run()
    errors = [event.error or "" for event in family.events() if isinstance(event, ToolResultEvent)]
    assert errors[0].startswith("The agent helper has no model that can be asked: ")
    assert errors[1] == "The agent helper cannot be asked now, so nothing was done."
    assert family.children(turn) == []
    assert isinstance(family.end(turn), DoneEvent)


def test_an_agent_reads_its_files(stage: Stage) -> None:
    bundle = store_bundle(stage.resources, stage.caller.tenant, [PushedFile("menu.md", b"Bread and rolls")])
    push(stage, make_definition("helper", files={"basePath": "menu", "bundle": bundle}))
    start_agent_turn(stage, "helper")
    stage.script_replies(
        reply_with_calls(tool_call_block("read-file", path="menu.md"), tool_call_block("search-files", query="ROLLS")),
        "Bread.",
    )
    assert stage.run_workflow() == "finished"
    read, found = stage.results_sent_to_model()
    assert read.data == "Bread and rolls"
    assert found.data[0]["path"] == "menu.md"


def test_an_agent_fills_in_the_page_of_its_user(stage: Stage) -> None:
    push(stage, make_definition("helper"))
    context = AgentContext(shared_state={"name": "Ada", "age": 36})
    start_agent_turn(stage, "helper", agent_context=context)
    stage.script_replies(reply_with_calls(tool_call_block("update-page-state", updates={"name": "Eve", "x": 1})), "Ok.")
    assert stage.run_workflow() == "waiting"
    (request,) = [event for event in stage.events() if isinstance(event, ToolRequestEvent)]
    assert request.input == {"updates": {"name": "Eve", "x": 1}}
    stage.answer_request({"ok": True, "data": {"written": ["name"], "ignored": ["x"]}})
    assert stage.run_workflow() == "finished"
    assert [event.ok for event in stage.events() if isinstance(event, ToolResultEvent)] == [True]


def test_a_page_that_can_only_be_read_offers_no_tool(stage: Stage) -> None:
    push(stage, make_definition("helper"))
    context = AgentContext(shared_state={"name": "Ada"}, shared_state_read_only=True)
    turn = start_agent_turn(stage, "helper", agent_context=context)
    assert open_turn_toolset(stage.resources, turn).tools == ()
    assert turn.agent_context.shared_state == {"name": "Ada"}
