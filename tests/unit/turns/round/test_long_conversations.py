"""What a turn costs does not grow with the conversation it is in."""

from typing import Any

import pytest

from fermata.aws.dynamodb import Update
from fermata.conversations import message_store
from fermata.pricing import catalogue
from fermata.pricing.catalogue import PriceCatalogue, PricedModel
from fermata.pricing.prices import Price
from tests.unit.conversations.message_builders import ThreadBuilder, store_messages
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block

WINDOW = 20_000


def furnished(stage: Stage, turns: int) -> Stage:
    """In a conversation of so many turns, for a model whose window is full long before its beginning."""
    price = Price(input_per_mtok=1, output_per_mtok=1)
    offers = {"model-1": PricedModel(price=price, context_window=WINDOW)}
    catalogue.store_catalogue(stage.resources, PriceCatalogue(refreshed_at=1, priced_models=offers))
    thread = ThreadBuilder()
    for number in range(turns):
        thread.add_prompt(f"Prompt {number:04d} " + "x" * 1_000)
        thread.add_reply(f"Answer {number:04d} " + "y" * 1_000)
    store_messages(stage.resources, "bakery", stage.conversation.id, thread.messages)
    table, place = (
        stage.resources.settings.conversations_table,
        message_store.conversation_partition("bakery", stage.conversation.id),
    )
    stage.resources.tables.write_items(
        Update(table, place, "meta", "SET next_position = :n", {":n": len(thread.messages)})
    )
    return stage


def cost_of_a_turn(stage: Stage) -> tuple[list[str], int, int]:
    """Calls of AWS, bytes they answered, and characters sent to the model, of a turn with a browser's tool."""
    made: list[str] = []
    answered: list[int] = []

    def note(http_response: Any, model: Any, **_: Any) -> None:
        made.append(model.name)
        answered.append(len(http_response.content))

    events = stage.resources.tables._client.meta.events
    events.register("after-call", note)
    stage.start_turn("Add a footer")
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="root", html="<p>x</p>")), "Done.")
    stage.run_workflow()
    stage.answer_request(OK)
    stage.run_workflow()
    events.unregister("after-call", note)
    sent = sum(len(str(message)) for ask in stage.driver.requests for message in ask.messages)
    return made, sum(answered), sent


def test_a_turn_in_a_thread_of_two_thousand_messages_costs_what_one_in_a_thread_of_two_hundred_does(
    staged: MakeStage,
) -> None:
    calls_of_short, read_of_short, sent_of_short = cost_of_a_turn(furnished(staged(), 100))
    calls_of_long, read_of_long, sent_of_long = cost_of_a_turn(furnished(staged(), 1_000))
    assert calls_of_long == calls_of_short
    assert read_of_long == pytest.approx(read_of_short, rel=0.01)
    assert sent_of_long == pytest.approx(sent_of_short, rel=0.01)
