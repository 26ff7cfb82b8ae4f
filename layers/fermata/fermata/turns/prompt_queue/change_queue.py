"""List the prompts that wait for a conversation, edit one, or drop it."""

from typing import Any

from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import ConditionFailed
from fermata.aws.resources import Resources
from fermata.conversations import conversation_store
from fermata.domain.blocks import TextBlock
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, NotFound
from fermata.domain.use_limits import DEFAULT_CALLER_LIMITS, CallerLimits
from fermata.limits.count_use import count_single_use
from fermata.limits.usage_counters import Use
from fermata.turns.prompt_queue.queued_prompt import (
    QueuedPrompt,
    build_change,
    list_queued_prompts,
    preview_text,
    store_edited_text,
)

PROMPT_NOT_FOUND_MESSAGE = "There is no such prompt in the queue of this conversation."
PROMPT_GONE_MESSAGE = "This prompt waits no more, or was changed meanwhile. Read the queue again."


def list_prompt_views(resources: Resources, caller: Caller, conversation_id: str) -> list[dict[str, Any]]:
    """Return the queue of the caller's conversation, also what became of prompts of the last days.

    Args:
        resources: The tables.
        caller: The conversation's user.
        conversation_id: The conversation, as the client sent it.

    Raises:
        NotFound: There is no such conversation, or it is not the caller's.
    """
    conversation = conversation_store.get_conversation(resources, caller, conversation_id)
    return [build_prompt_view(queued) for queued in list_queued_prompts(resources, caller.tenant, conversation.id)]


def edit_queued_prompt(
    resources: Resources,
    caller: Caller,
    conversation_id: str,
    prompt_id: str,
    text: str,
    version: int | None,
    limits: CallerLimits = DEFAULT_CALLER_LIMITS,
) -> QueuedPrompt:
    """Replace the text of a prompt that waits. Its images stay.

    Args:
        resources: The tables and the bucket.
        caller: The conversation's user.
        conversation_id: The conversation, as the client sent it.
        prompt_id: The prompt, as the client sent it.
        text: The new text.
        version: The version that the client has seen; None for any.
        limits: What the caller may use; the text counts as stored bytes.

    Raises:
        NotFound: There is no such conversation or prompt, or it is not the caller's.
        Conflict: The prompt waits no more, or has another version.
        TooManyRequests: The user or the tenant has stored as many bytes as may be stored in a day.
    """
    queued = _find_waiting(resources, caller, conversation_id, prompt_id, version)
    count_single_use(resources, caller, limits, new_id(), Use(stored_bytes=len(text.encode())))
    key = store_edited_text(resources, queued, text)
    preview = preview_text((TextBlock(text=text),))
    edited = {"edited_text_key": key, "text": preview, "written_ms": int(resources.clock.time() * 1000)}
    return _change(resources, queued, queued.model_copy(update=edited))


def drop_queued_prompt(
    resources: Resources, caller: Caller, conversation_id: str, prompt_id: str, version: int | None = None
) -> QueuedPrompt:
    """Let a prompt wait no more. Dropping it again succeeds.

    Args:
        resources: The tables.
        caller: The conversation's user.
        conversation_id: The conversation, as the client sent it.
        prompt_id: The prompt, as the client sent it.
        version: The version that the client has seen; None for any.

    Raises:
        NotFound: There is no such conversation or prompt, or it is not the caller's.
        Conflict: The prompt waits no more, or has another version.
    """
    queued = _find(resources, caller, conversation_id, prompt_id)
    if queued.state == "dropped":
        return queued
    queued = _find_waiting(resources, caller, conversation_id, prompt_id, version)
    return _change(resources, queued, queued.model_copy(update={"state": "dropped"}))


def _find(resources: Resources, caller: Caller, conversation_id: str, prompt_id: str) -> QueuedPrompt:
    conversation = conversation_store.get_conversation(resources, caller, conversation_id)
    queue = list_queued_prompts(resources, caller.tenant, conversation.id)
    found = next((queued for queued in queue if queued.id == prompt_id), None)
    if found is None:
        raise NotFound(PROMPT_NOT_FOUND_MESSAGE)
    return found


def _find_waiting(
    resources: Resources, caller: Caller, conversation_id: str, prompt_id: str, version: int | None
) -> QueuedPrompt:
    queued = _find(resources, caller, conversation_id, prompt_id)
    if queued.state != "waiting" or version not in (None, queued.version):
        raise Conflict(PROMPT_GONE_MESSAGE)
    return queued


def _change(resources: Resources, before: QueuedPrompt, after: QueuedPrompt) -> QueuedPrompt:
    try:
        resources.tables.write_items(build_change(resources, before, after))
    except ConditionFailed as refused:
        raise Conflict(PROMPT_GONE_MESSAGE) from refused
    return after.model_copy(update={"version": before.version + 1})


def build_prompt_view(queued: QueuedPrompt) -> dict[str, Any]:
    """Return a queued prompt as the API shows it."""
    view: dict[str, Any] = {
        "promptId": queued.id,
        "state": queued.state,
        "text": queued.text,
        "version": queued.version,
        "createdAt": queued.created_at,
    }
    view |= {"bridgeId": queued.turn} if queued.turn else {}
    return view | ({"error": queued.error} if queued.error else {})
