"""Claim (design §4): one writer per conversation. Whoever takes it over ends the other turn in its own log first."""

import threading
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError

from fermata.conversations import rows
from fermata.turns import log as logs
from fermata.turns import starting
from fermata.turns.turn import Turn
from fermata.words.caller import Caller
from fermata.words.errors import Conflict, Invalid, NotFound
from fermata.words.events import BridgeReady, Cancelled, TurnError
from fermata.words.model import TextDelta
from tests.unit.turns import truth
from tests.unit.turns.scenes import asking, patient_tool
from tests.unit.turns.stage import ADA, OK, Stage, call, calls, says

TRANSACT = "dynamodb.TransactWriteItems"
BEN = Caller(tenant="bakery", user="ben", capabilities=ADA.capabilities)


def ends_of(stage: Stage, turn: Turn) -> list[str]:
    return [
        event.type
        for entry in logs.since(stage.desk, turn.pk, 1)
        for event in entry.events
        if isinstance(event, TurnError | Cancelled)
    ]


def leave_behind(stage: Stage, **parts: Any) -> None:
    """Take what a turn left behind out of its partition: the row, and its log with it or not."""
    table = stage.desk.settings.bridges_table
    for item in stage.desk.tables.query(table, stage.turn.pk):
        if item["sk"] == "turn" or parts.get("log"):
            stage.desk.tables._client.delete_item(
                TableName=table, Key={"pk": {"S": item["pk"]}, "sk": {"S": item["sk"]}}
            )


def test_a_start_is_one_truth_message_turn_claim_and_the_first_line(stage: Stage) -> None:
    turn = stage.start("Add a footer", idempotency_key="k")
    assert stage.claim() == turn.id
    assert stage.turn_row()["state"] == "open"
    assert stage.events() == [BridgeReady(bridge_id=turn.id)]
    assert [(message.role, message.turn) for message in stage.messages()] == [("user", turn.id)]
    assert stage.workflow.started == [(turn.id, 1)]


def test_a_start_that_is_refused_leaves_nothing_behind(stage: Stage) -> None:
    first = stage.start()
    with pytest.raises(Conflict) as refused:
        starting.start(stage.desk, stage.caller, stage.prompt("And now?"))
    assert refused.value.retry_after
    assert [message.turn for message in stage.messages()] == [first.id]
    turn_rows = stage.desk.tables._client.scan(
        TableName=stage.desk.settings.bridges_table,
        FilterExpression="sk = :turn",
        ExpressionAttributeValues={":turn": {"S": "turn"}},
    )
    assert turn_rows["Count"] == 1
    assert len(stage.workflow.started) == 1


def test_the_question_is_durable_before_the_first_word_of_the_answer(stage: Stage) -> None:
    stage.start("Add a footer")
    seen: list[str] = []
    stage.says([lambda: seen.extend(m.role for m in stage.messages()), *says("Hello.")])
    stage.run()
    assert seen == ["user"]


def test_two_prompts_at_once_make_one_turn_and_one_409(stage: Stage) -> None:
    barrier = threading.Barrier(2)
    done: list[Turn] = []
    refused: list[Conflict] = []

    def prompt(text: str) -> None:
        barrier.wait()
        try:
            done.append(starting.start(stage.desk, stage.caller, stage.prompt(text)).turn)
        except Conflict as conflict:
            refused.append(conflict)

    threads = [threading.Thread(target=prompt, args=(text,)) for text in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(done), len(refused)) == (1, 1)
    assert stage.claim() == done[0].id
    assert len(stage.messages()) == 1


def test_a_prompt_that_comes_between_anothers_look_and_its_start_loses(stage: Stage) -> None:
    stage.seam.meanwhile(TRANSACT, lambda: stage.start("faster"))
    with pytest.raises(Conflict):
        starting.start(stage.desk, stage.caller, stage.prompt("slower"))
    assert [message.content[0].text for message in stage.messages()] == ["faster"]  # type: ignore[union-attr]  # a text


def test_the_same_key_and_body_joins_the_turn_it_started(stage: Stage) -> None:
    first = stage.start("Add a footer", idempotency_key="k")
    again = stage.start("Add a footer", idempotency_key="k")
    assert again.id == first.id
    assert len(stage.messages()) == 1
    stage.says("Done.")
    stage.run()
    assert stage.start("Add a footer", idempotency_key="k").id == first.id, "also after its end"


def test_the_same_key_twice_at_once_joins_too(stage: Stage) -> None:
    stage.seam.meanwhile(TRANSACT, lambda: stage.start("Add a footer", idempotency_key="k"))
    joined = starting.start(stage.desk, stage.caller, stage.prompt("Add a footer", idempotency_key="k"))
    assert joined.turn.id == stage.turn.id
    assert joined.entry.events == (BridgeReady(bridge_id=stage.turn.id),)


def test_the_same_key_joins_when_its_twin_has_just_taken_the_claim(stage: Stage) -> None:
    twin = {"text": "Add a footer", "idempotency_key": "k"}
    stage.seam.meanwhile("dynamodb.GetItem", lambda: stage.start(**twin), contains="meta")
    joined = starting.start(stage.desk, stage.caller, stage.prompt(**twin))
    assert joined.turn.id == stage.turn.id


def test_the_same_key_with_another_body_is_a_conflict(stage: Stage) -> None:
    stage.start("Add a footer", idempotency_key="k")
    with pytest.raises(Conflict, match="Idempotency-Key"):
        stage.start("Add a header", idempotency_key="k")


def test_a_key_belongs_to_one_user(stage: Stage) -> None:
    stage.start("Add a footer", idempotency_key="k")
    with pytest.raises(NotFound):
        starting.start(stage.desk, BEN, stage.prompt("Add a footer", idempotency_key="k"))


def test_a_key_is_forgotten_after_a_day(stage: Stage) -> None:
    first = stage.start("Add a footer", idempotency_key="k")
    stage.cancel()
    stage.pass_time(24 * 3600 + 1)
    assert stage.start("Add a footer", idempotency_key="k").id != first.id


def test_a_conversation_of_somebody_else_does_not_exist(stage: Stage) -> None:
    with pytest.raises(NotFound):
        starting.start(stage.desk, BEN, stage.prompt())


def test_a_conversation_belongs_to_its_scope(stage: Stage) -> None:
    prompt = starting.Prompt("content", stage.conversation.id, stage.prompt().content, "fermata")
    with pytest.raises(Invalid, match="site"):
        starting.start(stage.desk, stage.caller, prompt)


def test_a_start_whose_answer_was_lost_goes_on(stage: Stage) -> None:
    stage.seam.lose(TRANSACT)
    turn = stage.start()
    assert stage.claim() == turn.id
    assert stage.workflow.started == [(turn.id, 1)]
    stage.says("Hello.")
    stage.run()
    truth.check(stage)


def test_a_start_that_conflicted_with_itself_goes_on(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first try was written and its answer lost; the second finds the claim taken, by this very turn."""
    monkeypatch.setattr("fermata.aws.dynamo.time.sleep", lambda _seconds: None)
    client = stage.desk.tables._client
    transact = client.transact_write_items

    def twice(**request: Any) -> Any:
        monkeypatch.setattr(client, "transact_write_items", transact)
        transact(**request)
        return transact(**request)

    monkeypatch.setattr(client, "transact_write_items", twice)
    turn = stage.start()
    assert stage.claim() == turn.id
    assert len(stage.workflow.started) == 1


def test_a_start_that_never_arrived_is_told_and_leaves_the_conversation_free(stage: Stage) -> None:
    stage.seam.never_arrives(TRANSACT)
    with pytest.raises(ConnectionClosedError):
        stage.start()
    assert stage.claim() is None
    assert stage.start()


def test_a_turn_that_works_is_not_taken_over(stage: Stage) -> None:
    stage.start()
    stage.pass_time(899)
    with pytest.raises(Conflict):
        stage.start("And now?")


def test_a_turn_silent_for_15_minutes_is_ended_in_its_own_log_before_the_claim_moves(stage: Stage) -> None:
    first = stage.start()
    stage.says([TextDelta(text="Hel"), lambda: stage.pass_time(901), take_over(stage), *says("lo.")])
    stage.advance()
    assert stage.turn.id != first.id
    assert ends_of(stage, first) == ["error"]
    assert stage.claim() == stage.turn.id
    positions = [message.position for message in stage.messages()]
    assert positions == [0, 1, 2], "question, what was said until then, the next question"


def take_over(stage: Stage) -> Any:
    return lambda: stage.start("And now?")


def test_a_turn_with_an_open_pause_is_not_over_age_however_long_it_waits(stage: Stage) -> None:
    stage.learn(patient_tool())
    asking(stage, "ask_the_baker")
    stage.pass_time(86000)
    with pytest.raises(Conflict):
        stage.start("And now?")
    stage.answer(OK)


def test_a_pause_whose_time_is_over_still_has_15_minutes_to_be_seen_to(stage: Stage) -> None:
    stage.learn(patient_tool())
    asking(stage, "ask_the_baker")
    first = stage.turn
    stage.pass_time(86400 + 60)
    with pytest.raises(Conflict):
        stage.start("And now?")
    stage.pass_time(900)
    stage.start("And now?")
    assert ends_of(stage, first) == ["error"]


def test_two_prompts_that_take_over_at_once_make_one_turn(stage: Stage) -> None:
    first = stage.start()
    stage.pass_time(901)
    stage.seam.meanwhile(TRANSACT, lambda: stage.start("faster"))
    with pytest.raises(Conflict):
        starting.start(stage.desk, stage.caller, stage.prompt("slower"))
    assert ends_of(stage, first) == ["error"]
    assert stage.claim() == stage.turn.id


def test_an_instatic_prompt_interrupts_its_users_turn_after_two_seconds(stage: Stage) -> None:
    first = stage.start(dialect="instatic")
    with pytest.raises(Conflict):
        stage.start("And now?", dialect="instatic")
    stage.pass_time(2.1)
    stage.start("And now?", dialect="instatic")
    assert ends_of(stage, first) == ["cancelled"]


def test_a_claim_of_a_turn_that_is_no_longer_remembered_is_free(stage: Stage) -> None:
    first = stage.start()
    leave_behind(stage, log=True)
    stage.start("And now?")
    assert stage.claim() == stage.turn.id != first.id
    stage.says("Hello.")
    stage.run()
    truth.check(stage)


def test_a_turn_that_never_let_go_of_its_claim_keeps_the_messages_it_wrote(stage: Stage) -> None:
    stage.start()
    stage.says(calls(call("deleteNode", nodeId="a"), text="I delete."))
    stage.run()
    leave_behind(stage)
    stage.start("And now?")
    said = [(message.position, message.role) for message in stage.messages()]
    assert said == [(0, "user"), (1, "assistant"), (3, "user")]
    assert stage.thread().next_position == 4


def test_a_claim_that_another_prompt_took_meanwhile_is_not_free(stage: Stage) -> None:
    stage.start()
    leave_behind(stage, log=True)
    stage.seam.meanwhile(TRANSACT, lambda: stage.start("faster"))
    with pytest.raises(Conflict):
        starting.start(stage.desk, stage.caller, stage.prompt("slower"))
    assert stage.claim() == stage.turn.id


def test_an_end_touches_no_claim_but_its_own(stage: Stage) -> None:
    stage.start()
    stage.says("Hello.")
    table, pk = stage.desk.settings.conversations_table, rows.partition("bakery", stage.conversation.id)
    stage.desk.tables._client.update_item(
        TableName=table,
        Key={"pk": {"S": pk}, "sk": {"S": "meta"}},
        UpdateExpression="SET claim = :other",
        ExpressionAttributeValues={":other": {"S": "another-turn"}},
    )
    assert stage.run() == "finished"
    assert stage.claim() == "another-turn"
    assert stage.types()[-1] == "done"
    assert [message.role for message in stage.messages()] == ["user"], "the other turn's positions are not ours"
    assert len(stage.ledger()) == 1


def test_a_turn_whose_conversation_was_deleted_ends_all_the_same(stage: Stage) -> None:
    stage.start()
    stage.says("Hello.")
    table, pk = stage.desk.settings.conversations_table, rows.partition("bakery", stage.conversation.id)
    stage.desk.tables._client.delete_item(TableName=table, Key={"pk": {"S": pk}, "sk": {"S": "meta"}})
    assert stage.run() == "finished"
    assert stage.types()[-1] == "done"
    assert "open" not in stage.turn_row()
    assert stage.desk.tables.get(table, pk, "meta") is None
    assert len(stage.ledger()) == 1


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Add a  footer\nplease", "Add a footer please"),
        ("🦀" * 61, "🦀" * 60 + "…"),
    ],
)
def test_a_thread_without_a_name_is_called_after_its_first_prompt(stage: Stage, text: str, title: str) -> None:
    stage.start(text)
    stage.cancel()
    stage.start("Something else")
    assert stage.thread().title == title


def test_a_site_with_thousands_of_pages_can_be_asked_about(stage: Stage) -> None:
    pages = [{"id": f"page-{number}", "slug": f"slug-{number}", "title": f"Page {number}"} for number in range(20_000)]
    stage.start(snapshot={"site": {"pages": pages}, "page": {"id": "page-0"}})
    stage.says("Hello.")
    assert stage.run() == "finished"
    assert len(stage.driver.asks[0].volatile) < 30_000
