"""Claim (design §4): one writer per conversation. Whoever takes it over ends the other turn in its own log first."""

import threading
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError

from fermata.conversations import message_store
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.domain.events import BridgeReadyEvent, CancelledEvent, ErrorEvent
from fermata.domain.model_io import TextDelta
from fermata.turns.start.start_turn import TurnPrompt, start_turn
from fermata.turns.turn import Turn
from fermata.turns.turn_log import read_entries_from
from tests.unit.turns import invariants
from tests.unit.turns.scenarios import make_patient_tool, run_until_waiting
from tests.unit.turns.stage import ADA, OK, Stage, reply_with_calls, reply_with_text, tool_call_block

TRANSACT = "dynamodb.TransactWriteItems"
BEN = Caller(tenant="bakery", user="ben", capabilities=ADA.capabilities)


def ends_of(stage: Stage, turn: Turn) -> list[str]:
    return [
        event.type
        for entry in read_entries_from(stage.resources, turn.pk, 1)
        for event in entry.events
        if isinstance(event, ErrorEvent | CancelledEvent)
    ]


def leave_behind(stage: Stage, **parts: Any) -> None:
    """Take what a turn left behind out of its partition: the row, and its log with it or not."""
    table = stage.resources.settings.bridges_table
    for item in stage.resources.tables.query_items(table, stage.turn.pk):
        if item["sk"] == "turn" or parts.get("log"):
            stage.resources.tables._client.delete_item(
                TableName=table, Key={"pk": {"S": item["pk"]}, "sk": {"S": item["sk"]}}
            )


def test_a_start_is_one_truth_message_turn_claim_and_the_first_line(stage: Stage) -> None:
    turn = stage.start_turn("Add a footer", idempotency_key="k")
    assert stage.claim() == turn.id
    assert stage.turn_row()["state"] == "open"
    assert stage.events() == [BridgeReadyEvent(bridge_id=turn.id)]
    assert [(message.role, message.turn) for message in stage.load_messages()] == [("user", turn.id)]
    assert stage.workflow.started == [(turn.id, 1)]


def test_a_start_that_is_refused_leaves_nothing_behind(stage: Stage) -> None:
    first = stage.start_turn()
    with pytest.raises(Conflict) as refused:
        start_turn(stage.resources, stage.caller, stage.make_prompt("And now?"))
    assert refused.value.retry_after
    assert [message.turn for message in stage.load_messages()] == [first.id]
    turn_rows = stage.resources.tables._client.scan(
        TableName=stage.resources.settings.bridges_table,
        FilterExpression="sk = :turn",
        ExpressionAttributeValues={":turn": {"S": "turn"}},
    )
    assert turn_rows["Count"] == 1
    assert len(stage.workflow.started) == 1


def test_the_question_is_durable_before_the_first_word_of_the_answer(stage: Stage) -> None:
    stage.start_turn("Add a footer")
    seen: list[str] = []
    stage.script_replies([lambda: seen.extend(m.role for m in stage.load_messages()), *reply_with_text("Hello.")])
    stage.run_workflow()
    assert seen == ["user"]


def test_two_prompts_at_once_make_one_turn_and_one_409(stage: Stage) -> None:
    barrier = threading.Barrier(2)
    done: list[Turn] = []
    refused: list[Conflict] = []

    def prompt(text: str) -> None:
        barrier.wait()
        try:
            done.append(start_turn(stage.resources, stage.caller, stage.make_prompt(text)).turn)
        except Conflict as conflict:
            refused.append(conflict)

    threads = [threading.Thread(target=prompt, args=(text,)) for text in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(done), len(refused)) == (1, 1)
    assert stage.claim() == done[0].id
    assert len(stage.load_messages()) == 1


def test_a_prompt_that_comes_between_anothers_look_and_its_start_loses(stage: Stage) -> None:
    stage.faults.interrupt(TRANSACT, lambda: stage.start_turn("faster"))
    with pytest.raises(Conflict):
        start_turn(stage.resources, stage.caller, stage.make_prompt("slower"))
    assert [message.content[0].text for message in stage.load_messages()] == ["faster"]  # type: ignore[union-attr]  # a text


def test_the_same_key_and_body_joins_the_turn_it_started(stage: Stage) -> None:
    first = stage.start_turn("Add a footer", idempotency_key="k")
    again = stage.start_turn("Add a footer", idempotency_key="k")
    assert again.id == first.id
    assert len(stage.load_messages()) == 1
    stage.script_replies("Done.")
    stage.run_workflow()
    assert stage.start_turn("Add a footer", idempotency_key="k").id == first.id, "also after its end"


def test_the_same_key_twice_at_once_joins_too(stage: Stage) -> None:
    stage.faults.interrupt(TRANSACT, lambda: stage.start_turn("Add a footer", idempotency_key="k"))
    joined = start_turn(stage.resources, stage.caller, stage.make_prompt("Add a footer", idempotency_key="k"))
    assert joined.turn.id == stage.turn.id
    assert joined.entry.events == (BridgeReadyEvent(bridge_id=stage.turn.id),)


def test_the_same_key_joins_when_its_twin_has_just_taken_the_claim(stage: Stage) -> None:
    twin = {"text": "Add a footer", "idempotency_key": "k"}
    stage.faults.interrupt("dynamodb.GetItem", lambda: stage.start_turn(**twin), contains="meta")
    joined = start_turn(stage.resources, stage.caller, stage.make_prompt(**twin))
    assert joined.turn.id == stage.turn.id


def test_the_same_key_with_another_body_is_a_conflict(stage: Stage) -> None:
    stage.start_turn("Add a footer", idempotency_key="k")
    with pytest.raises(Conflict, match="Idempotency-Key"):
        stage.start_turn("Add a header", idempotency_key="k")


def test_a_key_belongs_to_one_user(stage: Stage) -> None:
    stage.start_turn("Add a footer", idempotency_key="k")
    with pytest.raises(NotFound):
        start_turn(stage.resources, BEN, stage.make_prompt("Add a footer", idempotency_key="k"))


def test_a_key_is_forgotten_after_a_day(stage: Stage) -> None:
    first = stage.start_turn("Add a footer", idempotency_key="k")
    stage.cancel_turn()
    stage.pass_time(24 * 3600 + 1)
    assert stage.start_turn("Add a footer", idempotency_key="k").id != first.id


def test_a_conversation_of_somebody_else_does_not_exist(stage: Stage) -> None:
    with pytest.raises(NotFound):
        start_turn(stage.resources, BEN, stage.make_prompt())


def test_a_conversation_belongs_to_its_scope(stage: Stage) -> None:
    prompt = TurnPrompt("content", stage.conversation.id, stage.make_prompt().content, "fermata")
    with pytest.raises(InvalidRequest, match="site"):
        start_turn(stage.resources, stage.caller, prompt)


def test_a_start_whose_answer_was_lost_goes_on(stage: Stage) -> None:
    stage.faults.lose_response(TRANSACT)
    turn = stage.start_turn()
    assert stage.claim() == turn.id
    assert stage.workflow.started == [(turn.id, 1)]
    stage.script_replies("Hello.")
    stage.run_workflow()
    invariants.check_invariants(stage)


def test_a_start_that_conflicted_with_itself_goes_on(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first try was written and its answer lost; the second finds the claim taken, by this very turn."""
    monkeypatch.setattr("fermata.aws.dynamodb.time.sleep", lambda _seconds: None)
    client = stage.resources.tables._client
    transact = client.transact_write_items

    def twice(**request: Any) -> Any:
        monkeypatch.setattr(client, "transact_write_items", transact)
        transact(**request)
        return transact(**request)

    monkeypatch.setattr(client, "transact_write_items", twice)
    turn = stage.start_turn()
    assert stage.claim() == turn.id
    assert len(stage.workflow.started) == 1


def test_a_start_that_never_arrived_is_told_and_leaves_the_conversation_free(stage: Stage) -> None:
    stage.faults.lose_request(TRANSACT)
    with pytest.raises(ConnectionClosedError):
        stage.start_turn()
    assert stage.claim() is None
    assert stage.start_turn()


def test_a_turn_that_works_is_not_taken_over(stage: Stage) -> None:
    stage.start_turn()
    stage.pass_time(899)
    with pytest.raises(Conflict):
        stage.start_turn("And now?")


def test_a_turn_silent_for_15_minutes_is_ended_in_its_own_log_before_the_claim_moves(stage: Stage) -> None:
    first = stage.start_turn()
    stage.script_replies(
        [TextDelta(text="Hel"), lambda: stage.pass_time(901), take_over(stage), *reply_with_text("lo.")]
    )
    stage.advance_turn()
    assert stage.turn.id != first.id
    assert ends_of(stage, first) == ["error"]
    assert stage.claim() == stage.turn.id
    positions = [message.position for message in stage.load_messages()]
    assert positions == [0, 1, 2], "question, what was said until then, the next question"


def take_over(stage: Stage) -> Any:
    return lambda: stage.start_turn("And now?")


def test_a_turn_with_an_open_pause_is_not_over_age_however_long_it_waits(stage: Stage) -> None:
    stage.add_tools(make_patient_tool())
    run_until_waiting(stage, "ask_the_baker")
    stage.pass_time(86000)
    with pytest.raises(Conflict):
        stage.start_turn("And now?")
    stage.answer_request(OK)


def test_a_pause_whose_time_is_over_still_has_15_minutes_to_be_seen_to(stage: Stage) -> None:
    stage.add_tools(make_patient_tool())
    run_until_waiting(stage, "ask_the_baker")
    first = stage.turn
    stage.pass_time(86400 + 60)
    with pytest.raises(Conflict):
        stage.start_turn("And now?")
    stage.pass_time(900)
    stage.start_turn("And now?")
    assert ends_of(stage, first) == ["error"]


def test_two_prompts_that_take_over_at_once_make_one_turn(stage: Stage) -> None:
    first = stage.start_turn()
    stage.pass_time(901)
    stage.faults.interrupt(TRANSACT, lambda: stage.start_turn("faster"))
    with pytest.raises(Conflict):
        start_turn(stage.resources, stage.caller, stage.make_prompt("slower"))
    assert ends_of(stage, first) == ["error"]
    assert stage.claim() == stage.turn.id


def test_an_instatic_prompt_interrupts_its_users_turn_after_two_seconds(stage: Stage) -> None:
    first = stage.start_turn(dialect="instatic")
    with pytest.raises(Conflict):
        stage.start_turn("And now?", dialect="instatic")
    stage.pass_time(2.1)
    stage.start_turn("And now?", dialect="instatic")
    assert ends_of(stage, first) == ["cancelled"]


def test_a_claim_of_a_turn_that_is_no_longer_remembered_is_free(stage: Stage) -> None:
    first = stage.start_turn()
    leave_behind(stage, log=True)
    stage.start_turn("And now?")
    assert stage.claim() == stage.turn.id != first.id
    stage.script_replies("Hello.")
    stage.run_workflow()
    invariants.check_invariants(stage)


def test_a_turn_that_never_let_go_of_its_claim_keeps_the_messages_it_wrote(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="a"), text="I delete."))
    stage.run_workflow()
    leave_behind(stage)
    stage.start_turn("And now?")
    said = [(message.position, message.role) for message in stage.load_messages()]
    assert said == [(0, "user"), (1, "assistant"), (3, "user")]
    assert stage.load_conversation().next_position == 4


def test_a_claim_that_another_prompt_took_meanwhile_is_not_free(stage: Stage) -> None:
    stage.start_turn()
    leave_behind(stage, log=True)
    stage.faults.interrupt(TRANSACT, lambda: stage.start_turn("faster"))
    with pytest.raises(Conflict):
        start_turn(stage.resources, stage.caller, stage.make_prompt("slower"))
    assert stage.claim() == stage.turn.id


def test_an_end_touches_no_claim_but_its_own(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("Hello.")
    table, pk = (
        stage.resources.settings.conversations_table,
        message_store.conversation_partition("bakery", stage.conversation.id),
    )
    stage.resources.tables._client.update_item(
        TableName=table,
        Key={"pk": {"S": pk}, "sk": {"S": "meta"}},
        UpdateExpression="SET claim = :other",
        ExpressionAttributeValues={":other": {"S": "another-turn"}},
    )
    assert stage.run_workflow() == "finished"
    assert stage.claim() == "another-turn"
    assert stage.event_types()[-1] == "done"
    assert [message.role for message in stage.load_messages()] == ["user"], "the other turn's positions are not ours"
    assert len(stage.ledger_rows()) == 1


def test_a_turn_whose_conversation_was_deleted_ends_all_the_same(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("Hello.")
    table, pk = (
        stage.resources.settings.conversations_table,
        message_store.conversation_partition("bakery", stage.conversation.id),
    )
    stage.resources.tables._client.delete_item(TableName=table, Key={"pk": {"S": pk}, "sk": {"S": "meta"}})
    assert stage.run_workflow() == "finished"
    assert stage.event_types()[-1] == "done"
    assert "open" not in stage.turn_row()
    assert stage.resources.tables.get_item(table, pk, "meta") is None
    assert len(stage.ledger_rows()) == 1


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Add a  footer\nplease", "Add a footer please"),
        ("🦀" * 61, "🦀" * 60 + "…"),
    ],
)
def test_a_thread_without_a_name_is_called_after_its_first_prompt(stage: Stage, text: str, title: str) -> None:
    stage.start_turn(text)
    stage.cancel_turn()
    stage.start_turn("Something else")
    assert stage.load_conversation().title == title


def test_a_site_with_thousands_of_pages_can_be_asked_about(stage: Stage) -> None:
    pages = [{"id": f"page-{number}", "slug": f"slug-{number}", "title": f"Page {number}"} for number in range(20_000)]
    stage.start_turn(snapshot={"site": {"pages": pages}, "page": {"id": "page-0"}})
    stage.script_replies("Hello.")
    assert stage.run_workflow() == "finished"
    assert len(stage.driver.requests[0].volatile) < 30_000
