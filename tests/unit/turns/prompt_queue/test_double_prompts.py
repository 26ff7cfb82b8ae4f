"""A second prompt while a turn runs is refused, waits for its end, or ends it: as its client says."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Put
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, Forbidden, NotFound, TooManyRequests
from fermata.domain.events import CancelledEvent, PromptQueuedEvent
from fermata.domain.use_limits import DEFAULT_CALLER_LIMITS, DEFAULT_USER_LIMITS
from fermata.turns.prompt_queue import start_queued_prompt
from fermata.turns.prompt_queue.change_queue import (
    drop_queued_prompt,
    edit_queued_prompt,
    list_prompt_views,
)
from fermata.turns.prompt_queue.enqueue_prompt import MAX_QUEUED_PROMPTS, start_or_enqueue
from fermata.turns.prompt_queue.queued_prompt import QueuedPrompt, queued_prompt_to_item
from fermata.turns.prompt_queue.start_queued_prompt import QUEUE_SWEEP_SECONDS, start_next_prompt, start_queued_prompts
from fermata.turns.start.commit_start import StartedTurn
from fermata.turns.start.conversation_claim import ConversationBusy
from fermata.turns.start.start_turn import start_turn
from fermata.turns.start.turn_prompt import TurnPrompt
from fermata.wire.auth.api_key_store import create_api_key, revoke_api_key
from tests.unit.turns import invariants
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block

SNAPSHOT = {"site": {"pages": []}, "page": {"id": "p", "title": "Home"}}
LATER = "2099-01-01T00:00:00.000Z"


@pytest.fixture
def busy(stage: Stage) -> Stage:
    """A stage whose turn waits for its browser."""
    stage.start_turn("First")
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="root", html="<p></p>")), "One.")
    assert stage.run_workflow() == "waiting"
    return stage


def send(stage: Stage, text: str, **members: Any) -> StartedTurn | QueuedPrompt:
    prompt = stage.make_prompt(text, **members)
    return start_or_enqueue(stage.resources, stage.caller, prompt, partial(start_turn, stage.resources, stage.caller))


def enqueue(stage: Stage, text: str, **members: Any) -> QueuedPrompt:
    queued = send(stage, text, **members)
    assert isinstance(queued, QueuedPrompt)
    return queued


def end_turn(stage: Stage) -> None:
    stage.answer_request(OK)
    assert stage.run_workflow() == "finished"


def start_next(stage: Stage) -> StartedTurn | None:
    return start_next_prompt(stage.resources, stage.caller.tenant, stage.conversation.id)


def run_next(stage: Stage, answer: str) -> str:
    """Start the next prompt, run its turn, and return the prompt that the model has read."""
    started = start_next(stage)
    assert started is not None
    stage._turn, stage._waiting_token = started.turn, ""
    stage.script_replies(answer)
    assert stage.run_workflow() == "finished"
    return str(stage.driver.requests[-1].messages[-1].content[0].to_wire()["text"])


def list_queue(stage: Stage) -> list[tuple[str, str]]:
    views = list_prompt_views(stage.resources, stage.caller, stage.conversation.id)
    return [(view["text"], view["state"]) for view in views]


def test_by_default_it_is_refused(busy: Stage) -> None:
    with pytest.raises(ConversationBusy):
        start_turn(busy.resources, busy.caller, busy.make_prompt("Second"))
    assert list_queue(busy) == []


def test_a_queued_prompt_is_an_event_of_the_turn_it_waits_for_and_starts_after_it(busy: Stage) -> None:
    queued = enqueue(busy, "Second", snapshot=SNAPSHOT)
    assert [event.prompt_id for event in busy.events() if isinstance(event, PromptQueuedEvent)] == [queued.id]
    assert start_next(busy) is None
    end_turn(busy)
    assert busy.entries()[-1].state.has_queued_prompts
    assert run_next(busy, "Two.") == "Second"
    assert 'Page: "Home"' in busy.driver.requests[-1].volatile
    assert [(message.role) for message in busy.load_messages()][-2:] == ["user", "assistant"]
    assert list_queue(busy) == [("Second", "started")]
    invariants.check_invariants(busy)


def test_queued_prompts_start_one_after_the_other_in_their_order(busy: Stage) -> None:
    for text in ("Second", "Third", "Fourth"):
        enqueue(busy, text)
        busy.pass_time(1)
    end_turn(busy)
    assert run_next(busy, "Two.") == "Second"
    assert busy.entries()[-1].state.has_queued_prompts
    assert run_next(busy, "Three.") == "Third"
    assert run_next(busy, "Four.") == "Fourth"
    assert not busy.entries()[-1].state.has_queued_prompts
    assert start_next(busy) is None


def test_a_prompt_that_finds_the_turn_ended_starts_at_once(busy: Stage) -> None:
    end_turn(busy)
    assert isinstance(send(busy, "Second"), StartedTurn)


def test_a_turn_that_ends_while_a_prompt_is_queued_lets_it_start(busy: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The prompt has seen the turn run; the log refuses its entry, because the turn has ended meanwhile."""
    prompt = busy.make_prompt("Second")
    attempts: list[int] = []

    def start(prompt: TurnPrompt) -> StartedTurn:
        attempts.append(1)
        if len(attempts) == 1:
            error = ConversationBusy("busy")
            error.turn = busy.turn.id
            end_turn(busy)
            raise error
        return start_turn(busy.resources, busy.caller, prompt)

    assert isinstance(start_or_enqueue(busy.resources, busy.caller, prompt, start), StartedTurn)
    assert list_queue(busy) == []


def test_the_same_prompt_again_is_queued_once(busy: Stage) -> None:
    first = enqueue(busy, "Second", idempotency_key="k")
    assert enqueue(busy, "Second", idempotency_key="k").id == first.id
    assert len(list_queue(busy)) == 1


def test_the_same_prompt_at_the_same_moment_is_queued_once(busy: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A double click: the second request is queued while the first one is about to be."""
    write, ids = busy.resources.tables.write_items, list[str]()

    def write_after_the_other(*writes: Any) -> None:
        if not ids and any(isinstance(write, Put) and write.item["sk"].startswith("q#") for write in writes):
            ids.append("the other one begins")
            busy.pass_time(0.5)
            ids.append(enqueue(busy, "Second", idempotency_key="k").id)
        write(*writes)

    monkeypatch.setattr(busy.resources.tables, "write_items", write_after_the_other)
    first = enqueue(busy, "Second", idempotency_key="k")
    assert ids[1:] == [first.id]
    assert len(list_queue(busy)) == 1


def test_a_prompt_that_was_dropped_is_not_started_by_its_own_repetition(busy: Stage) -> None:
    """A double click: the first request is queued and dropped, while the second one has seen the conversation busy."""
    prompt = busy.make_prompt("Second", idempotency_key="k")
    attempts: list[int] = []

    def start(guarded: TurnPrompt) -> StartedTurn:
        attempts.append(1)
        if len(attempts) == 1:
            queued = enqueue(busy, "Second", idempotency_key="k")
            drop_queued_prompt(busy.resources, busy.caller, busy.conversation.id, queued.id)
            end_turn(busy)
        return start_turn(busy.resources, busy.caller, guarded)

    again = start_or_enqueue(busy.resources, busy.caller, prompt, start)
    assert isinstance(again, QueuedPrompt)
    assert again.state == "dropped"
    assert len(busy.workflow.started) == 1


@pytest.mark.parametrize("when_busy", ["enqueue", "reject"])
@pytest.mark.parametrize("edits", [(), ("Second, but shorter",)], ids=["as it was sent", "edited"])
def test_the_same_request_after_the_prompt_has_run_starts_nothing(
    busy: Stage, when_busy: str, edits: tuple[str, ...]
) -> None:
    """The response of the first request was lost, and the client repeats it when the conversation is free again."""
    queued = enqueue(busy, "Second", idempotency_key="k")
    for text in edits:
        edit_queued_prompt(busy.resources, busy.caller, busy.conversation.id, queued.id, text, version=None)
    end_turn(busy)
    run_next(busy, "Two.")
    prompt = busy.make_prompt("Second", idempotency_key="k")
    if when_busy == "enqueue":
        again = enqueue(busy, "Second", idempotency_key="k")
        assert (again.id, again.state, again.turn) == (queued.id, "started", busy.turn.id)
    else:
        joined = start_turn(busy.resources, busy.caller, prompt)
        assert (joined.turn.id, joined.is_joined) == (busy.turn.id, True)
    assert len(busy.workflow.started) == 2


def test_a_key_that_has_queued_one_prompt_queues_no_other(busy: Stage) -> None:
    enqueue(busy, "Second", idempotency_key="k")
    with pytest.raises(Conflict, match="Idempotency-Key"):
        send(busy, "Third", idempotency_key="k")


def test_a_prompt_whose_request_has_started_it_otherwise_does_not_block_the_queue(busy: Stage) -> None:
    """The turn has ended and nobody has started the prompt yet. The client repeats the request."""
    enqueue(busy, "Second", idempotency_key="k")
    busy.pass_time(1)
    enqueue(busy, "Third")
    end_turn(busy)
    stage_turn = start_turn(busy.resources, busy.caller, busy.make_prompt("Second", idempotency_key="k")).turn
    assert start_next(busy) is None, "the turn runs"
    assert list_queue(busy) == [("Second", "started"), ("Third", "waiting")]
    busy._turn, busy._waiting_token = stage_turn, ""
    busy.script_replies("Two.")
    assert busy.run_workflow() == "finished"
    assert run_next(busy, "Three.") == "Third"


def test_an_edit_stores_no_more_than_the_new_text(busy: Stage) -> None:
    queued = enqueue(busy, "Second", snapshot=SNAPSHOT | {"filler": "x" * 100_000})
    before = count_stored_bytes(busy)
    for number in range(5):
        edit_queued_prompt(
            busy.resources, busy.caller, busy.conversation.id, queued.id, f"Edited {number}", version=None
        )
    assert count_stored_bytes(busy) - before < 1_000


def test_prompts_count_when_they_are_queued_and_not_again_when_they_start(busy: Stage) -> None:
    """Otherwise whoever queues and drops stores as much as they like."""
    used = replace(DEFAULT_CALLER_LIMITS, user=replace(DEFAULT_USER_LIMITS, prompts_per_minute=4))
    first = enqueue(busy, "Second", limits=used)
    for number in range(2):
        dropped = enqueue(busy, f"Dropped {number}", limits=used)
        drop_queued_prompt(busy.resources, busy.caller, busy.conversation.id, dropped.id)
    with pytest.raises(TooManyRequests):
        send(busy, "One too many", limits=used)
    end_turn(busy)
    assert run_next(busy, "Two.") == "Second"
    assert first.is_counted


def test_a_prompt_that_loses_the_race_for_its_entry_counts_once(busy: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The turn ends while its row is read, so that the prompt starts instead; before, it had counted twice."""
    used = replace(DEFAULT_CALLER_LIMITS, user=replace(DEFAULT_USER_LIMITS, prompts_per_minute=3))
    write, ended = busy.resources.tables.write_items, list[bool]()

    def end_the_turn_first(*writes: Any) -> None:
        if not ended and any(isinstance(item, Put) and item.item["sk"].startswith("q#") for item in writes):
            ended.append(True)
            end_turn(busy)
        write(*writes)

    monkeypatch.setattr(busy.resources.tables, "write_items", end_the_turn_first)
    assert isinstance(send(busy, "Second", limits=used), StartedTurn)
    assert ended
    assert isinstance(send(busy, "Third", limits=used), QueuedPrompt)
    with pytest.raises(TooManyRequests):
        send(busy, "Fourth", limits=used)


def count_stored_bytes(stage: Stage) -> int:
    keys = stage.resources.blobs.list_keys("conversations")
    return sum(len(stage.resources.blobs.get_bytes(key)) for key in keys)


@pytest.mark.parametrize("is_revoked", [False, True])
def test_a_prompt_of_a_key_that_was_revoked_meanwhile_does_not_start(busy: Stage, is_revoked: bool) -> None:
    manager = Caller(tenant="bakery", user="root", capabilities=busy.caller.capabilities | {"ai.keys.manage"})
    key, _ = create_api_key(busy.resources, manager, "Importer", ["ai.chat"])
    caller = busy.caller.model_copy(update={"api_key": key.id})
    prompt = busy.make_prompt("Second")
    queued = start_or_enqueue(busy.resources, caller, prompt, partial(start_turn, busy.resources, caller))
    assert isinstance(queued, QueuedPrompt)
    if is_revoked:
        revoke_api_key(busy.resources, "bakery", key.id)
    end_turn(busy)
    assert (start_next(busy) is None) == is_revoked
    [view] = list_prompt_views(busy.resources, busy.caller, busy.conversation.id)
    assert view["state"] == ("failed" if is_revoked else "started")
    assert ("revoked" in view.get("error", "")) == is_revoked


def test_a_prompt_starts_once_though_two_readers_see_the_end(busy: Stage) -> None:
    enqueue(busy, "Second")
    end_turn(busy)
    assert start_next(busy) is not None
    assert start_next(busy) is None
    assert len(busy.workflow.started) == 2


def test_a_queued_prompt_can_be_edited_and_dropped_until_it_starts(busy: Stage) -> None:
    second, third = enqueue(busy, "Second"), enqueue(busy, "Third")
    ids = (busy.resources, busy.caller, busy.conversation.id)
    edited = edit_queued_prompt(*ids, second.id, "Second, but shorter", version=1)
    assert edited.version == 2
    with pytest.raises(Conflict):
        edit_queued_prompt(*ids, second.id, "Lost", version=1)
    assert drop_queued_prompt(*ids, third.id).state == "dropped"
    assert drop_queued_prompt(*ids, third.id).state == "dropped"
    end_turn(busy)
    assert run_next(busy, "Two.") == "Second, but shorter"
    assert start_next(busy) is None
    for change in (partial(edit_queued_prompt, text="Late", version=None), drop_queued_prompt):
        with pytest.raises(Conflict):
            change(*ids, second.id)
    assert sorted(state for _, state in list_queue(busy)) == ["dropped", "started"]


def test_a_prompt_that_is_edited_while_it_starts_starts_as_it_was_edited(
    busy: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued = enqueue(busy, "Second")
    end_turn(busy)
    edits = iter(["Second, edited"])

    def edit_first(*args: Any) -> StartedTurn:
        for text in edits:
            edit_queued_prompt(busy.resources, busy.caller, busy.conversation.id, queued.id, text, None)
        return start_turn(*args)

    monkeypatch.setattr(start_queued_prompt, "start_turn", edit_first)
    assert run_next(busy, "Two.") == "Second, edited"


def test_a_prompt_that_is_refused_while_it_is_edited_keeps_its_place(
    busy: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued = enqueue(busy, "Second")
    enqueue(busy, "Third")
    end_turn(busy)
    edits = iter(["Second, edited"])

    def refuse_first(*args: Any) -> StartedTurn:
        for text in edits:
            edit_queued_prompt(busy.resources, busy.caller, busy.conversation.id, queued.id, text, None)
            raise Forbidden("Not as it was.")
        return start_turn(*args)

    monkeypatch.setattr(start_queued_prompt, "start_turn", refuse_first)
    assert run_next(busy, "Two.") == "Second, edited"


def test_nobody_else_sees_or_changes_a_queue(busy: Stage) -> None:
    queued = enqueue(busy, "Second")
    for caller in (
        busy.caller.model_copy(update={"user": "ben"}),
        busy.caller.model_copy(update={"tenant": "rival"}),
    ):
        with pytest.raises(NotFound):
            list_prompt_views(busy.resources, caller, busy.conversation.id)
        with pytest.raises(NotFound):
            drop_queued_prompt(busy.resources, caller, busy.conversation.id, queued.id)


def test_a_conversation_has_a_limited_queue(busy: Stage) -> None:
    for number in range(MAX_QUEUED_PROMPTS):
        enqueue(busy, str(number))
    with pytest.raises(TooManyRequests):
        send(busy, "One too many")


def test_a_prompt_that_can_never_start_says_why_and_lets_the_next_one_start(busy: Stage) -> None:
    from fermata.conversations.conversation_store import update_conversation

    enqueue(busy, "Second")
    enqueue(busy, "Third")
    end_turn(busy)
    update_conversation(busy.resources, busy.caller, busy.conversation.id, credential_id="gone")
    assert start_next(busy) is None
    views = list_prompt_views(busy.resources, busy.caller, busy.conversation.id)
    assert [view["state"] for view in views] == ["failed", "failed"]
    assert views[0]["error"]


def test_the_sweep_starts_what_nobody_has_started(busy: Stage) -> None:
    enqueue(busy, "Second")
    assert start_queued_prompts(busy.resources, LATER) == 0
    busy.cancel_turn()
    assert start_queued_prompts(busy.resources, LATER) == 1
    assert list_queue(busy) == [("Second", "started")]
    assert start_queued_prompts(busy.resources, LATER) == 0


def list_sweep(stage: Stage, monkeypatch: pytest.MonkeyPatch, start: Callable[[str], None]) -> list[str]:
    """Return the tenants whose conversations a sweep tries, in its order."""
    tried: list[str] = []

    def start_prompt(_resources: Any, tenant: str, _conversation: str) -> None:
        tried.append(tenant)
        start(tenant)

    monkeypatch.setattr("fermata.turns.prompt_queue.start_queued_prompt.start_next_prompt", start_prompt)
    start_queued_prompts(stage.resources, LATER)
    return tried


def put_waiting_prompts(stage: Stage, queued: QueuedPrompt, tenant: str, count: int) -> None:
    """Store prompts of other conversations that wait as long as this one."""
    for number in range(count):
        other = queued.model_copy(update={"tenant": tenant, "conversation": f"c{number}"})
        stage.resources.tables.write_items(Put(stage.resources.settings.bridges_table, queued_prompt_to_item(other)))


def test_prompts_of_one_tenant_that_cannot_start_keep_no_other_waiting(
    busy: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued = enqueue(busy, "Second")
    put_waiting_prompts(busy, queued, "florist", 9)
    assert "bakery" in list_sweep(busy, monkeypatch, lambda _tenant: busy.pass_time(QUEUE_SWEEP_SECONDS / 2))
    assert len(list_sweep(busy, monkeypatch, lambda _tenant: busy.pass_time(QUEUE_SWEEP_SECONDS / 2))) == 2


def test_a_prompt_that_cannot_be_read_keeps_no_other_from_starting(
    busy: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_waiting_prompts(busy, enqueue(busy, "Second"), "florist", 2)

    def fail(_tenant: str) -> None:
        raise ValueError("a row of another version")

    assert sorted(list_sweep(busy, monkeypatch, fail)) == ["bakery", "florist", "florist"]


def test_an_interrupting_prompt_ends_the_turn_and_starts(busy: Stage) -> None:
    first = busy.turn
    started = start_turn(busy.resources, busy.caller, replace(busy.make_prompt("Second"), interrupts=True))
    assert started.turn.id != first.id
    [end] = busy.terminal_events()
    assert isinstance(end, CancelledEvent)
    assert "Another prompt" in str(end.reason)


def test_a_turn_that_waits_for_an_approval_can_be_waited_for(stage: Stage) -> None:
    from tests.unit.turns.approvals.bakery import YES, Bakery

    bakery = Bakery(stage)
    bakery.ask_for(("bake", 1))
    enqueue(stage, "And then")
    bakery.decide(YES)
    assert stage.run_workflow() == "finished"
    assert bakery.oven.baked == [1]
    assert run_next(stage, "Two.") == "And then"
