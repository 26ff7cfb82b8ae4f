"""The agents of examples/agents compile without a word, are pushed, and answer prompts."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fermata.agents.definitions.agent_list import read_agent_list
from fermata.agents.definitions.definition_problems import SourceDocument
from fermata.agents.definitions.definition_store import load_definition
from fermata.agents.definitions.tenant_secrets import set_secret
from fermata.domain.page_context import AgentContext
from fermata.drivers.transport import url_guard
from fermata.turns.push_tenant_agents import AgentPush, parse_pushed_files, push_agents
from fermata_client.agent_files.agent_files import read_agent_files
from fermata_client.agent_files.check_agent_files import build_format_schema, check_agent_files
from tests.agent_definitions import push_definitions, start_agent_turn
from tests.unit.turns.stage import ADA, Stage

ROOT = Path(__file__).parents[4]
FILES = read_agent_files(ROOT / "examples" / "agents")


@pytest.fixture
def pushed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(url_guard, "_resolve", lambda _host, _port: ("93.184.216.34",))
    push_definitions(stage.resources, ADA)
    for name in ("ANTHROPIC_KEY", "DESK_KEY"):
        set_secret(stage.resources, ADA, name, f"value of {name}")
    body: dict[str, Any] = FILES.to_body()
    push = AgentPush(
        documents=tuple(SourceDocument(one["name"], one["content"], one["lines"]) for one in body["files"]),
        folders={name: parse_pushed_files(files) for name, files in body["folders"].items()},
    )
    assert push_agents(stage.resources, ADA, push).warnings == ()
    return stage


def test_the_examples_have_no_mistakes() -> None:
    assert check_agent_files(FILES)[0] == []


def test_the_published_schema_is_that_of_the_code_and_accepts_the_examples() -> None:
    published = json.loads((ROOT / "docs" / "agents.schema.json").read_text())
    assert published == build_format_schema()
    validator = jsonschema.Draft202012Validator(published)
    for document in FILES.documents.values():
        assert list(validator.iter_errors(document.value)) == []
    wrong = {"agents": [{"id": "a", "type": "ClaudeAgent", "connectionId": "c", "properties": {"topK": 0}, "x": 1}]}
    assert not validator.is_valid(wrong)


@pytest.mark.parametrize(
    ("agent_id", "instructions"),
    [
        ("support", "You answer questions of customers of a bakery."),
        ("form-filling", "Rhyme."),
        ("newsroom", "You publish the monthly newsletter of a bakery."),
    ],
)
def test_an_example_answers_a_prompt(pushed: Stage, agent_id: str, instructions: str) -> None:
    context = AgentContext(page_id="contact", shared_state={"instructions": "Rhyme.", "name": ""})
    start_agent_turn(pushed, agent_id, "Hello", agent_context=context)
    pushed.script_replies("Good day.")
    assert pushed.run_workflow() == "finished"
    assert instructions in pushed.driver.requests[-1].system
    assert pushed.streamed_text() == "Good day."


def test_pushed_examples_hold_no_secret(pushed: Stage) -> None:
    agents = read_agent_list(pushed.resources, ADA.tenant).agents
    definitions = [
        load_definition(pushed.resources, ADA.tenant, f"{name}@{one.version}") for name, one in agents.items()
    ]
    assert sorted(agents) == ["form-filling", "newsroom", "researcher", "support", "writer"]
    assert "value of" not in json.dumps([one.to_wire() for one in definitions])
