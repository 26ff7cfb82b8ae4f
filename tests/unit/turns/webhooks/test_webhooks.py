"""Webhooks are told about tool requests, approvals and ends of turns: signed, each once, also after an outage."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from fermata.aws.message_queue import MessageQueue
from fermata.domain.caller import Caller
from fermata.domain.errors import ServiceUnavailable
from fermata.domain.events import ToolResultEvent
from fermata.limits.leases import list_leases
from fermata.signed_requests.signature import verify_request
from fermata.turns.turn import build_turn_pk
from fermata.turns.webhooks.deliver_entry import deliver_queued_entry
from fermata.turns.webhooks.deliver_message import deliver_queue_record
from fermata.turns.webhooks.delivery_slots import (
    DELIVERIES_AT_ONCE,
    MAX_SLOW_MARKS,
    SLOT_SECONDS,
    SLOW_ANSWER_SECONDS,
    SLOW_MARK_SECONDS,
    get_deferral_seconds,
    name_slow_mark,
    release_delivery_slot,
    take_delivery_slot,
)
from fermata.turns.webhooks.outbox import RESEND_SECONDS, build_outbox_put, resend_outbox
from fermata.turns.webhooks.queued_entry import QueuedEntry
from fermata.webhooks.delivery import list_deliveries
from fermata.webhooks.send_event import MAX_AGE_SECONDS, get_next_wait
from fermata.webhooks.webhook_event import WebhookEvent
from fermata.webhooks.webhook_registry import WebhookChange, add_webhook, change_webhook, remove_webhook
from tests.late_writes import WriteRecorder
from tests.scripted_tool_server import ScriptedToolServer, run_scripted_tool_server
from tests.tenant_tokens import make_tenant
from tests.unit.turns import invariants
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.editor import Editor
from tests.unit.turns.scripted_queue import ScriptedQueue, install_scripted_queue
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block

ADMIN = Caller(
    tenant="bakery", user="root", capabilities=frozenset({"ai.tools.manage", "ai.tools.write", "ai.tools.approve"})
)


@pytest.fixture
def receiver() -> Iterator[ScriptedToolServer]:
    with run_scripted_tool_server() as server:
        yield server


@pytest.fixture
def stage(staged: MakeStage) -> Stage:
    made = staged(fermata_stage="local")
    make_tenant(made.resources, "bakery")
    install_scripted_queue(made.resources)
    return made


def queue_of(stage: Stage) -> ScriptedQueue:
    queue = stage.resources.webhook_queue
    assert isinstance(queue, ScriptedQueue)
    return queue


def add(stage: Stage, receiver: ScriptedToolServer, *events: WebhookEvent, may_answer: bool = False) -> tuple[str, str]:
    """Register a webhook; return its id and its secret."""
    stored = add_webhook(stage.resources, ADMIN, receiver.url, events, may_answer=may_answer)
    return stored.view["id"], stored.signing_secret or ""


def deliver(stage: Stage) -> None:
    queue_of(stage).deliver(stage.resources)


def wait_for_editor(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="n")))
    assert stage.run_workflow() == "waiting"


def finish(stage: Stage) -> None:
    stage.script_replies("Done.")
    assert stage.run_workflow() == "finished"
    invariants.check_invariants(stage, next_prompt=False)


def types_of(receiver: ScriptedToolServer) -> list[str]:
    return [call.body["type"] for call in receiver.calls]


def outbox_of(stage: Stage) -> list[str]:
    return [item["sk"] for item in stage.stored_items(stage.turn.pk) if item["sk"].startswith("w#")]


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


@pytest.mark.exhaustive
def test_a_receiver_that_is_down_for_a_day_gets_the_event_with_the_same_id(
    stage: Stage, receiver: ScriptedToolServer
) -> None:
    webhook_id, secret = add(stage, receiver, WebhookEvent.TURN_END)
    receiver.script_answer(b"down", 503)
    wait_for_editor(stage)
    stage.cancel_turn()
    began_at = stage.clock.time()
    deliver(stage)
    while stage.clock.time() - began_at < 86_400:
        [(_, delay)] = queue_of(stage).messages
        assert 0 < delay <= 900
        stage.pass_time(delay)
        deliver(stage)
    receiver.answers.clear()
    receiver.script_answer(b"", 204)
    deliver(stage)
    assert queue_of(stage).messages == []
    assert len({call.headers["webhook-id"] for call in receiver.calls}) == 1
    last = receiver.calls[-1]
    verify_request([secret], last.headers, stage.clock.time(), last.raw)  # signed anew each time
    [delivery] = list_deliveries(stage.resources, "bakery", webhook_id)
    assert (delivery.state, delivery.status, delivery.attempts) == ("delivered", 204, len(receiver.calls))


def test_an_event_is_given_up_after_three_days_and_delivered_again_on_request(
    stage: Stage, receiver: ScriptedToolServer
) -> None:
    webhook_id, _ = add(stage, receiver, WebhookEvent.TURN_END)
    receiver.script_answer(b"", 500)
    wait_for_editor(stage)
    stage.cancel_turn()
    stage.pass_time(MAX_AGE_SECONDS + 1)
    deliver(stage)
    assert queue_of(stage).messages == []
    [delivery] = list_deliveries(stage.resources, "bakery", webhook_id)
    assert delivery.state == "failed"
    receiver.answers.clear()
    receiver.script_answer({})
    again = QueuedEntry("bakery", delivery.turn, delivery.entry, webhook_id, delivery.index, is_redelivery=True)
    assert QueuedEntry.from_message(again.to_message()) == again
    deliver_queued_entry(stage.resources, again)
    [delivery] = list_deliveries(stage.resources, "bakery", webhook_id)
    assert (delivery.state, delivery.attempts) == ("delivered", 2)


def test_waits_grow_to_a_quarter_of_an_hour() -> None:
    waits = [get_next_wait(attempts, 0, jitter=0) for attempts in range(1, 8)]
    assert waits == [5, 20, 80, 320, 900, 900, 900]
    assert get_next_wait(1, 0, jitter=1) == 4
    assert get_next_wait(10**6, 10, jitter=0) == 900
    assert get_next_wait(1, MAX_AGE_SECONDS + 1) is None


def test_one_receiver_that_is_down_does_not_keep_another_waiting(stage: Stage, receiver: ScriptedToolServer) -> None:
    with run_scripted_tool_server() as broken:
        broken.script_answer(b"", 500)
        add(stage, broken)
        add(stage, receiver)
        wait_for_editor(stage)
        deliver(stage)
        assert types_of(receiver) == ["toolRequest"]
        deliver(stage)
        assert len(receiver.calls) == 1
        assert len(broken.calls) == 2


def test_a_webhook_that_was_removed_or_turned_off_is_sent_nothing(stage: Stage, receiver: ScriptedToolServer) -> None:
    removed, _ = add(stage, receiver)
    turned_off, _ = add(stage, receiver)
    wait_for_editor(stage)
    remove_webhook(stage.resources, ADMIN, removed)
    change_webhook(stage.resources, ADMIN, turned_off, WebhookChange(enabled=False))
    deliver(stage)
    assert receiver.calls == []


def test_an_answer_is_taken_though_the_function_fails_in_the_middle(
    stage: Stage, receiver: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receiver has answered, and the answer cannot be stored. The queue repeats the message."""
    add(stage, receiver, WebhookEvent.TOOL_REQUEST, may_answer=True)
    for _ in range(2):
        receiver.script_answer({"result": {"ok": True, "data": {"removed": 1}}})
    wait_for_editor(stage)
    [(message, _)] = queue_of(stage).messages
    with monkeypatch.context() as patch:
        patch.setattr("fermata.turns.webhooks.take_answer.submit_tool_result", raise_unavailable)
        with pytest.raises(ServiceUnavailable):
            deliver(stage)
    queue_of(stage).messages.append((message, 0))
    deliver(stage)
    finish(stage)
    assert stage.results_sent_to_model()[0].data == {"removed": 1}


def test_a_message_that_fails_after_an_attempt_leaves_no_second_chain_of_attempts(
    stage: Stage, receiver: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receiver is down and so is the table. The queue repeats the message, whose attempts would double each time."""
    webhook_id, _ = add(stage, receiver, WebhookEvent.TOOL_REQUEST)
    receiver.script_answer({}, status=503)
    receiver.script_answer({}, status=503)
    wait_for_editor(stage)
    [(message, _)] = queue_of(stage).messages
    with monkeypatch.context() as patch:
        patch.setattr("fermata.turns.webhooks.record_attempt.store_attempt", raise_unavailable)
        with pytest.raises(ServiceUnavailable):
            deliver(stage)
    assert queue_of(stage).messages == []
    queue_of(stage).messages.append((message, 0))
    deliver(stage)
    assert len(queue_of(stage).messages) == 1
    assert [delivery.attempts for delivery in list_deliveries(stage.resources, "bakery", webhook_id)] == [1]


def deliver_record(stage: Stage, message: dict[str, Any], receives: int = 1) -> bool:
    attributes = {"ApproximateReceiveCount": str(receives)}
    record = {"body": json.dumps(message), "receiptHandle": f"receipt-{receives}", "attributes": attributes}
    return deliver_queue_record(stage.resources, record)


def begin_chain(stage: Stage, receiver: ScriptedToolServer) -> dict[str, Any]:
    """Let a receiver that is down refuse an event once, and return the message of the second attempt."""
    add(stage, receiver, WebhookEvent.TOOL_REQUEST)
    receiver.script_answer({}, status=503)
    wait_for_editor(stage)
    deliver(stage)
    [(message, _)] = queue_of(stage).messages
    queue_of(stage).messages.clear()
    return message


def test_a_function_that_dies_after_it_has_queued_the_next_attempt_leaves_one_chain(
    stage: Stage, receiver: ScriptedToolServer
) -> None:
    second = begin_chain(stage, receiver)
    for _ in range(3):
        receiver.script_answer({}, status=503)
    assert deliver_record(stage, second)
    assert deliver_record(stage, second, receives=2)  # nobody had deleted it
    third, again = (message for message, _ in queue_of(stage).messages)
    assert third == again
    queue_of(stage).messages.clear()
    assert deliver_record(stage, third)
    assert deliver_record(stage, again)
    assert len(receiver.calls) == 3
    assert len(queue_of(stage).messages) == 1


def test_a_function_that_dies_before_it_has_queued_the_next_attempt_leaves_a_chain(
    stage: Stage, receiver: ScriptedToolServer
) -> None:
    second = begin_chain(stage, receiver)
    receiver.script_answer({}, status=503)
    queue_of(stage).is_down = True
    assert not deliver_record(stage, second)
    queue_of(stage).is_down = False
    for taken in [take_delivery_slot(stage.resources, "bakery") for _ in range(DELIVERIES_AT_ONCE)]:
        assert taken
    assert deliver_record(stage, second, receives=2)  # it has to wait for a slot first, as another message
    [(deferred, _)] = queue_of(stage).messages
    queue_of(stage).messages.clear()
    stage.pass_time(SLOT_SECONDS + 1)
    assert deliver_record(stage, deferred)
    assert len(receiver.calls) == 2
    [(third, _)] = queue_of(stage).messages
    assert third["attempt"] == 3


def test_a_message_of_an_earlier_release_makes_the_next_attempt(stage: Stage, receiver: ScriptedToolServer) -> None:
    second = begin_chain(stage, receiver)
    del second["attempt"]
    assert deliver_record(stage, second)
    assert len(receiver.calls) == 2


def test_a_message_that_fails_comes_again_after_seconds(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fermata.turns.webhooks.deliver_message.deliver_queued_entry", raise_unavailable)
    message = {"tenant": "bakery", "turn": "t", "entry": 1}
    assert [deliver_record(stage, message, receives) for receives in (1, 2, 9)] == [False] * 3
    first, second, ninth = queue_of(stage).hidden
    assert (first[0], second[0]) == ("receipt-1", "receipt-2")
    assert 4 <= first[1] <= 5 < 16 <= second[1] <= 20
    assert 720 <= ninth[1] <= 900


def test_of_two_copies_of_a_message_one_queues_the_next_attempt(stage: Stage, receiver: ScriptedToolServer) -> None:
    add(stage, receiver, WebhookEvent.TOOL_REQUEST)
    wait_for_editor(stage)
    [(message, _)] = queue_of(stage).messages

    def deliver_copy(_call: object) -> None:
        deliver_queued_entry(stage.resources, QueuedEntry.from_message(message))
        stage.pass_time(0.1)

    receiver.script_answer({}, status=503, before=deliver_copy)
    receiver.script_answer({}, status=503)
    deliver(stage)
    assert len(queue_of(stage).messages) == 1


def test_an_entry_that_was_queued_every_minute_while_nothing_delivered_begins_one_chain_of_attempts(
    stage: Stage, receiver: ScriptedToolServer
) -> None:
    webhook_id, _ = add(stage, receiver, WebhookEvent.TOOL_REQUEST)
    receiver.script_answer({}, status=503)
    wait_for_editor(stage)
    for _ in range(5):
        stage.pass_time(RESEND_SECONDS + 1)
        assert resend_outbox(stage.resources) == 1
    assert len(queue_of(stage).messages) == 6
    deliver(stage)
    assert len(queue_of(stage).messages) == 1
    assert [delivery.attempts for delivery in list_deliveries(stage.resources, "bakery", webhook_id)] == [1]


def raise_unavailable(*_: Any, **__: Any) -> Any:
    raise ServiceUnavailable("Too many writers.", retry_after=1)


def test_a_response_may_carry_the_result(stage: Stage, receiver: ScriptedToolServer) -> None:
    add(stage, receiver, WebhookEvent.TOOL_REQUEST, may_answer=True)
    receiver.script_answer({"result": {"ok": True, "data": {"removed": 1}}})
    wait_for_editor(stage)
    deliver(stage)
    [result] = [event for event in stage.events() if isinstance(event, ToolResultEvent)]
    assert result.ok
    finish(stage)
    assert stage.results_sent_to_model()[0].data == {"removed": 1}


@pytest.mark.parametrize("body", [{}, {"result": 5}, {"result": {}}, {"result": {"ok": "yes"}}, [], {"approved": True}])
def test_any_other_response_answers_nothing(stage: Stage, receiver: ScriptedToolServer, body: Any) -> None:
    add(stage, receiver, WebhookEvent.TOOL_REQUEST, may_answer=True)
    receiver.script_answer(body)
    wait_for_editor(stage)
    deliver(stage)
    assert stage.event_types()[-1] == "toolRequest"


def test_a_webhook_that_may_not_answer_answers_nothing(stage: Stage, receiver: ScriptedToolServer) -> None:
    add(stage, receiver, WebhookEvent.TOOL_REQUEST)
    receiver.script_answer({"result": {"ok": True}})
    wait_for_editor(stage)
    deliver(stage)
    assert stage.event_types()[-1] == "toolRequest"


def test_an_answer_that_comes_too_late_changes_nothing(stage: Stage, receiver: ScriptedToolServer) -> None:
    add(stage, receiver, WebhookEvent.TOOL_REQUEST, may_answer=True)
    receiver.script_answer({"result": {"ok": True}}, before=lambda _call: stage.cancel_turn())
    wait_for_editor(stage)
    deliver(stage)
    invariants.check_invariants(stage)


def test_an_entry_that_was_erased_is_delivered_to_nobody(stage: Stage, receiver: ScriptedToolServer) -> None:
    add(stage, receiver)
    wait_for_editor(stage)
    deliver_queued_entry(stage.resources, QueuedEntry("bakery", "gone", 3))
    deliver_queued_entry(stage.resources, QueuedEntry("bakery", stage.turn.id, 999))
    assert receiver.calls == []


# ----------------------------------------------------------------------------------------- fair among tenants


def test_each_call_of_an_entry_is_a_message_of_its_own(stage: Stage, receiver: ScriptedToolServer) -> None:
    """So a slow receiver keeps no other waiting, and many of them do not use up the time of the function."""
    for _ in range(3):
        add(stage, receiver, WebhookEvent.TURN_END)
    wait_for_editor(stage)
    stage.cancel_turn()
    queue = queue_of(stage)
    for _ in range(2):
        message, _delay = queue.messages.pop(0)
        deliver_queued_entry(stage.resources, QueuedEntry.from_message(message))
    assert receiver.calls == []
    assert len({message["webhook"] for message, _ in queue.messages}) == 3
    assert outbox_of(stage) == []
    deliver(stage)
    assert types_of(receiver) == ["turnEnd"] * 3


def test_a_tenant_whose_receivers_are_slow_has_a_part_of_the_deliveries_only(
    stage: Stage, receiver: ScriptedToolServer
) -> None:
    add(stage, receiver, WebhookEvent.TOOL_REQUEST)
    wait_for_editor(stage)
    queue = queue_of(stage)
    [(message, _)] = queue.messages
    slots = [take_delivery_slot(stage.resources, "bakery") for _ in range(DELIVERIES_AT_ONCE)]
    assert all(slots)
    for expected in (1, 2):
        deliver(stage)
        [(message, delay)] = queue.messages
        assert receiver.calls == []
        assert message["deferrals"] == expected
        assert delay > 0
    assert take_delivery_slot(stage.resources, "florist") is not None
    release_delivery_slot(stage.resources, "bakery", slots[0] or "")
    deliver(stage)
    assert types_of(receiver) == ["toolRequest"]
    release_delivery_slot(stage.resources, "bakery", slots[0] or "")  # again, after its slot is another one's
    assert take_delivery_slot(stage.resources, "bakery") is not None
    assert take_delivery_slot(stage.resources, "bakery") is None


def test_a_slot_is_free_again_after_a_failure_and_after_the_function_was_killed(
    stage: Stage, receiver: ScriptedToolServer
) -> None:
    add(stage, receiver, WebhookEvent.TOOL_REQUEST, may_answer=True)
    receiver.script_answer({}, status=500)
    wait_for_editor(stage)
    deliver(stage)
    slots = [take_delivery_slot(stage.resources, "bakery") for _ in range(DELIVERIES_AT_ONCE + 1)]
    assert slots.pop() is None
    stage.pass_time(SLOT_SECONDS + 1)
    assert take_delivery_slot(stage.resources, "bakery") is not None


def test_a_slot_is_not_taken_again_by_a_late_copy(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = WriteRecorder(stage.resources, monkeypatch)
    slot = take_delivery_slot(stage.resources, "bakery") or ""
    release_delivery_slot(stage.resources, "bakery", slot)
    recorder.land_again(lambda: None)
    [row] = [row for row in stage.stored_items("t#bakery#limits#tenant#00") if row["sk"] == "deliveries"]
    assert list_leases(row) == []


def test_a_slot_that_was_erased_is_not_written_again(stage: Stage) -> None:
    slot = take_delivery_slot(stage.resources, "bakery")
    [row] = [row for row in stage.stored_items("t#bakery#limits#tenant#00") if row["sk"] == "deliveries"]
    assert row["ttl"] > stage.clock.time()
    stage.resources.tables.batch_delete(stage.resources.settings.bridges_table, [(row["pk"], row["sk"])])
    release_delivery_slot(stage.resources, "bakery", slot or "")
    assert stage.stored_items("t#bakery#limits#tenant#00") == []


def test_servers_that_are_slow_leave_a_slot_to_the_others_until_they_are_fast_again(stage: Stage) -> None:
    """However many of a tenant's servers are slow, they keep none of its others waiting."""
    slots = [take_delivery_slot(stage.resources, "bakery", name) or "" for name in ("slow", "slower")]
    for slot, name in zip(slots, ("slow", "slower"), strict=True):
        release_delivery_slot(stage.resources, "bakery", slot, name, SLOW_ANSWER_SECONDS)
    taken = [take_delivery_slot(stage.resources, "bakery", name) for name in ("slow", "slower", "slow", "fast", "fast")]
    assert [bool(slot) for slot in taken] == [True, True, False, True, False]
    release_delivery_slot(stage.resources, "bakery", taken[0] or "", "slow", 0.1)
    assert take_delivery_slot(stage.resources, "bakery", "slower") is None
    assert take_delivery_slot(stage.resources, "bakery", "slow") is not None


def test_a_server_counts_as_slow_for_some_minutes_only(stage: Stage) -> None:
    for number in range(MAX_SLOW_MARKS + 2):
        slot = take_delivery_slot(stage.resources, "bakery", f"server {number}") or ""
        release_delivery_slot(stage.resources, "bakery", slot, f"server {number}", SLOW_ANSWER_SECONDS)
    [row] = [row for row in stage.stored_items("t#bakery#limits#tenant#00") if row["sk"] == "deliveries"]
    assert sum(name.startswith("slow#") for name in row) <= MAX_SLOW_MARKS + 1
    stage.pass_time(SLOW_MARK_SECONDS + 1)
    last = f"server {MAX_SLOW_MARKS + 1}"
    assert all(take_delivery_slot(stage.resources, "bakery", last) for _ in range(DELIVERIES_AT_ONCE))
    [row] = [row for row in stage.stored_items("t#bakery#limits#tenant#00") if row["sk"] == "deliveries"]
    assert not any(name.startswith("slow#") for name in row)


def test_a_slow_answer_is_remembered_by_its_webhook(stage: Stage, receiver: ScriptedToolServer) -> None:
    webhook, _ = add(stage, receiver, WebhookEvent.TOOL_REQUEST)
    receiver.script_answer({}, before=lambda _call: stage.pass_time(SLOW_ANSWER_SECONDS))
    wait_for_editor(stage)
    deliver(stage)
    [row] = [row for row in stage.stored_items("t#bakery#limits#tenant#00") if row["sk"] == "deliveries"]
    assert name_slow_mark(webhook) in row


def test_calls_that_wait_for_a_slot_wait_longer_each_time() -> None:
    assert [get_deferral_seconds(deferrals, jitter=1) for deferrals in (0, 1, 5, 40)] == [1, 2, 32, 300]
    assert get_deferral_seconds(3, jitter=0) == 4


def test_messages_of_a_tenant_are_a_group_of_the_queue() -> None:
    sent: list[dict[str, Any]] = []

    class Client:
        def send_message(self, **members: Any) -> None:
            sent.append(members)

    queue = MessageQueue(Client(), "https://queue")
    for tenant in ("bakery", "bakery", "\u00e4 b" * 100):
        queue.send({"tenant": tenant}, delay_seconds=5000)
    assert {members["DelaySeconds"] for members in sent} == {900}
    first, second, other = (members["MessageGroupId"] for members in sent)
    assert first == second != other
    assert all(re.fullmatch("[0-9a-f]{32}", group) for group in (first, other))


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
