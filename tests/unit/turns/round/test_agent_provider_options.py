"""Options of an agent reach its model requests, with secrets that nothing stores."""

from typing import Any

from fermata.agents.definitions.tenant_secrets import set_secret
from fermata.domain.events import ErrorEvent
from tests.agent_definitions import make_definition, push_definitions, start_agent_turn
from tests.unit.turns.stage import ADA, Stage

OPTIONS: dict[str, Any] = {"gateway": {"byok": {"anthropic": [{"apiKey": {"_secret": "BYOK"}}]}, "tags": ["a"]}}


def push_agent_with_options(stage: Stage) -> None:
    properties = {"providerOptions": OPTIONS}
    push_definitions(stage.resources, ADA, make_definition(credential=stage.credential.id, properties=properties))


def test_options_with_their_secrets_are_part_of_each_request_and_of_no_row(stage: Stage) -> None:
    push_agent_with_options(stage)
    set_secret(stage.resources, ADA, "BYOK", "sk-of-the-tenant")
    start_agent_turn(stage, "helper", "Hello")
    stage.script_replies("Hi.")
    assert stage.run_workflow() == "finished"
    sent = stage.driver.requests[-1].provider_options
    assert sent == {"gateway": {"byok": {"anthropic": [{"apiKey": "sk-of-the-tenant"}]}, "tags": ["a"]}}
    assert "sk-of-the-tenant" not in str([stage.turn_row(), stage.stored_items(stage.turn.pk), stage.events()])


def test_a_secret_that_is_not_entered_ends_the_turn_with_its_name(stage: Stage) -> None:
    push_agent_with_options(stage)
    start_agent_turn(stage, "helper", "Hello")
    stage.run_workflow()
    end = stage.terminal_events()[-1]
    assert isinstance(end, ErrorEvent)
    assert (end.code, "BYOK" in end.message) == ("provider_auth", True)
    assert not stage.driver.requests
