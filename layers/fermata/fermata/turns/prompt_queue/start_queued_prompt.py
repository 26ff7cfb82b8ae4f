"""Start the next prompt of a conversation's queue, once, after the turn before it has ended."""

from contextlib import suppress
from dataclasses import replace

from fermata.aws import observability
from fermata.aws.api_key_rows import is_api_key_live
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Update
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.domain.errors import ApiError, Conflict, Forbidden, ServiceUnavailable, TooManyRequests
from fermata.turns.prompt_queue.queued_prompt import (
    QUEUE_INDEX_PARTITION,
    QueuedPrompt,
    build_change,
    build_turn_prompt,
    list_queued_prompts,
)
from fermata.turns.start.commit_start import StartedTurn
from fermata.turns.start.start_turn import start_turn

MAX_QUEUES_PER_SWEEP = 100


def start_next_prompt(resources: Resources, tenant: str, conversation: str) -> StartedTurn | None:
    """Start the oldest waiting prompt of a conversation. Safe to repeat, and to do several times at once.

    A prompt that is refused for good is kept with the reason, and the next one is tried. So it is after a prompt whose
    request has started its turn otherwise: by a repetition that found the conversation free.

    Args:
        resources: Everything that a start needs.
        tenant: The tenant's name.
        conversation: The conversation's id.

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
        except (Conflict, ServiceUnavailable, TooManyRequests):
            return None  # another turn runs, or the prompt was changed; the sweep tries again
        except ApiError as refusal:
            _keep_outcome(resources, queued, queued.model_copy(update={"state": "failed", "error": refusal.message}))
    return None


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
    """Start prompts that wait though nobody followed the turn before them.

    Args:
        resources: Everything that a start needs.
        waiting_since: An ISO instant; prompts that were queued after it are left to whoever follows the turn.

    Returns:
        How many were started.
    """
    rows = resources.tables.query_index(
        resources.settings.bridges_table,
        "open",
        ("open", QUEUE_INDEX_PARTITION),
        max_sort=("openSince", waiting_since),
        limit=MAX_QUEUES_PER_SWEEP,
    )
    started = 0
    for pk in dict.fromkeys(str(row["pk"]) for row in rows):
        _, tenant, _, conversation, _ = pk.split("#", 4)
        try:
            started += start_next_prompt(resources, tenant, conversation) is not None
        except AWS_ERRORS:
            observability.log_exception("queue.start_failed", conversation=conversation)
    return started
