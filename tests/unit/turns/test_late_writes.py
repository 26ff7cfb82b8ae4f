"""Writes that land again: a copy of any request may arrive minutes after the first, when the SDK has repeated it."""

from collections.abc import Callable

import pytest

from fermata.aws.dynamodb_items_and_writes import Item, Put
from fermata.conversations.conversation_store import (
    create_conversation,
    delete_conversation,
    get_conversation,
    update_conversation,
)
from fermata.conversations.discard_unused import discard_unused_conversation
from fermata.conversations.message_store import conversation_partition, message_sort_key
from fermata.domain.blocks import TextBlock
from fermata.domain.conversation import Conversation
from fermata.domain.errors import NotFound
from tests.late_writes import WriteRecorder, read_rows, repeat_single_writes
from tests.unit.turns import invariants
from tests.unit.turns.editor import PAGE, Editor
from tests.unit.turns.scenarios import make_patient_tool, run_until_waiting
from tests.unit.turns.stage import OK, Stage

TABLES = {"conversations", "bridges"}


@pytest.fixture
def check_copies(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Returns a function that lets every write so far land again, and checks that none changes anything."""
    recorder = WriteRecorder(stage.resources, monkeypatch, transactions=True)

    def check() -> None:
        before = read_rows(TABLES)
        recorder.requests = [writes for writes in recorder.requests if any(write.table in TABLES for write in writes)]

        def check_unchanged() -> None:
            after = read_rows(TABLES)
            assert {key for key in before | after if before.get(key) != after.get(key)} == set()

        recorder.land_again(check_unchanged)

    return check


def test_no_write_of_a_turn_changes_anything_when_it_lands_again(
    stage: Stage, check_copies: Callable[[], None]
) -> None:
    editor = Editor(stage)
    stage.new_conversation()
    check_copies()
    turn = editor.run_editing_turn(["insertHtml"], ["deleteNode", "deleteNode"], idempotency_key="once")
    check_copies()
    undo = stage.start_undo(turn)
    editor.finish()
    assert editor.page == PAGE
    check_copies()
    stage.start_undo(undo)
    editor.finish()
    check_copies()
    stage.start_turn("Something else")
    check_copies()
    stage.cancel_turn()
    check_copies()
    invariants.check_next_prompt(stage)


def test_no_write_of_a_turn_that_is_held_and_recovered_changes_anything_when_it_lands_again(
    stage: Stage, check_copies: Callable[[], None]
) -> None:
    stage.add_tools(make_patient_tool())
    machine = run_until_waiting(stage, "ask_the_baker")
    check_copies()
    stage.workflow.states[stage.turn.id, 1] = ("SUCCEEDED", "")
    stage.recover_turn()
    assert stage.turn_row()["n"] == 2
    check_copies()
    stage.script_replies("Thanks.")
    stage.answer_request(OK)
    check_copies()
    machine.run()
    check_copies()


def test_no_change_of_a_conversation_returns_when_it_lands_again(
    stage: Stage, check_copies: Callable[[], None]
) -> None:
    conversation = stage.new_conversation()
    for title in ("First", "Second"):
        stage.pass_time(1)
        update_conversation(stage.resources, stage.caller, conversation.id, title=title)
        check_copies()
    stage.start_turn()
    check_copies()
    delete_conversation(stage.resources, stage.caller, conversation.id)
    check_copies()


def test_no_write_of_a_conversation_that_was_discarded_brings_it_back_and_its_id_begins_anew(
    stage: Stage, check_copies: Callable[[], None]
) -> None:
    def begin() -> Conversation:
        stage.pass_time(1)
        create_conversation(stage.resources, stage.caller, "site", None, None, "", conversation_id="chat")
        check_copies()
        return get_conversation(stage.resources, stage.caller, "chat")

    for _ in range(3):
        discard_unused_conversation(stage.resources, begin())
        check_copies()
        with pytest.raises(NotFound):
            get_conversation(stage.resources, stage.caller, "chat")
    begin()
    delete_conversation(stage.resources, stage.caller, "chat")
    check_copies()
    with pytest.raises(NotFound):
        begin()  # who deletes a chat does not want it back


def test_a_conversation_that_is_used_before_its_creation_is_answered_stays_in_use(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its user sees it in the list of conversations while the SDK still repeats the write."""
    create, delayed_put = stage.resources.tables._send, []

    def start_in_between() -> None:
        [put] = delayed_put
        assert isinstance(put, Put)
        monkeypatch.setattr(stage.resources.tables, "_send", create)
        stage.conversation = stage.conversation.model_copy(update={"id": put.item["id"]})
        stage.start_turn("Hello")

    repeat_single_writes(stage.resources, monkeypatch, start_in_between)
    send_twice = stage.resources.tables._send
    monkeypatch.setattr(
        stage.resources.tables,
        "_send",
        lambda writes, token: (delayed_put.extend(writes), send_twice(writes, token)),
    )
    created = create_conversation(stage.resources, stage.caller, "site", None, stage.credential.id, "model-1")
    assert created.id == stage.conversation.id
    assert stage.claim() == stage.turn.id


@pytest.mark.parametrize("title", ["Renamed", None])
def test_a_change_whose_response_was_lost_succeeds(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, title: str | None
) -> None:
    repeat_single_writes(stage.resources, monkeypatch)
    conversation_id = stage.new_conversation().id
    changed = update_conversation(stage.resources, stage.caller, conversation_id, title=title, model_id="model-2")
    assert (changed.title, changed.model_id) == (title or "New conversation", "model-2")
    assert delete_conversation(stage.resources, stage.caller, conversation_id).id == conversation_id


def test_a_change_that_met_another_one_is_made_behind_it(stage: Stage) -> None:
    conversation_id = stage.conversation.id

    def change_model() -> None:
        update_conversation(stage.resources, stage.caller, conversation_id, model_id="model-2")

    stage.faults.interrupt("dynamodb.UpdateItem", change_model)
    changed = update_conversation(stage.resources, stage.caller, conversation_id, title="Renamed")
    assert (changed.title, changed.model_id) == ("Renamed", "model-2")


def test_a_token_whose_storing_was_not_heard_of_is_stored_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.add_tools(make_patient_tool())
    repeat_single_writes(stage.resources, monkeypatch)
    run_until_waiting(stage, "ask_the_baker")
    held = stage.load_pause()
    assert (held.is_held, held.version) == (True, 2)


def test_an_execution_whose_number_was_not_heard_of_is_started(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.start_turn()
    stage.workflow.states[stage.turn.id, 1] = ("SUCCEEDED", "")
    repeat_single_writes(stage.resources, monkeypatch)
    stage.recover_turn()
    assert stage.workflow.started == [(stage.turn.id, 1), (stage.turn.id, 2)]


def read_message_rows(stage: Stage) -> list[Item]:
    pk = conversation_partition(stage.caller.tenant, stage.conversation.id)
    return [row for row in stage.stored_items(pk, "conversations") if row["sk"].startswith("m#")]


def forget_messages(stage: Stage) -> None:
    """Reset the conversation's row as it was when it was created, while its messages stay."""
    row = stage.conversation.model_copy(update={"claim": None})
    table = stage.resources.settings.conversations_table
    pk = conversation_partition(row.tenant, row.id)
    stored = stage.resources.tables.get_item(table, pk, "meta")
    assert stored is not None
    reset = {name: value for name, value in stored.items() if name != "claim"} | {"next_position": 0}
    stage.resources.tables.write_items(Put(table, reset))


def test_a_prompt_goes_behind_messages_that_the_conversations_row_does_not_count(stage: Stage) -> None:
    stage.start_turn("First")
    stage.script_replies("One.")
    stage.run_workflow()
    forget_messages(stage)
    stage.start_turn("Second")
    stage.script_replies("Two.")
    stage.run_workflow()
    texts = [
        block.text for message in stage.load_messages() for block in message.content if isinstance(block, TextBlock)
    ]
    assert texts == ["First", "One.", "Second", "Two."]


def test_a_turn_ends_though_something_is_stored_in_the_place_of_its_message(stage: Stage) -> None:
    stage.start_turn("First")
    [prompt] = read_message_rows(stage)
    stage.resources.tables.write_items(Put("conversations", prompt | {"sk": message_sort_key(1), "turn": "another"}))
    messages = read_message_rows(stage)
    stage.script_replies("One.")
    assert stage.run_workflow() == "finished"
    assert [event.type for event in stage.terminal_events()] == ["done"]
    assert read_message_rows(stage) == messages, "no message was replaced"
    stage.script_replies("Two.")
    stage.start_turn("Second")
    assert stage.run_workflow() == "finished"
    assert [message.turn for message in stage.load_messages()][2:] == [stage.turn.id] * 2
