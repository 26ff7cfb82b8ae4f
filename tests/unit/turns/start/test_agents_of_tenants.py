"""A tenant's own agent answers prompts: its model, instructions and key count, in the version of the turn's start."""

import json
from typing import Any

import pytest

from fermata.agents.definitions.definition_storage_keys import build_definition_blob_key
from fermata.agents.definitions.tenant_secrets import set_secret
from fermata.domain.caller import Caller
from fermata.domain.errors import InvalidRequest, NotFound, Unprocessable
from fermata.domain.page_context import AgentContext
from tests.agent_definitions import make_definition, push_definitions, start_agent_turn
from tests.unit.turns.stage import ADA, Stage


def read_system_prompt(stage: Stage) -> str:
    return stage.driver.requests[-1].system


def test_a_turn_of_a_tenants_agent_has_its_model_and_instructions(stage: Stage) -> None:
    push_definitions(stage.resources, ADA, make_definition(credential=stage.credential.id))
    turn = start_agent_turn(stage, "helper", "Hello")
    stage.script_replies("Hi.")
    assert stage.run_workflow() == "finished"
    assert (turn.scope, turn.model, turn.credential) == ("agent:helper", "model-1", stage.credential.id)
    assert read_system_prompt(stage).startswith("You help.")
    assert stage.streamed_text() == "Hi."


def test_a_credential_can_be_named_by_its_label(stage: Stage) -> None:
    push_definitions(stage.resources, ADA, make_definition(credential="key"))
    assert start_agent_turn(stage, "helper").credential == stage.credential.id


def test_a_push_changes_nothing_for_a_turn_that_runs(stage: Stage) -> None:
    push_definitions(stage.resources, ADA, make_definition(credential=stage.credential.id))
    start_agent_turn(stage, "helper")
    push_definitions(stage.resources, ADA, make_definition("another", credential=stage.credential.id))
    stage.script_replies("Done.")
    assert stage.run_workflow() == "finished"
    assert read_system_prompt(stage).startswith("You help.")
    with pytest.raises(NotFound):
        start_agent_turn(stage, "helper")


def test_operators_are_resolved_once_from_the_caller_and_what_the_page_says(stage: Stage) -> None:
    properties: dict[str, Any] = {
        "instructions": {"_payload": "sharedState.rules"},
        "temperature": {"_payload": {"key": "urlQuery.heat", "default": 0.5}},
    }
    push_definitions(
        stage.resources,
        ADA,
        make_definition(
            credential=stage.credential.id,
            properties=properties,
            dynamicProperties=["instructions", "temperature"],
        ),
    )
    context = AgentContext(page_id="p", shared_state={"rules": "Rhyme."})
    turn = start_agent_turn(stage, "helper", agent_context=context)
    stage.script_replies("Done.")
    stage.run_workflow()
    assert read_system_prompt(stage).startswith("Rhyme.")
    assert turn.agent_properties == {"instructions": "Rhyme.", "temperature": 0.5}
    assert (turn.agent_context.user_id, turn.agent_context.conversation_id) == ("ada", stage.conversation.id)


def test_a_property_that_comes_out_wrong_is_refused_before_anything_is_written(stage: Stage) -> None:
    definition = make_definition(
        credential=stage.credential.id,
        properties={"temperature": {"_payload": "urlQuery.heat"}},
        dynamicProperties=["temperature"],
    )
    push_definitions(stage.resources, ADA, definition)
    with pytest.raises(Unprocessable, match="temperature"):
        start_agent_turn(stage, "helper", agent_context=AgentContext(url_query={"heat": 99}))


def test_the_key_of_a_connection_may_be_a_secret_that_no_row_of_the_turn_holds(stage: Stage) -> None:
    push_definitions(stage.resources, ADA, make_definition())
    set_secret(stage.resources, ADA, "ANTHROPIC_KEY", "sk-ant-secret")
    turn = start_agent_turn(stage, "helper")
    stage.script_replies("Done.")
    assert stage.run_workflow() == "finished"
    assert turn.credential == "connection:claude"
    assert "sk-ant-secret" not in str([stage.turn_row(), stage.stored_items("t#bakery", "settings"), stage.events()])


def test_a_secret_that_is_not_entered_ends_the_turn_with_its_name(stage: Stage) -> None:
    push_definitions(stage.resources, ADA, make_definition())
    start_agent_turn(stage, "helper")
    stage.run_workflow()
    assert "ANTHROPIC_KEY" in str(stage.terminal_events()[-1])


def test_an_agent_that_one_may_not_ask_answers_as_an_unknown_one(stage: Stage) -> None:
    access = {"isPublic": False, "roles": ["editor"]}
    push_definitions(stage.resources, ADA, make_definition(credential=stage.credential.id, access=access))
    with pytest.raises(NotFound) as refused:
        start_agent_turn(stage, "helper")
    with pytest.raises(NotFound) as unknown:
        start_agent_turn(stage, "nobody")
    assert (refused.value.message, refused.value.status) == (unknown.value.message, unknown.value.status)
    stage.caller = Caller(**(ADA.model_dump() | {"capabilities": ADA.capabilities | {"editor"}}))
    assert start_agent_turn(stage, "helper").agent.startswith("helper@")


def test_a_version_that_an_older_release_has_stored_keeps_its_name(stage: Stage) -> None:
    definition = make_definition(credential=stage.credential.id)
    push_definitions(stage.resources, ADA, definition)
    stored = json.loads(definition.canonical_json)
    del stored["mcp"]  # a member that the older release did not know
    key = build_definition_blob_key(ADA.tenant, definition.reference)
    stage.resources.blobs.put_file(key, json.dumps(stored).encode(), "application/json")
    assert start_agent_turn(stage, "helper").agent == definition.reference
    stage.script_replies("Done.")
    assert stage.run_workflow() == "finished"


def test_an_agent_whose_definition_is_gone_is_not_found(stage: Stage) -> None:
    push_definitions(stage.resources, ADA, make_definition(credential=stage.credential.id))
    stage.resources.blobs.delete_folder(f"agents/{ADA.tenant}")
    with pytest.raises(NotFound, match="Push it again"):
        start_agent_turn(stage, "helper")


def test_a_page_shares_no_more_than_fits_into_a_turn(stage: Stage) -> None:
    push_definitions(stage.resources, ADA, make_definition(credential=stage.credential.id))
    with pytest.raises(InvalidRequest, match="characters"):
        start_agent_turn(stage, "helper", agent_context=AgentContext(shared_state={"text": "x" * 100_000}))
