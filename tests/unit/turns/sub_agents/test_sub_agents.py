"""A sub-agent works in a turn of its own, and its end answers the call of the turn that has asked."""

from decimal import Decimal

from fermata.conversations import message_store
from fermata.domain.blocks import TextBlock, ToolResultBlock
from fermata.domain.events import DoneEvent, SubAgentStartedEvent, ToolResultEvent
from fermata.drivers.protocols.shared_encoding import encode_result
from fermata.turns.read.turn_status import get_turn_status
from tests.unit.turns.stage import reply_with_calls
from tests.unit.turns.sub_agents.sub_agent_stage import Family, ask


def test_the_answer_of_a_sub_agent_is_read_by_the_agent_that_has_asked(family: Family) -> None:
    turn = family.start("How many?")
    family.script("site", reply_with_calls(ask("data", "Count the tables")), "There are three.")
    family.script("data", "Three.")
    family.run()
    (child,) = family.children()
    assert isinstance(family.end(turn), DoneEvent)
    assert isinstance(family.end(child), DoneEvent)
    assert [agent for agent, _ in family.driver.requests] == ["site", "data", "site"]
    (_, asked), (_, last) = family.driver.requests[1:]
    assert [message.content for message in asked.messages] == [(TextBlock(text="Count the tables"),)]
    result = last.messages[-1].content[0]
    assert isinstance(result, ToolResultBlock)
    assert encode_result(result) == "Three."
    assert result.data == {"_subAgent": True, "agentId": "data", "text": "Three."}
    assert child.parent is not None
    assert (child.parent.turn, child.depth, child.scope, child.user) == (turn.id, 1, "data", turn.user)


def test_a_sub_agent_adds_the_states_of_its_own_execution_only(family: Family) -> None:
    turn = family.start()
    family.script("site", reply_with_calls(ask("data", "Count")), "Done.")
    family.script("data", "Three.")
    family.run()
    (child,) = family.children()
    assert family.transitions == {turn.id: 1, child.id: 1}


def test_sub_agents_of_a_round_work_at_the_same_time_and_answer_in_any_order(family: Family) -> None:
    turn = family.start()
    family.script("site", reply_with_calls(ask("data", "One"), ask("content", "Two"), ask("data", "Three")), "Done.")
    family.script("data", "First.", "Third.")
    family.script("content", "Second.")
    family.step(turn.id)
    children = family.children()
    assert [child.scope for child in children] == ["data", "content", "data"]
    for child in (children[1], children[0]):
        family.step(child.id)
    assert not family.is_over(turn)
    family.step(children[2].id)
    assert family.is_over(turn)
    results = [event for event in family.events() if isinstance(event, ToolResultEvent)]
    assert [event.tool_name for event in results] == ["ask_content", "ask_data", "ask_data"]
    assert all(event.ok for event in results)
    assert family.transitions[turn.id] == 1


def test_usage_of_sub_agents_counts_once_in_the_turn_and_the_conversation(family: Family) -> None:
    family.stage.set_price(input_per_mtok=Decimal(1), output_per_mtok=Decimal(1))
    turn = family.start()
    family.script("site", reply_with_calls(ask("content", "One"), ask("data", "Two")), "Done.")
    family.script("content", reply_with_calls(ask("data", "Deeper")), "Second.")
    family.script("data", "First.", "Deep.")
    family.run()
    usage = family.usage(turn)
    assert (usage.prompt_tokens, usage.completion_tokens) == (60, 30)
    conversation = family.stage.load_conversation()
    assert (conversation.prompt_tokens_total, conversation.completion_tokens_total) == (60, 30)
    table = family.resources.settings.usage_table
    turns = [turn, *family.children(turn), *family.children(family.children(turn)[0])]
    rows = [row for one in turns for row in family.resources.tables.query_items(table, one.pk)]
    requests = [row for row in rows if "prompt" in row]
    assert len(turns) == 4
    assert {row["conversation"] for row in requests} == {family.stage.conversation.id}
    assert conversation.cost_usd_total == sum(row["cost"] for row in requests)


def test_messages_of_a_sub_agent_are_stored_with_the_conversation_and_not_shown_in_it(family: Family) -> None:
    family.start("Hello")
    family.script("site", reply_with_calls(ask("data", "Count")), "Done.")
    family.script("data", "Three.")
    family.run()
    (child,) = family.children()
    tenant = family.stage.caller.tenant
    shown = family.stage.load_messages()
    own = message_store.load_messages(family.resources, tenant, child.conversation)
    assert [message.role for message in shown] == ["user", "assistant", "tool", "assistant"]
    assert [message.content for message in own] == [(TextBlock(text="Count"),), (TextBlock(text="Three."),)]
    rows = family.stage.stored_items(f"t#{tenant}#c#{family.stage.conversation.id}", "conversations")
    assert [row["sk"] for row in rows if row["sk"].startswith("s#")] == [
        f"s#{child.id}#m#00000000",
        f"s#{child.id}#m#00000001",
        f"s#{child.id}#meta",
    ]


def test_a_turn_runs_while_its_sub_agent_works_whose_view_names_it(family: Family) -> None:
    turn = family.start()
    family.script("site", reply_with_calls(ask("data", "Count")), "Done.")
    family.step(turn.id)
    (child,) = family.children()
    status = family.stage.show_turn()
    assert (status["status"], status["pending"], "parentBridgeId" in status) == ("running", [], False)
    shown = get_turn_status(family.resources, family.stage.caller, child.id)
    assert (shown["status"], shown["parentBridgeId"]) == ("running", turn.id)
    assert shown["conversationId"] == status["conversationId"]


def test_the_log_of_a_turn_names_the_turns_of_its_sub_agents(family: Family) -> None:
    family.start()
    family.script("site", reply_with_calls(ask("data", "Count")), "Done.")
    family.script("data", "Three.")
    family.run()
    started = [event for event in family.events() if isinstance(event, SubAgentStartedEvent)]
    assert [(event.tool_name, event.agent) for event in started] == [("ask_data", "data")]
