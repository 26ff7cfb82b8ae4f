"""A prompt becomes a turn: everything is checked first, then one transaction makes it true, then it is set going."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from fermata.aws import blobs, signals
from fermata.aws.blobs import Packed
from fermata.aws.clock import new_id
from fermata.aws.desk import Desk
from fermata.conversations import rows, threads
from fermata.conversations.recipient import TOKENS_PER_PICTURE
from fermata.credentials.choosing import Chosen, resolve
from fermata.pricing.charging import FREE
from fermata.tools.catalogue import situation
from fermata.tools.names import Names
from fermata.tools.trim import shortened_text
from fermata.turns.accounting import CHARS_PER_TOKEN, hold
from fermata.turns.gates import check_abilities
from fermata.turns.intake import drawn_content
from fermata.turns.joining import Started, make_true, remembered, set_going, started_once
from fermata.turns.log import Entry
from fermata.turns.room import BUSY, claim, free_position, make_room
from fermata.turns.standing import Standing
from fermata.turns.turn import Turn
from fermata.usage import holds, labels
from fermata.usage.budgets import budgets_of
from fermata.words.blocks import Block, TextBlock
from fermata.words.caller import Caller
from fermata.words.conversation import Conversation
from fermata.words.dialect import Dialect, ToolNames
from fermata.words.errors import Conflict, Invalid
from fermata.words.events import BridgeReady
from fermata.words.messages import Message

PROMPT_VERSION = "1"
SITUATION_CHARS = 24_000
"""More of an editor's state than this is asked for with a tool; the turn's row has to hold it, and every request."""


@dataclass(frozen=True)
class Prompt:
    """What the user said, from where, and what the editor showed then."""

    scope: str
    conversation_id: str
    content: tuple[Block, ...]
    dialect: Dialect
    tool_names: ToolNames = "seed"
    snapshot: Any = None
    packed: Packed | None = None
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
        said = [block.wire() for block in self.content]
        whole = [self.scope, self.conversation_id, said, self.packed.digest if self.packed else self.snapshot]
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def start(desk: Desk, caller: Caller, prompt: Prompt) -> Started:
    """The same Idempotency-Key and body joins the turn they started. Refusals come before anything is written."""
    act = partial(_start, desk, caller, prompt)
    return started_once(desk, caller, prompt.idempotency_key, prompt.digest, act)


def _start(desk: Desk, caller: Caller, prompt: Prompt) -> Started:
    conversation = threads.find(desk, caller, prompt.conversation_id)
    if conversation.scope != prompt.scope:
        raise Invalid(f"This conversation belongs to scope {conversation.scope}, not {prompt.scope}.")
    chosen = resolve(desk, caller.tenant, prompt.scope, conversation.credential_id, conversation.model_id)
    check_abilities(desk, caller, chosen, prompt.scope, prompt.content)
    content = drawn_content(desk, caller, prompt.content, prompt.image_places)
    if gone := conversation.claim:
        make_room(desk, caller, gone, prompt.dialect)
        conversation = threads.find(desk, caller, prompt.conversation_id)
        if conversation.claim not in (None, gone):
            raise Conflict(BUSY, retry_after=2)
    turn = _turn(desk, caller, prompt, conversation, chosen)
    _hold(desk, turn, conversation, prompt)
    try:
        entry = _commit(desk, prompt, content, conversation, turn)
    except Conflict:
        if turn.budgeted:
            holds.release(desk, turn.tenant, turn.id)
        raise
    set_going(desk, turn)
    signals.count({"TurnsStarted": 1})
    _tell(turn)
    labels.remember(desk, caller)
    return Started(turn, entry)


def _hold(desk: Desk, turn: Turn, conversation: Conversation, prompt: Prompt) -> None:
    """Reserve what the first request may cost, so that a turn the budget does not cover is refused, not broken off."""
    said = sum(len(block.text) for block in prompt.content if isinstance(block, TextBlock)) + len(turn.situation)
    shown = sum(block.kind == "image" for block in prompt.content) * TOKENS_PER_PICTURE
    hold(desk, turn, 1, 1, conversation.context_tokens + said // CHARS_PER_TOKEN + shown)


def _tell(turn: Turn) -> None:
    signals.audit(
        "ai.chat.started",
        tenant=turn.tenant,
        user=turn.user,
        scope=turn.scope,
        conversation=turn.conversation,
        turn=turn.id,
        provider=turn.provider,
        model=turn.model,
    )


def _turn(desk: Desk, caller: Caller, prompt: Prompt, conversation: Conversation, chosen: Chosen) -> Turn:
    now = desk.clock.time()
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
        prompt_version=PROMPT_VERSION,
        situation=shortened_text(situation(prompt.scope, prompt.snapshot, Names(prompt.tool_names)), SITUATION_CHARS),
        max_rounds=min(desk.settings.max_rounds, prompt.max_rounds or desk.settings.max_rounds),
        thinking_tokens=desk.settings.thinking_tokens if prompt.thinking_tokens is None else prompt.thinking_tokens,
        budgeted=_is_budgeted(desk, caller, chosen),
        started_ms=int(now * 1000),
        expires=int(now) + desk.settings.turn_lifetime_seconds,
    )


def _is_budgeted(desk: Desk, caller: Caller, chosen: Chosen) -> bool:
    """Read anew, because a limit that was set a second ago is meant for the turn that starts now."""
    month = desk.clock.instant()[:7]
    accounts = budgets_of(desk, caller.tenant, fresh=True).accounts(caller.tenant, caller.user, month)
    return chosen.provider != FREE and bool(accounts)


def _commit(desk: Desk, prompt: Prompt, content: Sequence[Block], conversation: Conversation, turn: Turn) -> Entry:
    """START: user message, turn row, the conversation's claim and log item 1 (and the idempotency key)."""
    position = free_position(desk, conversation)
    message = Message(
        position=position,
        role="user",
        content=tuple(content),
        turn=turn.id,
        created_at=desk.clock.instant(),
    )
    snapshot = _kept_snapshot(desk, turn, prompt.packed or prompt.snapshot)
    standing = Standing(position=position + 1, snapshot=snapshot, revision=prompt.revision)
    entry = Entry(1, 1, (BridgeReady(bridge_id=turn.id),), standing, new_id(16), turn.started_ms)
    make_true(
        desk,
        turn,
        entry,
        claim(desk, conversation, turn, position + 1, threads.title_of(prompt.content)),
        rows.put(desk, turn.tenant, conversation.id, message),
        *remembered(desk, turn, prompt.idempotency_key, prompt.digest),
    )
    return entry


def _kept_snapshot(desk: Desk, turn: Turn, snapshot: Any) -> str:
    return "" if snapshot is None else desk.blobs.put_packed(blobs.turn_folder(turn.tenant, turn.id), snapshot)
