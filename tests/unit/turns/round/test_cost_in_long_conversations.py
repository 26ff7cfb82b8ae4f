"""The cost of a turn does not grow with the length of its conversation."""

from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Update
from fermata.conversations import message_store
from fermata.pricing import catalogue
from fermata.pricing.catalogue import PriceCatalogue, PricedModel
from fermata.pricing.token_cost import Price
from tests.unit.conversations.message_builders import ThreadBuilder, store_messages
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block

WINDOW = 20_000


def make_conversation(stage: Stage, turns: int) -> Stage:
    """Fill the stage's conversation with turns, many more than the model's window holds."""
    price = Price(input_per_mtok=1, output_per_mtok=1)
    offers = {"model-1": PricedModel(price=price, context_window=WINDOW)}
    catalogue.store_catalogue(stage.resources, PriceCatalogue(refreshed_at=1, priced_models=offers))
    thread = ThreadBuilder()
    for number in range(turns):
        thread.add_prompt(f"Prompt {number:04d} " + "x" * 1_000)
        thread.add_reply(f"Answer {number:04d} " + "y" * 1_000)
    store_messages(stage.resources, "bakery", stage.conversation.id, thread.messages)
    table = stage.resources.settings.conversations_table
    place = message_store.conversation_partition("bakery", stage.conversation.id)
    stage.resources.tables.write_items(
        Update(table, place, "meta", "SET next_position = :n", {":n": len(thread.messages)})
    )
    return stage


def measure_turn(stage: Stage) -> tuple[list[str], int, int]:
    """Run a turn with a browser call. Returns AWS operations, bytes of the responses, characters sent to the model.

    The operations are sorted: some are made side by side, and come in any order.
    """
    operations: list[str] = []
    response_sizes: list[int] = []

    def note(http_response: Any, model: Any, **_: Any) -> None:
        operations.append(model.name)
        response_sizes.append(len(http_response.content))

    events = stage.resources.tables._client.meta.events
    events.register("after-call", note)
    stage.start_turn("Add a footer")
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="root", html="<p>x</p>")), "Done.")
    stage.run_workflow()
    stage.answer_request(OK)
    stage.run_workflow()
    events.unregister("after-call", note)
    sent = sum(len(str(message)) for request in stage.driver.requests for message in request.messages)
    return sorted(operations), sum(response_sizes), sent


def test_a_turn_costs_the_same_in_a_conversation_of_200_and_of_2000_messages(
    staged: MakeStage,
) -> None:
    calls_of_short, read_of_short, sent_of_short = measure_turn(make_conversation(staged(), 100))
    calls_of_long, read_of_long, sent_of_long = measure_turn(make_conversation(staged(), 1_000))
    assert calls_of_long == calls_of_short
    assert read_of_long == pytest.approx(read_of_short, rel=0.01)
    assert sent_of_long == pytest.approx(sent_of_short, rel=0.01)
