"""The claim of a conversation: one writer at a time, and the end of the turn that held it before."""

import copy
import threading
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError

from fermata.aws.dynamodb_items_and_writes import Item, ItemKey
from fermata.aws.lazy_snapshot import LazySnapshot, SnapshotContent
from fermata.conversations import message_store
from fermata.domain.blocks import ImageBlock
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, Gone, InvalidRequest, NotFound
from fermata.domain.events import BridgeReadyEvent, CancelledEvent, ErrorEvent
from fermata.domain.model_io import TextDelta
from fermata.turns.start.conversation_claim import MAX_DOUBLE_CLICK_SECONDS
from fermata.turns.start.start_turn import start_turn
from fermata.turns.start.turn_prompt import TurnPrompt
from fermata.turns.turn import Turn
from fermata.turns.turn_log import read_entries_from
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from tests.images import make_image, to_base64
from tests.unit.turns import invariants
from tests.unit.turns.scenarios import make_patient_tool, run_until_waiting
from tests.unit.turns.stage import ADA, OK, Stage, reply_with_calls, reply_with_text, tool_call_block
from tests.uploads import announce_test_upload, put_upload

TRANSACT = "dynamodb.TransactWriteItems"
BEN = Caller(tenant="bakery", user="ben", capabilities=ADA.capabilities)


def act_amid_reading(stage: Stage, act: Callable[[], object]) -> None:
    """Let the next START read its Idempotency-Key before `act` and all else after it: a batch is no snapshot."""
    tables = stage.resources.__dict__["tables"] = copy.copy(stage.resources.tables)
    batch_get_by_keys = tables.batch_get_by_keys

    def read_in_two_parts(keys: Iterable[ItemKey]) -> dict[ItemKey, Item]:
        tables.batch_get_by_keys = batch_get_by_keys
        early = [key for key in keys if key.pk.endswith("#idempotency")]
        items = batch_get_by_keys(early)
        act()
        return items | batch_get_by_keys(set(keys) - set(early))

    tables.batch_get_by_keys = read_in_two_parts


def terminal_events_of(stage: Stage, turn: Turn) -> list[str]:
    return [
        event.type
        for entry in read_entries_from(stage.resources, turn.pk, 1)
        for event in entry.events
        if isinstance(event, ErrorEvent | CancelledEvent)
    ]


def abandon_turn(stage: Stage, **parts: Any) -> None:
    """Delete the turn's row, with `log=True` its log too."""
    table = stage.resources.settings.bridges_table
    for item in stage.resources.tables.query_items(table, stage.turn.pk):
        if item["sk"] == "turn" or parts.get("log"):
            stage.resources.tables._client.delete_item(
                TableName=table, Key={"pk": {"S": item["pk"]}, "sk": {"S": item["sk"]}}
            )


def test_start_writes_message_turn_claim_and_first_entry_together(stage: Stage) -> None:
    turn = stage.start_turn("Add a footer", idempotency_key="k")
    assert stage.claim() == turn.id
    assert stage.turn_row()["state"] == "open"
    assert stage.events() == [BridgeReadyEvent(bridge_id=turn.id)]
    assert [(message.role, message.turn) for message in stage.load_messages()] == [("user", turn.id)]
    assert stage.workflow.started == [(turn.id, 1)]


def test_a_refused_start_writes_nothing(stage: Stage) -> None:
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


def test_the_prompt_is_stored_before_the_model_answers(stage: Stage) -> None:
    stage.start_turn("Add a footer")
    roles: list[str] = []
    stage.script_replies([lambda: roles.extend(m.role for m in stage.load_messages()), *reply_with_text("Hello.")])
    stage.run_workflow()
    assert roles == ["user"]


def test_of_two_simultaneous_prompts_one_starts_and_one_conflicts(stage: Stage) -> None:
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


def test_a_prompt_loses_when_another_starts_after_its_check(stage: Stage) -> None:
    stage.faults.interrupt(TRANSACT, lambda: stage.start_turn("faster"))
    with pytest.raises(Conflict):
        start_turn(stage.resources, stage.caller, stage.make_prompt("slower"))
    assert [message.content[0].text for message in stage.load_messages()] == ["faster"]  # type: ignore[union-attr]  # a text


def test_the_same_key_and_body_join_the_started_turn(stage: Stage) -> None:
    first = stage.start_turn("Add a footer", idempotency_key="k")
    again = stage.start_turn("Add a footer", idempotency_key="k")
    assert again.id == first.id
    assert len(stage.load_messages()) == 1
    stage.script_replies("Done.")
    stage.run_workflow()
    assert stage.start_turn("Add a footer", idempotency_key="k").id == first.id, "also after its end"


def test_simultaneous_requests_with_one_key_join_one_turn(stage: Stage) -> None:
    stage.faults.interrupt(TRANSACT, lambda: stage.start_turn("Add a footer", idempotency_key="k"))
    joined = start_turn(stage.resources, stage.caller, stage.make_prompt("Add a footer", idempotency_key="k"))
    assert joined.turn.id == stage.turn.id
    assert joined.entry.events == (BridgeReadyEvent(bridge_id=stage.turn.id),)


def test_a_request_joins_when_its_twin_has_just_claimed_the_conversation(stage: Stage) -> None:
    twin = {"text": "Add a footer", "idempotency_key": "k"}
    act_amid_reading(stage, lambda: stage.start_turn(**twin))
    joined = start_turn(stage.resources, stage.caller, stage.make_prompt(**twin))
    assert joined.turn.id == stage.turn.id


def test_a_repeat_does_not_interrupt_its_twin_that_was_slow_to_start(stage: Stage) -> None:
    """An Instatic browser's next prompt interrupts a turn, and the same prompt one older than fifteen seconds."""
    twin = {"text": "Add a footer", "idempotency_key": "k", "dialect": "instatic"}

    def start_slowly() -> None:
        stage.faults.interrupt(TRANSACT, lambda: stage.pass_time(MAX_DOUBLE_CLICK_SECONDS + 1))
        stage.start_turn(**twin)

    act_amid_reading(stage, start_slowly)
    joined = start_turn(stage.resources, stage.caller, stage.make_prompt(**twin))
    assert joined.turn.id == stage.turn.id
    assert stage.terminal_events() == []
    assert stage.claim() == joined.turn.id


def test_a_repeat_joins_its_twin_whose_hold_leaves_no_budget(stage: Stage) -> None:
    stage.set_price(input_per_mtok=3, output_per_mtok=15)
    limits = BudgetLimits(daily_usd=Decimal("0.2"))  # enough for one request of 0.13
    set_budgets(stage.resources, stage.caller, Budgets(tenant=limits))
    twin = {"text": "Add a footer", "idempotency_key": "k"}
    act_amid_reading(stage, lambda: stage.start_turn(**twin))
    joined = start_turn(stage.resources, stage.caller, stage.make_prompt(**twin))
    assert joined.turn.id == stage.turn.id


def test_a_repeat_joins_though_what_it_refers_to_has_expired(stage: Stage) -> None:
    snapshot = LazySnapshot("digest", lambda: SnapshotContent({"page": {"id": "p"}}))
    image = make_image()
    uploaded = ImageBlock(mime_type="image/jpeg", blob=put_upload(stage.resources, stage.caller, "image", image))
    turn = stage.start_turn("Look", idempotency_key="k", snapshot=snapshot, pictures=(uploaded,))
    stage.pass_time(23 * 3600)

    def fetch_expired() -> SnapshotContent:
        raise Gone("This upload has expired.")

    again = {"idempotency_key": "k", "snapshot": LazySnapshot("digest", fetch_expired)}
    stage.resources.blobs.erase_folder("uploads")
    assert stage.start_turn("Look", pictures=(uploaded,), **again).id == turn.id
    announced = announce_test_upload(stage.resources, "image", image).ref
    assert announced != uploaded.blob
    uploaded_again = ImageBlock(mime_type="image/jpeg", blob=announced)
    assert stage.start_turn("Look", pictures=(uploaded_again,), **again).id == turn.id
    inline = ImageBlock(mime_type="image/jpeg", data=to_base64(image))
    assert stage.start_turn("Look", pictures=(inline,), **again).id == turn.id
    other = ImageBlock(mime_type="image/jpeg", data=to_base64(make_image(width=9)))
    with pytest.raises(Conflict, match="another request"):
        stage.start_turn("Look", pictures=(other,), **again)


def test_the_same_key_with_another_body_conflicts(stage: Stage) -> None:
    stage.start_turn("Add a footer", idempotency_key="k")
    with pytest.raises(Conflict, match="Idempotency-Key"):
        stage.start_turn("Add a header", idempotency_key="k")


def test_a_key_belongs_to_one_user(stage: Stage) -> None:
    stage.start_turn("Add a footer", idempotency_key="k")
    with pytest.raises(NotFound):
        start_turn(stage.resources, BEN, stage.make_prompt("Add a footer", idempotency_key="k"))


def test_a_key_expires_after_a_day(stage: Stage) -> None:
    first = stage.start_turn("Add a footer", idempotency_key="k")
    stage.cancel_turn()
    stage.pass_time(24 * 3600 + 1)
    assert stage.start_turn("Add a footer", idempotency_key="k").id != first.id


def test_another_users_conversation_is_not_found(stage: Stage) -> None:
    with pytest.raises(NotFound):
        start_turn(stage.resources, BEN, stage.make_prompt())


def test_a_prompt_of_another_scope_is_refused(stage: Stage) -> None:
    prompt = TurnPrompt("content", stage.conversation.id, stage.make_prompt().content, "fermata")
    with pytest.raises(InvalidRequest, match="site"):
        start_turn(stage.resources, stage.caller, prompt)


def test_a_start_continues_when_its_response_was_lost(stage: Stage) -> None:
    stage.faults.lose_response(TRANSACT)
    turn = stage.start_turn()
    assert stage.claim() == turn.id
    assert stage.workflow.started == [(turn.id, 1)]
    stage.script_replies("Hello.")
    stage.run_workflow()
    invariants.check_invariants(stage)


def test_a_start_continues_when_its_retry_conflicts_with_its_first_attempt(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The response to the first write is lost; the retry finds the claim taken by the same turn."""
    monkeypatch.setattr(stage.resources.tables, "_sleep", lambda _seconds: None)
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


def test_a_start_that_was_never_written_fails_and_leaves_the_conversation_free(stage: Stage) -> None:
    stage.faults.lose_request(TRANSACT)
    with pytest.raises(ConnectionClosedError):
        stage.start_turn()
    assert stage.claim() is None
    assert stage.start_turn()


def test_a_running_turn_keeps_its_claim(stage: Stage) -> None:
    stage.start_turn()
    stage.pass_time(899)
    with pytest.raises(Conflict):
        stage.start_turn("And now?")


def test_a_stalled_turn_is_ended_in_its_log_before_the_claim_moves(stage: Stage) -> None:
    first = stage.start_turn()
    stage.script_replies(
        [TextDelta(text="Hel"), lambda: stage.pass_time(901), start_next_turn(stage), *reply_with_text("lo.")]
    )
    stage.advance_turn()
    assert stage.turn.id != first.id
    assert terminal_events_of(stage, first) == ["error"]
    assert stage.claim() == stage.turn.id
    positions = [message.position for message in stage.load_messages()]
    assert positions == [0, 1, 2], "question, what was said until then, the next question"


def start_next_turn(stage: Stage) -> Any:
    return lambda: stage.start_turn("And now?")


def test_a_turn_with_an_open_request_never_counts_as_stalled(stage: Stage) -> None:
    stage.add_tools(make_patient_tool())
    run_until_waiting(stage, "ask_the_baker")
    stage.pass_time(86000)
    with pytest.raises(Conflict):
        stage.start_turn("And now?")
    stage.answer_request(OK)


def test_a_turn_counts_as_stalled_15_minutes_after_its_request_expired(stage: Stage) -> None:
    stage.add_tools(make_patient_tool())
    run_until_waiting(stage, "ask_the_baker")
    first = stage.turn
    stage.pass_time(86400 + 60)
    with pytest.raises(Conflict):
        stage.start_turn("And now?")
    stage.pass_time(900)
    stage.start_turn("And now?")
    assert terminal_events_of(stage, first) == ["error"]


def test_of_two_prompts_that_end_a_stalled_turn_one_starts(stage: Stage) -> None:
    first = stage.start_turn()
    stage.pass_time(901)
    stage.faults.interrupt(TRANSACT, lambda: stage.start_turn("faster"))
    with pytest.raises(Conflict):
        start_turn(stage.resources, stage.caller, stage.make_prompt("slower"))
    assert terminal_events_of(stage, first) == ["error"]
    assert stage.claim() == stage.turn.id


def test_an_instatic_prompt_cancels_its_users_turn_after_two_seconds(stage: Stage) -> None:
    first = stage.start_turn(dialect="instatic")
    with pytest.raises(Conflict):
        stage.start_turn("And now?", dialect="instatic")
    stage.pass_time(2.1)
    stage.start_turn("And now?", dialect="instatic")
    assert terminal_events_of(stage, first) == ["cancelled"]


def test_a_turn_that_a_proxy_would_cancel_keeps_its_claim_however_long_it_is_read(stage: Stage) -> None:
    assert stage.resources.settings.fermata_stage != "local", "there, rows say who reads"
    first = stage.start_turn(dialect="instatic", is_cancelled_on_disconnect=True)
    for seconds in (3, 60, 600):
        stage.pass_time(seconds)
        with pytest.raises(Conflict):
            stage.start_turn("And now?", dialect="instatic")
    assert terminal_events_of(stage, first) == []


def test_the_claim_of_an_expired_turn_is_free(stage: Stage) -> None:
    first = stage.start_turn()
    abandon_turn(stage, log=True)
    stage.start_turn("And now?")
    assert stage.claim() == stage.turn.id != first.id
    stage.script_replies("Hello.")
    stage.run_workflow()
    invariants.check_invariants(stage)


def test_messages_of_a_turn_that_never_released_its_claim_are_kept(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="a"), text="I delete."))
    stage.run_workflow()
    abandon_turn(stage)
    stage.start_turn("And now?")
    positions_and_roles = [(message.position, message.role) for message in stage.load_messages()]
    assert positions_and_roles == [(0, "user"), (1, "assistant"), (3, "user")]
    assert stage.load_conversation().next_position == 4


def test_a_claim_that_another_prompt_has_taken_meanwhile_conflicts(stage: Stage) -> None:
    stage.start_turn()
    abandon_turn(stage, log=True)
    stage.faults.interrupt(TRANSACT, lambda: stage.start_turn("faster"))
    with pytest.raises(Conflict):
        start_turn(stage.resources, stage.caller, stage.make_prompt("slower"))
    assert stage.claim() == stage.turn.id


def test_an_ending_turn_releases_only_its_own_claim(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("Hello.")
    table = stage.resources.settings.conversations_table
    pk = message_store.conversation_partition("bakery", stage.conversation.id)
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


def test_a_turn_ends_even_if_its_conversation_was_deleted(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("Hello.")
    table = stage.resources.settings.conversations_table
    pk = message_store.conversation_partition("bakery", stage.conversation.id)
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
def test_an_untitled_conversation_is_titled_after_its_first_prompt(stage: Stage, text: str, title: str) -> None:
    stage.start_turn(text)
    stage.cancel_turn()
    stage.start_turn("Something else")
    assert stage.load_conversation().title == title


def test_a_snapshot_with_thousands_of_pages_starts_a_turn(stage: Stage) -> None:
    pages = [{"id": f"page-{number}", "slug": f"slug-{number}", "title": f"Page {number}"} for number in range(20_000)]
    stage.start_turn(snapshot={"site": {"pages": pages}, "page": {"id": "page-0"}})
    stage.script_replies("Hello.")
    assert stage.run_workflow() == "finished"
    assert len(stage.driver.requests[0].volatile) < 30_000
