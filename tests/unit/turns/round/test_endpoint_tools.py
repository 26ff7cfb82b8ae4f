"""Endpoints of a tenant that an agent's model calls."""

from collections.abc import Iterator
from typing import Any

import pytest

from fermata.agents.definitions.tenant_secrets import set_secret
from fermata.domain.page_context import AgentContext
from fermata.remote_tools.http_endpoint_attempt import strip_build_markers
from fermata.turns.approvals.approval_answer import ApprovalAnswer
from fermata.turns.approvals.decide_approval import decide_approval
from tests.agent_definitions import make_definition, push_definitions, start_agent_turn
from tests.scripted_tool_server import ScriptedToolServer, run_scripted_tool_server
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.stage import ADA, Stage, reply_with_calls, tool_call_block

SCHEMA = {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]}


@pytest.fixture
def server() -> Iterator[ScriptedToolServer]:
    with run_scripted_tool_server() as running:
        yield running


@pytest.fixture
def stage(staged: MakeStage) -> Stage:
    """A stage whose endpoints may be on this machine."""
    return staged(fermata_stage="local")


def start(
    stage: Stage,
    server: ScriptedToolServer,
    *,
    confirm: bool = False,
    display: Any = None,
    name: str = "query_data",
    **endpoint: Any,
) -> None:
    """Start a turn of an agent with the endpoint `reporting/query-data`, which its model knows as `query_data`."""
    endpoint_id = "reporting/query-data"
    described = {"id": endpoint_id, "description": "Queries.", "payloadSchema": SCHEMA, "url": server.url} | endpoint
    definition = make_definition(
        credential=stage.credential.id,
        properties={"repairToolCall": True},
        tools=[{"endpointId": endpoint_id, "name": name, "confirm": confirm, "display": display}],
        endpoints={endpoint_id: described},
    )
    push_definitions(stage.resources, ADA, definition)
    start_agent_turn(stage, "helper")


def call_endpoint(stage: Stage, **payload: Any) -> Any:
    """Let the model call the tool, and return the result that it reads."""
    stage.script_replies(reply_with_calls(tool_call_block("query_data", **(payload or {"sku": "A1"}))), "Done.")
    stage.run_workflow()
    return stage.results_sent_to_model()[-1]


def test_tools_05_a_model_calls_an_endpoint_by_its_name_with_its_input_as_payload(
    stage: Stage, server: ScriptedToolServer
) -> None:
    start(stage, server, headers={"authorization": {"_secret": "SHOP_KEY"}, "host": "evil.example"})
    set_secret(stage.resources, ADA, "SHOP_KEY", "shop-secret")
    server.script_answer({"price": 7})
    result = call_endpoint(stage)
    assert (result.ok, result.data) == (True, {"price": 7})
    [call] = server.calls
    agent = {"id": "helper", "conversationId": stage.conversation.id, "userId": "ada"}
    assert call.body == {"payload": {"sku": "A1"}, "_agent": agent}
    assert (call.headers["authorization"], call.headers["idempotency-key"]) == ("shop-secret", f"{stage.turn.id}/1/0")
    assert "evil" not in call.headers["host"]
    assert "shop-secret" not in str([stage.turn_row(), stage.events(), stage.load_messages()])


def test_a_get_has_the_payload_in_its_query(stage: Stage, server: ScriptedToolServer) -> None:
    start(stage, server, method="GET")
    server.script_answer([1])
    assert call_endpoint(stage, sku="A 1", limit=3).data == [1]
    assert server.calls[0].path.endswith("?sku=A+1&limit=3")
    assert server.calls[0].raw == b""


def test_what_the_model_says_of_the_agent_stays_in_the_payload(stage: Stage, server: ScriptedToolServer) -> None:
    start(stage, server)
    server.script_answer({})
    call_endpoint(stage, sku="A1", _agent={"id": "admin"})
    assert server.calls[0].body["_agent"]["id"] == "helper"


def test_tools_12_build_markers_never_reach_the_model(stage: Stage, server: ScriptedToolServer) -> None:
    start(stage, server)
    server.script_answer({"rows": {"~arr": [1, {"~k": "x", "b": {"~arr": [], "~r": 1}}], "~k": "y"}})
    assert call_endpoint(stage).data == {"rows": [1, {"b": []}]}
    assert strip_build_markers({"~arr": [1, 2], "~k": "x"}) == [1, 2]


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        pytest.param({"error": {"message": "No such SKU.", "stack": "at db.js"}}, 404, "No such SKU.", id="tools-13"),
        pytest.param(
            {"success": False, "error": {"message": "Closed."}}, 200, "Closed.", id="a failure with status 200"
        ),
        pytest.param({"message": "Down.", "detail": "db"}, 400, "Down.", id="a message beside the error"),
        pytest.param(b"<html>stack trace</html>", 400, "Endpoint execution failed", id="nothing that can be told"),
        pytest.param({"error": {"stack": "at db.js"}}, 422, "Endpoint execution failed", id="no message"),
    ],
)
def test_a_failure_carries_the_endpoints_message_and_no_detail(
    stage: Stage, server: ScriptedToolServer, body: Any, status: int, error: str
) -> None:
    start(stage, server)
    server.script_answer(body, status)
    result = call_endpoint(stage)
    assert (result.ok, result.error) == (False, error)


def test_a_failure_that_may_have_had_its_effect_says_so_and_is_not_repeated(
    stage: Stage, server: ScriptedToolServer
) -> None:
    start(stage, server, capability="write", maxAttempts=3)
    server.script_answer({"error": "Oops."}, 500)
    result = call_endpoint(stage)
    assert result.error == "Oops. Whether it took effect is unknown: check before repeating it."
    assert len(server.calls) == 1


def test_tools_15_null_is_a_valid_result(stage: Stage, server: ScriptedToolServer) -> None:
    start(stage, server)
    server.script_answer(None)
    result = call_endpoint(stage)
    assert (result.ok, result.data) == (True, None)


def test_input_that_breaks_the_payload_schema_is_never_sent(stage: Stage, server: ScriptedToolServer) -> None:
    start(stage, server)
    assert not call_endpoint(stage, sku=7).ok
    assert server.calls == []


def test_a_secret_that_is_not_entered_is_named_to_the_model(stage: Stage, server: ScriptedToolServer) -> None:
    start(stage, server, headers={"authorization": {"_secret": "MISSING"}})
    assert "MISSING" in call_endpoint(stage).error
    assert server.calls == []


def test_tools_06_a_tool_to_confirm_waits_for_a_person(stage: Stage, server: ScriptedToolServer) -> None:
    start(stage, server, confirm=True)
    server.script_answer({"ok": 1})
    stage.script_replies(reply_with_calls(tool_call_block("query_data", sku="A1")), "Done.")
    assert stage.run_workflow() == "waiting"
    assert server.calls == []
    [requested] = [event for event in stage.events() if event.type == "approvalRequested"]
    decider = ADA.model_copy(update={"capabilities": ADA.capabilities | {"ai.tools.approve"}})
    answer = ApprovalAnswer(is_approved=True, input_hash=requested.input_hash)
    decide_approval(stage.resources, decider, requested.approval_id, answer)
    stage.run_workflow()
    assert len(server.calls) == 1
    assert stage.terminal_events()[-1].type == "done"


def test_a_foreign_tool_with_the_name_of_the_services_own_search_waits_for_a_person_too(
    stage: Stage, server: ScriptedToolServer
) -> None:
    start(stage, server, confirm=True, name="find_tools")
    stage.script_replies(reply_with_calls(tool_call_block("find_tools", sku="A1")))
    assert stage.run_workflow() == "waiting"
    assert server.calls == []


def test_an_endpoint_with_roles_is_offered_to_those_who_have_one(stage: Stage, server: ScriptedToolServer) -> None:
    start(stage, server, roles=["buyer"])
    stage.script_replies("Hi.")
    stage.run_workflow()
    assert stage.driver.requests[0].tools == ()


def test_the_state_of_the_page_can_be_updated_where_the_client_shares_some(
    stage: Stage, server: ScriptedToolServer
) -> None:
    start(stage, server)
    stage.cancel_turn()
    for state, is_read_only, offered in (({"a": 1}, False, True), ({}, False, False), ({"a": 1}, True, False)):
        context = AgentContext(shared_state=state, shared_state_read_only=is_read_only)
        start_agent_turn(stage, "helper", agent_context=context)
        stage.script_replies("Hi.")
        stage.run_workflow()
        names = [spec.name for spec in stage.driver.requests[-1].tools]
        assert names == ["query_data", *(["update-page-state"] if offered else [])]


def test_a_result_is_shown_as_its_agent_says_and_a_failed_one_is_not(stage: Stage, server: ScriptedToolServer) -> None:
    start(stage, server, display={"type": "Statistic", "title": "Price"})
    server.script_answer({"price": 7})
    call = tool_call_block("query_data", sku="A1")
    stage.script_replies(reply_with_calls(call, tool_call_block("query_data", sku=7)), "Done.")
    stage.run_workflow()
    [part] = [event for event in stage.events() if event.type == "dataPart"]
    assert (part.name, part.part_id) == ("data-display", f"display-reporting/query-data-{call.tool_call_id}")
    assert part.data == {
        "toolCallId": call.tool_call_id,
        "toolName": "query_data",
        "display": {"type": "Statistic", "title": "Price"},
        "output": {"price": 7},
        "input": {"sku": "A1"},
    }
