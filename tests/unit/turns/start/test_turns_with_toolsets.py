"""Turns of a tenant's agent with tools of built-in agents: offered, executed and undone with the caller's rights."""

from typing import Any

import pytest

from fermata.agents.agent_views import get_agent_view
from fermata.content.documents.read_document import find_document_by_slug
from fermata.domain.events import ApprovalRequestedEvent
from fermata.tools.tool_names import ToolNaming
from tests.agent_definitions import make_definition, push_definitions, start_agent_turn
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block
from tests.unit.turns.test_cms_turns import SHOP, add_space, give_rights

INSERT = {"parentId": "root", "html": "<p>x</p>"}
SITE = {"toolset": "site"}


def start(stage: Stage, *toolsets: dict[str, Any], properties: dict[str, Any] | None = None, **members: Any) -> None:
    definition = make_definition(
        credential=stage.credential.id, toolsets=list(toolsets), properties=properties, description="Helps."
    )
    push_definitions(stage.resources, stage.caller, definition)
    start_agent_turn(stage, "helper", **members)


def offered(stage: Stage) -> list[str]:
    return [tool.name for tool in stage.driver.requests[0].tools]


def test_an_editor_carries_out_calls_and_undoes_them(stage: Stage) -> None:
    start(stage, SITE)
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", **INSERT)), "Inserted.")
    assert stage.run_workflow() == "waiting"
    inverse = {"tool": "deleteNode", "input": {"nodeId": "n1"}}
    stage.answer_request(OK | {"inverse": inverse}, revision="2")
    assert stage.run_workflow() == "finished"
    stage.start_undo()
    assert stage.run_workflow() == "waiting"
    request = stage.tool_requests()[-1]
    assert (request.tool_name, request.input["nodeId"]) == ("deleteNode", "n1")
    stage.answer_request(OK, revision="3")
    assert stage.run_workflow() == "finished"


def test_only_the_named_tools_are_offered_and_run(stage: Stage) -> None:
    start(stage, SITE | {"tools": ["deleteNode"]})
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", **INSERT)), "No.")
    assert stage.run_workflow() == "finished"
    assert offered(stage) == ["deleteNode"]
    assert "Unknown tool: insertHtml" in str(stage.results_sent_to_model()[-1].error)


def test_a_caller_without_the_rights_is_offered_no_writes_and_none_runs(stage: Stage) -> None:
    stage.caller = stage.caller.model_copy(update={"capabilities": frozenset({"ai.chat", "site.read"})})
    start(stage, SITE)
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", **INSERT)), "No.")
    assert stage.run_workflow() == "finished"
    assert "insertHtml" not in offered(stage)
    assert "read_document" in offered(stage)
    assert stage.results_sent_to_model()[-1].error == "Tool insertHtml is not permitted for this user."


def test_without_an_editor_its_tools_are_withheld_and_the_model_is_told(stage: Stage) -> None:
    start(stage, SITE, has_browser_tools=False)
    stage.script_replies("No.")
    assert stage.run_workflow() == "finished"
    assert "insertHtml" not in offered(stage)
    assert stage.driver.requests[0].volatile.startswith("No editor is connected in this turn")


def test_writes_wait_for_a_person_where_the_agent_says_so_and_reads_do_not(stage: Stage) -> None:
    start(stage, SITE | {"confirm": True})
    read, write = tool_call_block("read_document"), tool_call_block("insertHtml", **INSERT)
    stage.script_replies(reply_with_calls(read, write))
    stage.run_workflow()
    waiting = [event.tool_name for event in stage.events() if isinstance(event, ApprovalRequestedEvent)]
    assert waiting == ["insertHtml"]
    assert [request.tool_name for request in stage.tool_requests()] == ["read_document"]


def test_tools_of_the_cms_work_in_the_space_of_the_caller(stage: Stage) -> None:
    give_rights(stage, "ai.content.write")
    add_space(stage, SHOP)
    start(stage, {"toolset": "cms"}, properties={"pageContext": True})
    create = tool_call_block("cms_createPageWithContent", name="About", sections=[{"sectionKey": "hero"}])
    stage.script_replies(reply_with_calls(create), "There.")
    assert stage.run_workflow() == "finished"
    assert find_document_by_slug(stage.resources, SHOP, "page", "about").turn == stage.turn.id
    situation = stage.driver.requests[0].volatile
    assert 'Site: shop "Shop"' in situation
    assert "userId: ada" in situation


def test_an_agent_without_toolsets_has_no_tools_of_a_built_in_agent(stage: Stage) -> None:
    start(stage)
    stage.script_replies("Hello.")
    stage.run_workflow()
    assert offered(stage) == []


@pytest.mark.parametrize(("rights", "has_write"), [({"ai.chat", "site.read"}, False), (None, True)])
def test_who_looks_at_the_agent_sees_what_it_would_be_offered(
    stage: Stage, rights: set[str] | None, has_write: bool
) -> None:
    if rights:
        stage.caller = stage.caller.model_copy(update={"capabilities": frozenset(rights)})
    start(stage, SITE)
    view = get_agent_view(stage.resources, stage.caller, "helper", ToolNaming.CANONICAL, stage.turn.generation)
    tools = {tool["name"]: tool for tool in view["tools"]}
    assert ("insertHtml" in tools) is has_write
    assert tools["list_documents"]["execution"] == "server"
