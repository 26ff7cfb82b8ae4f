"""A delivery that fails is attempted again, in one chain of attempts, whatever dies meanwhile."""

import json
from typing import Any

import pytest

from fermata.domain.errors import ServiceUnavailable
from fermata.signed_requests.signature import verify_request
from fermata.turns.webhooks.deliver_entry import deliver_queued_entry
from fermata.turns.webhooks.deliver_message import deliver_queue_record
from fermata.turns.webhooks.delivery_slots import DELIVERIES_AT_ONCE, SLOT_SECONDS, take_delivery_slot
from fermata.turns.webhooks.outbox import RESEND_SECONDS, resend_outbox
from fermata.turns.webhooks.queued_entry import QueuedEntry
from fermata.webhooks.delivery import list_deliveries
from fermata.webhooks.send_event import MAX_AGE_SECONDS, get_next_wait
from fermata.webhooks.webhook_event import WebhookEvent
from tests.scripted_tool_server import ScriptedToolServer, run_scripted_tool_server
from tests.unit.turns.stage import Stage
from tests.unit.turns.webhooks.webhook_steps import add, deliver, queue_of, raise_unavailable, types_of, wait_for_editor


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
