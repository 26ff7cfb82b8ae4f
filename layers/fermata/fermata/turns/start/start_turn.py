"""A prompt becomes a turn: everything is checked first, then one transaction makes it true, then it is set going."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from fermata.aws import blob_store, observability
from fermata.aws.blob_store import CompressedJson
from fermata.aws.clock import new_id
from fermata.aws.resources import Resources
from fermata.conversations import conversation_store, message_store
from fermata.conversations.history.token_estimate import MAX_TOKENS_PER_IMAGE
from fermata.credentials.model_choice import ModelChoice, resolve_model_choice
from fermata.domain.blocks import Block, TextBlock
from fermata.domain.caller import Caller
from fermata.domain.conversation import Conversation
from fermata.domain.dialect import Dialect, ToolNameVariant
from fermata.domain.errors import Conflict, InvalidRequest
from fermata.domain.events import BridgeReadyEvent
from fermata.domain.messages import Message
from fermata.drivers.registry import get_model_traits
from fermata.tools.calls.trimming import shorten_text
from fermata.tools.registry import build_situation
from fermata.tools.tool_names import ToolNaming
from fermata.turns.accounting import ESTIMATED_CHARS_PER_TOKEN, hold_request_budget
from fermata.turns.start.conversation_claim import (
    CONVERSATION_BUSY_MESSAGE,
    build_claim_update,
    ensure_no_active_turn,
    find_free_position,
)
from fermata.turns.start.idempotency import (
    StartedTurn,
    build_idempotency_puts,
    commit_start,
    start_once,
    start_workflow,
)
from fermata.turns.start.model_checks import check_model_abilities
from fermata.turns.start.prompt_images import normalize_prompt_images
from fermata.turns.state import TurnState
from fermata.turns.turn import Turn
from fermata.turns.turn_log import LogEntry
from fermata.usage.audit import user_labels
from fermata.usage.budgets import holds
from fermata.usage.budgets.budget_limits import get_budgets

SYSTEM_PROMPT_VERSION = "1"
MAX_SITUATION_CHARS = 24_000
"""More of an editor's state than this is asked for with a tool; the turn's row has to hold it, and every request."""


@dataclass(frozen=True)
class TurnPrompt:
    """What the user said, from where, and what the editor showed then."""

    scope: str
    conversation_id: str
    content: tuple[Block, ...]
    dialect: Dialect
    tool_names: ToolNameVariant = "seed"
    snapshot: Any = None
    packed: CompressedJson | None = None
    """The snapshot as it is stored, where that is known already."""
    image_places: tuple[str, ...] = ()
    """Where each image of `content` stands in the request, for whoever has to mend it."""
    revision: str = ""
    idempotency_key: str = ""
    max_rounds: int | None = None
    """The tenant's own limit, where it is lower than the deployment's."""
    thinking_tokens: int | None = None
    """How much a model is told to think, where the tenant has a setting of its own."""

    @cached_property
    def digest(self) -> str:
        """By which the same request is known again, where it asks for that; a snapshot is large."""
        if not self.idempotency_key:
            return ""
        said = [block.to_wire() for block in self.content]
        whole = [self.scope, self.conversation_id, said, self.packed.digest if self.packed else self.snapshot]
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def start_turn(resources: Resources, caller: Caller, prompt: TurnPrompt) -> StartedTurn:
    """The same Idempotency-Key and body joins the turn they started. Refusals come before anything is written."""
    act = partial(_start, resources, caller, prompt)
    return start_once(resources, caller, prompt.idempotency_key, prompt.digest, act)


def _start(resources: Resources, caller: Caller, prompt: TurnPrompt) -> StartedTurn:
    conversation = conversation_store.get_conversation(resources, caller, prompt.conversation_id)
    if conversation.scope != prompt.scope:
        raise InvalidRequest(f"This conversation belongs to scope {conversation.scope}, not {prompt.scope}.")
    chosen = resolve_model_choice(
        resources, caller.tenant, prompt.scope, conversation.credential_id, conversation.model_id
    )
    check_model_abilities(resources, caller, chosen, prompt.scope, prompt.content)
    content = normalize_prompt_images(resources, caller, prompt.content, prompt.image_places)
    if gone := conversation.claim:
        ensure_no_active_turn(resources, caller, gone, prompt.dialect)
        conversation = conversation_store.get_conversation(resources, caller, prompt.conversation_id)
        if conversation.claim not in (None, gone):
            raise Conflict(CONVERSATION_BUSY_MESSAGE, retry_after=2)
    turn = _turn(resources, caller, prompt, conversation, chosen)
    _hold(resources, turn, conversation, prompt)
    try:
        entry = _commit(resources, prompt, content, conversation, turn)
    except Conflict:
        if turn.budgeted:
            holds.release_hold(resources, turn.tenant, turn.id)
        raise
    start_workflow(resources, turn)
    observability.emit_metrics({"TurnsStarted": 1})
    _tell(turn)
    user_labels.store_user_label(resources, caller)
    return StartedTurn(turn, entry)


def _hold(resources: Resources, turn: Turn, conversation: Conversation, prompt: TurnPrompt) -> None:
    """Reserve what the first request may cost, so that a turn the budget does not cover is refused, not broken off."""
    said = sum(len(block.text) for block in prompt.content if isinstance(block, TextBlock)) + len(turn.situation)
    shown = sum(block.kind == "image" for block in prompt.content) * MAX_TOKENS_PER_IMAGE
    hold_request_budget(resources, turn, 1, 1, conversation.context_tokens + said // ESTIMATED_CHARS_PER_TOKEN + shown)


def _tell(turn: Turn) -> None:
    observability.log_audit_event(
        "ai.chat.started",
        tenant=turn.tenant,
        user=turn.user,
        scope=turn.scope,
        conversation=turn.conversation,
        turn=turn.id,
        provider=turn.provider,
        model=turn.model,
    )


def _turn(
    resources: Resources, caller: Caller, prompt: TurnPrompt, conversation: Conversation, chosen: ModelChoice
) -> Turn:
    now = resources.clock.time()
    return Turn(
        id=new_id(),
        tenant=caller.tenant,
        user=caller.user,
        scope=prompt.scope,
        conversation=conversation.id,
        provider=chosen.provider,
        model=chosen.model,
        credential=chosen.credential_id,
        credential_version=chosen.version,
        capabilities=tuple(sorted(caller.capabilities)),
        dialect=prompt.dialect,
        tool_names=prompt.tool_names,
        prompt_version=SYSTEM_PROMPT_VERSION,
        situation=shorten_text(
            build_situation(prompt.scope, prompt.snapshot, ToolNaming(prompt.tool_names)), MAX_SITUATION_CHARS
        ),
        max_rounds=min(resources.settings.max_rounds, prompt.max_rounds or resources.settings.max_rounds),
        thinking_tokens=resources.settings.thinking_tokens
        if prompt.thinking_tokens is None
        else prompt.thinking_tokens,
        budgeted=_is_budgeted(resources, caller, chosen),
        started_ms=int(now * 1000),
        expires=int(now) + resources.settings.turn_lifetime_seconds,
    )


def _is_budgeted(resources: Resources, caller: Caller, chosen: ModelChoice) -> bool:
    """Read anew, because a limit that was set a second ago is meant for the turn that starts now."""
    month = resources.clock.now_iso()[:7]
    accounts = get_budgets(resources, caller.tenant, refresh=True).list_accounts(caller.tenant, caller.user, month)
    return bool(accounts) and not get_model_traits(chosen.provider).are_free


def _commit(
    resources: Resources, prompt: TurnPrompt, content: Sequence[Block], conversation: Conversation, turn: Turn
) -> LogEntry:
    """START: user message, turn row, the conversation's claim and log item 1 (and the idempotency key)."""
    position = find_free_position(resources, conversation)
    message = Message(
        position=position,
        role="user",
        content=tuple(content),
        turn=turn.id,
        created_at=resources.clock.now_iso(),
    )
    snapshot = _kept_snapshot(resources, turn, prompt.packed or prompt.snapshot)
    standing = TurnState(position=position + 1, snapshot=snapshot, revision=prompt.revision)
    entry = LogEntry(1, 1, (BridgeReadyEvent(bridge_id=turn.id),), standing, new_id(16), turn.started_ms)
    commit_start(
        resources,
        turn,
        entry,
        build_claim_update(
            resources, conversation, turn, position + 1, conversation_store.title_from_prompt(prompt.content)
        ),
        message_store.build_message_put(resources, turn.tenant, conversation.id, message),
        *build_idempotency_puts(resources, turn, prompt.idempotency_key, prompt.digest),
    )
    return entry


def _kept_snapshot(resources: Resources, turn: Turn, snapshot: Any) -> str:
    return (
        ""
        if snapshot is None
        else resources.blobs.put_compressed_json(blob_store.turn_folder(turn.tenant, turn.id), snapshot)
    )
