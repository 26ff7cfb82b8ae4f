"""Start the next prompt of a conversation's queue, once, after the turn before it has ended."""

import zlib
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from fermata.aws import observability
from fermata.aws.api_key_rows import is_api_key_live
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Update
from fermata.aws.resources import Resources
from fermata.aws.security_events import log_refusal
from fermata.domain.errors import ApiError, Conflict, Forbidden, ServiceUnavailable, TooManyRequests
from fermata.domain.fair_order import interleave_owners
from fermata.turns.prompt_queue.queued_prompt import (
    QUEUE_INDEX_PARTITION,
    QueuedPrompt,
    build_change,
    build_turn_prompt,
    list_queued_prompts,
)
from fermata.turns.start.commit_start import StartedTurn
from fermata.turns.start.start_turn import start_turn

QUEUE_SWEEP_SECONDS = 8.0
"""How long a sweep starts prompts; a start that has begun may take longer."""
MAX_START_ATTEMPTS = 3
"""Of a prompt that is edited while it starts."""
MAX_LISTED_PROMPTS = 10_000
"""Prompts among which a sweep chooses."""


class _WaitingConversation(NamedTuple):
    tenant: str
    id: str


def start_next_prompt(
    resources: Resources, tenant: str, conversation: str, attempts: int = MAX_START_ATTEMPTS
) -> StartedTurn | None:
    """Start the oldest waiting prompt of a conversation. Safe to repeat, and to do several times at once.

    A prompt that is refused for good is kept with the reason, and the next one is tried. So it is after a prompt whose
    request has started its turn otherwise: by a repetition that found the conversation free.

    Args:
        resources: Everything that a start needs.
        tenant: The tenant's name.
        conversation: The conversation's id.
        attempts: How often it is tried while its user edits it.

    Returns:
        The started turn; None if no prompt waits or none can start now.
    """
    waiting = [one for one in list_queued_prompts(resources, tenant, conversation) if one.state == "waiting"]
    for index, queued in enumerate(waiting):
        try:
            started = _start(resources, queued, has_more=index + 1 < len(waiting))
            if not started.is_joined:
                return started
            _keep_outcome(resources, queued, queued.model_copy(update={"state": "started", "turn": started.turn.id}))
        except Conflict:
            if _has_changed(resources, queued):
                return _start_again(resources, queued, attempts)
            return None  # another turn runs; the sweep tries again
        except (ServiceUnavailable, TooManyRequests):
            return None  # the sweep tries again
        except ApiError as refusal:
            if _has_changed(resources, queued):  # what was refused is not what it says now
                return _start_again(resources, queued, attempts)
            log_refusal(refusal, tenant=tenant)
            _keep_outcome(resources, queued, queued.model_copy(update={"state": "failed", "error": refusal.message}))
    return None


def _start_again(resources: Resources, changed: QueuedPrompt, attempts: int) -> StartedTurn | None:
    return start_next_prompt(resources, changed.tenant, changed.conversation, attempts - 1) if attempts > 1 else None


def _has_changed(resources: Resources, before: QueuedPrompt) -> bool:
    """Return whether a prompt was edited, dropped or started since it was read."""
    return before not in list_queued_prompts(resources, before.tenant, before.conversation)


def _start(resources: Resources, queued: QueuedPrompt, *, has_more: bool) -> StartedTurn:
    if queued.api_key and not is_api_key_live(resources, queued.tenant, queued.api_key):
        raise Forbidden("The API key with which this prompt was sent is revoked or has expired.")

    def build_start_writes(turn_id: str) -> tuple[Update, ...]:
        started = queued.model_copy(update={"state": "started", "turn": turn_id})
        return (build_change(resources, queued, started),)

    prompt = replace(
        build_turn_prompt(resources, queued), build_start_writes=build_start_writes, has_queued_prompts=has_more
    )
    return start_turn(resources, queued.caller, prompt)


def _keep_outcome(resources: Resources, before: QueuedPrompt, after: QueuedPrompt) -> None:
    """Let a prompt wait no more. One that was changed meanwhile is tried again."""
    with suppress(ConditionFailed):
        resources.tables.write_items(build_change(resources, before, after))


def start_queued_prompts(resources: Resources, waiting_since: str) -> int:
    """Start prompts that wait though nobody followed the turn before them, for `QUEUE_SWEEP_SECONDS` at most.

    Prompts may wait for days because the turn before them does. So that they keep no others from being tried, the
    conversations of each tenant take turns, in an order that differs from sweep to sweep.

    Args:
        resources: Everything that a start needs.
        waiting_since: An ISO instant; prompts that were queued after it are left to whoever follows the turn.

    Returns:
        How many were started.
    """
    begun_at = resources.clock.monotonic()
    conversations = _list_waiting_conversations(resources, waiting_since)
    minute = int(resources.clock.time() // 60)
    drawn = sorted(conversations, key=lambda found: zlib.crc32(f"{minute}#{found.id}".encode()))
    started = 0
    for tried, found in enumerate(interleave_owners(drawn, lambda found: found.tenant)):
        if resources.clock.monotonic() - begun_at >= QUEUE_SWEEP_SECONDS:
            observability.log_warning("queue.sweep_incomplete", tried=tried, waiting=len(drawn))
            break
        try:
            started += start_next_prompt(resources, found.tenant, found.id) is not None
        except Exception:  # noqa: BLE001 - logged whole: one prompt must not keep the others from being started
            observability.log_exception("queue.start_failed", tenant=found.tenant, conversation=found.id)
    return started


def _list_waiting_conversations(resources: Resources, waiting_since: str) -> set[_WaitingConversation]:
    """Return the conversations of the prompts that wait, among the oldest and the newest if there are very many."""
    table, partition = resources.settings.bridges_table, ("open", QUEUE_INDEX_PARTITION)
    newest = ("openSince", waiting_since)
    rows = resources.tables.query_index(table, "open", partition, max_sort=newest, limit=MAX_LISTED_PROMPTS)
    if len(rows) == MAX_LISTED_PROMPTS:
        rows += resources.tables.query_index(
            table, "open", partition, max_sort=newest, limit=MAX_LISTED_PROMPTS, descending=True
        )
    parts = (str(row["pk"]).split("#", 4) for row in rows)
    return {_WaitingConversation(tenant, conversation) for _, tenant, _, conversation, _ in parts}
