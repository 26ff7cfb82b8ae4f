"""Start a prompt, or put it behind the turn that holds its conversation."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import ConditionCheck, ItemKey, Put, TransactionCanceled, Update
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, TooManyRequests
from fermata.domain.events import PromptQueuedEvent
from fermata.limits.count_use import UsageCountersChanged, UseCounter
from fermata.limits.usage_counters import Use
from fermata.turns.prompt_queue.queued_prompt import (
    QueuedPrompt,
    build_queue_key,
    build_queued_prompt,
    list_queued_prompts,
    queued_prompt_to_item,
)
from fermata.turns.start.commit_start import StartedTurn
from fermata.turns.start.conversation_claim import CONVERSATION_BUSY_MESSAGE, ConversationBusy
from fermata.turns.start.idempotency import KEY_USED_MESSAGE
from fermata.turns.start.turn_prompt import TurnPrompt
from fermata.turns.turn import load_turn
from fermata.turns.turn_log import TurnEnded, TurnLog, fixed_events, read_last_entry

MAX_QUEUED_PROMPTS = 20
"""Of one conversation."""
MAX_ENQUEUE_ATTEMPTS = 5
QUEUE_FULL_MESSAGE = f"{MAX_QUEUED_PROMPTS} prompts wait for this conversation already. Drop one, or wait."


def start_or_enqueue(
    resources: Resources, caller: Caller, prompt: TurnPrompt, start: Callable[[TurnPrompt], StartedTurn]
) -> StartedTurn | QueuedPrompt:
    """Start the turn of a prompt. If another turn holds the conversation, put the prompt behind it.

    The prompt is queued with an entry of that turn's log. So either the turn has ended and the prompt is started, or
    whoever ends the turn knows that a prompt waits. A prompt that was queued before under the same Idempotency-Key is
    returned, whatever became of it: START is refused while its row is there.

    Args:
        resources: Tables, bucket and clock.
        caller: Who sends the prompt.
        prompt: The prompt.
        start: Starts it, and raises ConversationBusy if another turn holds the conversation or START is refused.

    Raises:
        Conflict: The Idempotency-Key was used for another request.
        TooManyRequests: As many prompts wait as may, or the user or the tenant has reached a limit.
        ConversationBusy: Turns of the conversation begin and end all the time.
    """
    prompt_id = _make_prompt_id(caller, prompt)
    if prompt.idempotency_key and (known := _find_known_prompt(resources, caller, prompt, prompt_id)):
        return known
    key = ItemKey(resources.settings.bridges_table, *build_queue_key(caller.tenant, prompt.conversation_id, prompt_id))
    unless_queued = ConditionCheck(*key, "attribute_not_exists(pk)")
    guarded = replace(prompt, build_start_writes=lambda _turn: (unless_queued,))
    for _ in range(MAX_ENQUEUE_ATTEMPTS):
        try:
            return start(guarded)
        except ConversationBusy as busy:
            if queued := _enqueue(resources, caller, prompt, prompt_id, busy.turn):
                return queued
    raise ConversationBusy(CONVERSATION_BUSY_MESSAGE, retry_after=2)


def _make_prompt_id(caller: Caller, prompt: TurnPrompt) -> str:
    """Return the id of the prompt in the queue: the same for the same Idempotency-Key."""
    if not prompt.idempotency_key:
        return new_id()
    return hashlib.sha256(f"{caller.user}\n{prompt.idempotency_key}".encode()).hexdigest()[:24]


def _find_known_prompt(resources: Resources, caller: Caller, prompt: TurnPrompt, prompt_id: str) -> QueuedPrompt | None:
    """Return the prompt that the same request has queued before.

    Raises:
        Conflict: It was another request.
    """
    queue = list_queued_prompts(resources, caller.tenant, prompt.conversation_id)
    known = next((one for one in queue if one.id == prompt_id and one.user == caller.user), None)
    if known is not None and known.digest not in ("", prompt.digest):
        raise Conflict(KEY_USED_MESSAGE)
    return known


def _enqueue(
    resources: Resources, caller: Caller, prompt: TurnPrompt, prompt_id: str, turn_id: str
) -> QueuedPrompt | None:
    """Queue the prompt behind a turn. Returns None if that turn is over."""
    if known := _find_known_prompt(resources, caller, prompt, prompt_id):
        return known
    turn = load_turn(resources, caller.tenant, turn_id) if turn_id else None
    last_entry = read_last_entry(resources, turn.pk) if turn else None
    if turn is None or last_entry is None or last_entry.state.phase == "ended":
        return None
    _require_room_in_queue(resources, caller, prompt)
    queued = build_queued_prompt(resources, caller, prompt, prompt_id)
    log = TurnLog.from_last_entry(resources, turn.partition, last_entry)
    counter = UseCounter(resources, caller, prompt.limits, prompt_id)
    use = Use(prompts=1, stored_bytes=prompt.body_bytes)
    try:
        counter.commit(use, lambda count_writes: _append_prompt(resources, log, queued, count_writes))
    except (TurnEnded, TransactionCanceled):  # the second means that the same request at the same time was faster
        return None
    return queued


def _append_prompt(resources: Resources, log: TurnLog, queued: QueuedPrompt, count_writes: Sequence[Update]) -> None:
    """Write the prompt, what it counts and the log entry about it at once. It does not count again when it starts.

    Raises:
        UsageCountersChanged: Only counts are in the way.
        TransactionCanceled: The prompt is stored already.
        TurnEnded: The turn is over.
    """
    put = Put(resources.settings.bridges_table, queued_prompt_to_item(queued), if_absent=True)
    event = PromptQueuedEvent(prompt_id=queued.id)
    try:
        log.append(fixed_events(event), lambda _entry, _before: (put, *count_writes))
    except TransactionCanceled as refused:
        put_reason, *other_reasons = refused.reasons
        count_reasons = other_reasons[: len(count_writes)]
        if put_reason.condition_failed or not any(reason.condition_failed for reason in count_reasons):
            raise
        raise UsageCountersChanged.from_reasons(count_writes, count_reasons) from refused


def _require_room_in_queue(resources: Resources, caller: Caller, prompt: TurnPrompt) -> None:
    queue = list_queued_prompts(resources, caller.tenant, prompt.conversation_id)
    if sum(queued.state == "waiting" for queued in queue) >= MAX_QUEUED_PROMPTS:
        raise TooManyRequests(QUEUE_FULL_MESSAGE, retry_after=30, reason="prompts")
