"""Push agents of a tenant, and run turns with them.

agent = make_definition("helper", instructions="Help.")
push_definitions(stage.resources, stage.caller, agent)
start_agent_turn(stage, "helper", "Hello")          # a new conversation in the scope agent:helper
stage.script_replies("Hi.")
stage.run_workflow()
"""

from typing import Any

from fermata.agents.definitions.agent_definition import AgentDefinition
from fermata.agents.definitions.definition_store import AgentChanges, replace_agents
from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.resources import Resources
from fermata.conversations import conversation_store
from fermata.domain.agent_ids import make_agent_scope
from fermata.domain.blocks import TextBlock
from fermata.domain.caller import Caller
from fermata.turns.start.start_turn import start_turn
from fermata.turns.start.turn_prompt import TurnPrompt
from fermata.turns.turn import Turn


def make_definition(
    agent_id: str = "helper",
    *,
    credential: str = "",
    properties: dict[str, Any] | None = None,
    **members: Any,
) -> AgentDefinition:
    """Return a compiled agent with a connection to Anthropic. `members` are further members of the definition."""
    connection: dict[str, Any] = {"id": "claude", "type": "Anthropic", "credential": credential}
    if not credential:
        connection["properties"] = {"apiKey": {"_secret": "ANTHROPIC_KEY"}}
    wire = {"id": agent_id, "type": "ClaudeAgent", "connection": connection}
    wire["properties"] = {"model": "model-1", "instructions": "You help."} | (properties or {})
    return AgentDefinition.from_wire(wire | members)


def push_definitions(resources: Resources, caller: Caller, *definitions: AgentDefinition) -> AgentChanges:
    """Make these the agents of the caller's tenant, which is registered if it is not."""
    table, pk = resources.settings.settings_table, f"t#{caller.tenant}"
    if resources.tables.get_item(table, pk, "tenant") is None:
        resources.tables.write_items(Put(table, {"pk": pk, "sk": "tenant", "v": 1}, if_absent=True))
    return replace_agents(resources, caller, {one.id: one for one in definitions})


def start_agent_turn(stage: Any, agent_id: str, text: str = "Do something", **members: Any) -> Turn:
    """Start a turn of a tenant's agent, in a new conversation or a given one. It becomes the stage's turn."""
    scope = make_agent_scope(agent_id)
    stage.conversation = members.pop("conversation", None) or conversation_store.create_conversation(
        stage.resources, stage.caller, scope, None, None, ""
    )
    prompt = TurnPrompt(
        scope=scope,
        conversation_id=stage.conversation.id,
        content=(TextBlock(text=text), *members.pop("pictures", ())),
        dialect=members.pop("dialect", "fermata"),
        **members,
    )
    turn = start_turn(stage.resources, stage.caller, prompt).turn
    stage.adopt_turn(turn)
    return turn
