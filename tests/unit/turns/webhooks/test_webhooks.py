"""Webhooks are told about tool requests, approvals and ends of turns: signed, each once, also after an outage."""

from typing import Any

import pytest

from fermata.signed_requests.signature import verify_request
from fermata.turns.turn import build_turn_pk
from fermata.turns.webhooks.deliver_entry import deliver_queued_entry
from fermata.turns.webhooks.outbox import RESEND_SECONDS, build_outbox_put, resend_outbox
from fermata.turns.webhooks.queued_entry import QueuedEntry
from fermata.webhooks.webhook_event import WebhookEvent
from fermata.webhooks.webhook_registry import WebhookChange, change_webhook, remove_webhook
from tests.scripted_tool_server import ScriptedToolServer
from tests.unit.turns.editor import Editor
from tests.unit.turns.stage import OK, Stage
from tests.unit.turns.webhooks.webhook_steps import (
    ADMIN,
    add,
    deliver,
    finish,
    outbox_of,
    queue_of,
    types_of,
    wait_for_editor,
)


def test_a_tool_request_and_the_end_are_delivered_signed(stage: Stage, receiver: ScriptedToolServer) -> None:
    _, secret = add(stage, receiver)
    wait_for_editor(stage)
    deliver(stage)
    [call] = receiver.calls
    verify_request([secret], call.headers, stage.clock.time(), call.raw)
    assert call.body["type"] == "toolRequest"
    assert call.body["data"]["bridgeId"] == stage.turn.id
    assert call.body["data"]["event"]["requestId"] == stage.tool_requests()[0].request_id
    stage.answer_request(OK)
    finish(stage)
    deliver(stage)
    assert types_of(receiver) == ["toolRequest", "turnEnd"]
    assert receiver.calls[1].body["data"]["event"]["type"] == "done"
    assert outbox_of(stage) == []


def test_the_requests_and_the_end_of_an_undo_are_delivered(stage: Stage, receiver: ScriptedToolServer) -> None:
    editor = Editor(stage)
    turn = editor.run_editing_turn(["insertHtml", "deleteNode"])
    add(stage, receiver)
    undo = stage.start_undo(turn)
    editor.finish()
    deliver(stage)
    assert types_of(receiver) == ["toolRequest", "toolRequest", "turnEnd"]
    assert {call.body["data"]["bridgeId"] for call in receiver.calls} == {undo.id}


def test_a_tenant_without_webhooks_pays_nothing(stage: Stage) -> None:
    wait_for_editor(stage)
    assert queue_of(stage).messages == []
    assert outbox_of(stage) == []
    assert all("k" not in entry.state.to_item() for entry in stage.entries())


def test_only_the_events_that_were_chosen_are_delivered(stage: Stage, receiver: ScriptedToolServer) -> None:
    add(stage, receiver, WebhookEvent.TURN_END)
    wait_for_editor(stage)
    stage.cancel_turn()
    deliver(stage)
    assert types_of(receiver) == ["turnEnd"]


def test_a_message_that_comes_twice_delivers_once(stage: Stage, receiver: ScriptedToolServer) -> None:
    add(stage, receiver)
    wait_for_editor(stage)
    queue_of(stage).messages *= 3
    deliver(stage)
    assert len(receiver.calls) == 1


def test_what_was_not_queued_is_queued_by_the_sweep(stage: Stage, receiver: ScriptedToolServer) -> None:
    add(stage, receiver)
    queue_of(stage).is_down = True
    wait_for_editor(stage)
    queue_of(stage).is_down = False
    assert resend_outbox(stage.resources) == 0
    stage.pass_time(RESEND_SECONDS + 1)
    assert resend_outbox(stage.resources) == 1
    deliver(stage)
    assert types_of(receiver) == ["toolRequest"]
    stage.pass_time(RESEND_SECONDS + 1)
    assert resend_outbox(stage.resources) == 0


def test_a_webhook_that_was_removed_or_turned_off_is_sent_nothing(stage: Stage, receiver: ScriptedToolServer) -> None:
    removed, _ = add(stage, receiver)
    turned_off, _ = add(stage, receiver)
    wait_for_editor(stage)
    remove_webhook(stage.resources, ADMIN, removed)
    change_webhook(stage.resources, ADMIN, turned_off, WebhookChange(enabled=False))
    deliver(stage)
    assert receiver.calls == []


def test_an_entry_that_was_erased_is_delivered_to_nobody(stage: Stage, receiver: ScriptedToolServer) -> None:
    add(stage, receiver)
    wait_for_editor(stage)
    deliver_queued_entry(stage.resources, QueuedEntry("bakery", "gone", 3))
    deliver_queued_entry(stage.resources, QueuedEntry("bakery", stage.turn.id, 999))
    assert receiver.calls == []


def put_outbox_rows(stage: Stage, tenant: str, count: int) -> None:
    at = stage.clock.time()
    for number in range(count):
        pk = build_turn_pk(tenant, f"turn{number}")
        stage.resources.tables.write_items(
            build_outbox_put(stage.resources, pk, 3, int(at * 1000) + number, int(at) + 9)
        )


def test_the_sweep_queues_entries_of_each_tenant_in_turn(stage: Stage) -> None:
    put_outbox_rows(stage, "florist", 9)
    stage.pass_time(1)
    put_outbox_rows(stage, "bakery", 1)
    stage.pass_time(RESEND_SECONDS + 1)
    assert resend_outbox(stage.resources) == 10
    sent = [message["tenant"] for message, _ in queue_of(stage).messages]
    assert (len(sent), sent.index("bakery")) == (10, 1)


def test_the_sweep_stops_at_the_first_entry_that_the_queue_refuses(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each refusal may take as long as a call that is never answered."""
    put_outbox_rows(stage, "bakery", 5)
    stage.pass_time(RESEND_SECONDS + 1)
    tried: list[Any] = []
    queue_of(stage).is_down = True
    send = queue_of(stage).send
    monkeypatch.setattr(queue_of(stage), "send", lambda message: (tried.append(message), send(message)))
    resend_outbox(stage.resources)
    assert len(tried) == 1
