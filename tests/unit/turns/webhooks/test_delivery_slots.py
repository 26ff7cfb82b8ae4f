"""A tenant has a part of the deliveries, and its slow servers leave some of that to the others."""

import re
from typing import Any

import pytest

from fermata.aws.message_queue import MessageQueue
from fermata.limits.leases import list_leases
from fermata.turns.webhooks.deliver_entry import deliver_queued_entry
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
from fermata.turns.webhooks.queued_entry import QueuedEntry
from fermata.webhooks.webhook_event import WebhookEvent
from tests.late_writes import WriteRecorder
from tests.scripted_tool_server import ScriptedToolServer
from tests.unit.turns.stage import Stage
from tests.unit.turns.webhooks.webhook_steps import add, deliver, outbox_of, queue_of, types_of, wait_for_editor


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
