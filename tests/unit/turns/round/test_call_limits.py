"""Limits of an agent's requests: its own, else those of its connection, else none."""

from typing import Any

from fermata.agents.definitions.agent_definition import AgentDefinition
from fermata.agents.definitions.compile_definitions import compile_definitions
from fermata.agents.definitions.definition_problems import SourceDocument
from fermata.agents.definitions.tenant_secrets import set_secret
from tests.agent_definitions import push_definitions, start_agent_turn
from tests.unit.turns.stage import ADA, Stage


def compile_agent(connection: dict[str, Any], **properties: Any) -> AgentDefinition:
    agent = {"id": "helper", "type": "ClaudeAgent", "connectionId": "claude"}
    key = {"apiKey": {"_secret": "KEY"}}
    content = {
        "agents": [agent | {"properties": {"model": "model-1"} | properties}],
        "connections": [{"id": "claude", "type": "Anthropic", "properties": key | connection}],
    }
    return compile_definitions([SourceDocument("agents.yaml", content)]).definitions["helper"]


def start(stage: Stage, connection: dict[str, Any], **properties: Any) -> None:
    push_definitions(stage.resources, ADA, compile_agent(connection, **properties))
    set_secret(stage.resources, ADA, "KEY", "sk-ant-1")
    start_agent_turn(stage, "helper")


def test_calllimits_03_without_limits_a_request_has_only_those_of_the_deployment(stage: Stage) -> None:
    start(stage, {})
    stage.script_replies("Done.")
    stage.run_workflow()
    assert stage.driver.requests[-1].max_tokens == stage.resources.settings.max_answer_tokens
    assert stage.turn.agent_properties == {}


def test_a_request_has_the_limit_of_its_connection_unless_the_agent_has_one(stage: Stage) -> None:
    for properties, limit in (({}, 77), ({"maxOutputTokens": 55}, 55)):
        start(stage, {"maxOutputTokens": 77}, **properties)
        stage.script_replies("Done.")
        stage.run_workflow()
        assert stage.driver.requests[-1].max_tokens == limit


def test_calllimits_05_a_provider_that_never_answers_ends_the_turn_as_a_timeout(stage: Stage) -> None:
    start(stage, {"timeout": 20}, maxRetries=0)
    stage.script_replies([stage.connection.block_until_aborted])
    assert stage.run_workflow() == "finished"
    assert stage.terminal_events()[-1].code == "timeout"  # type: ignore[attr-defined]


def test_calllimits_06_a_turn_runs_to_its_end_without_its_client(stage: Stage) -> None:
    start(stage, {})
    stage.script_replies("Done.")
    assert stage.run_workflow() == "finished"  # nobody reads its log
    assert stage.event_types()[-1] == "done"
