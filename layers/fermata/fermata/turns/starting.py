"""A prompt becomes a turn: everything is checked first, then one transaction makes it true, then it is set going."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from fermata.aws import blobs, signals
from fermata.aws.clock import new_id
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item, Put, TransactionRefused, Update
from fermata.aws.trouble import TROUBLE
from fermata.conversations import rows, threads
from fermata.credentials.choosing import Chosen, resolve
from fermata.pricing.charging import FREE
from fermata.tools.catalogue import situation
from fermata.tools.names import Names
from fermata.tools.trim import shortened_text
from fermata.turns import log as logs
from fermata.turns import turn as turns
from fermata.turns.accounting import CHARS_PER_TOKEN, hold
from fermata.turns.gates import check_abilities
from fermata.turns.log import Entry
from fermata.turns.room import BUSY, make_room
from fermata.turns.standing import Standing
from fermata.turns.turn import Turn, partition
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
IDEMPOTENCY_SECONDS = 24 * 3600
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
    idempotency_key: str = ""
    max_rounds: int | None = None
    """The tenant's own limit, where it is lower than the deployment's."""

    @property
    def digest(self) -> str:
        said = [block.wire() for block in self.content]
        whole = [self.scope, self.conversation_id, said, self.snapshot]
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Started:
    """The turn and its first log entry, which says `bridgeReady`."""

    turn: Turn
    entry: Entry


def start(desk: Desk, caller: Caller, prompt: Prompt) -> Started:
    """The same Idempotency-Key and body joins the turn they started. Refusals come before anything is written."""
    joined = _joined(desk, caller, prompt)
    if joined:
        return joined
    try:
        return _start(desk, caller, prompt)
    except Conflict:
        # The same request may have come twice at once, and the other one was faster.
        joined = _joined(desk, caller, prompt)
        if joined:
            return joined
        raise


def _start(desk: Desk, caller: Caller, prompt: Prompt) -> Started:
    conversation = threads.find(desk, caller, prompt.conversation_id)
    if conversation.scope != prompt.scope:
        raise Invalid(f"This conversation belongs to scope {conversation.scope}, not {prompt.scope}.")
    chosen = resolve(desk, caller.tenant, prompt.scope, conversation.credential_id, conversation.model_id)
    check_abilities(desk, caller, chosen, prompt.scope, prompt.content)
    if gone := conversation.claim:
        make_room(desk, caller, gone, prompt.dialect)
        conversation = threads.find(desk, caller, prompt.conversation_id)
        if conversation.claim not in (None, gone):
            raise Conflict(BUSY, retry_after=2)
    turn = _turn(desk, caller, prompt, conversation, chosen)
    _hold(desk, turn, conversation, prompt)
    try:
        entry = _commit(desk, prompt, conversation, turn)
    except Conflict:
        if turn.budgeted:
            holds.release(desk, turn.tenant, turn.id)
        raise
    _set_going(desk, turn)
    signals.count({"TurnsStarted": 1})
    _tell(turn)
    labels.remember(desk, caller)
    return Started(turn, entry)


def _hold(desk: Desk, turn: Turn, conversation: Conversation, prompt: Prompt) -> None:
    """Reserve what the first request may cost, so that a turn the budget does not cover is refused, not broken off."""
    said = sum(len(block.text) for block in prompt.content if isinstance(block, TextBlock)) + len(turn.situation)
    hold(desk, turn, 1, 1, conversation.context_tokens + said // CHARS_PER_TOKEN)


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
        budgeted=_is_budgeted(desk, caller, chosen),
        started_ms=int(now * 1000),
        expires=int(now) + desk.settings.turn_lifetime_seconds,
    )


def _is_budgeted(desk: Desk, caller: Caller, chosen: Chosen) -> bool:
    """Read anew, because a limit that was set a second ago is meant for the turn that starts now."""
    accounts = budgets_of(desk, caller.tenant, fresh=True).accounts(caller.tenant, caller.user)
    return chosen.provider != FREE and bool(accounts)


def _commit(desk: Desk, prompt: Prompt, conversation: Conversation, turn: Turn) -> Entry:
    """START: user message, turn row, the conversation's claim and log item 1 (and the idempotency key)."""
    position = _free_position(desk, conversation)
    message = Message(
        position=position,
        role="user",
        content=prompt.content,
        turn=turn.id,
        created_at=desk.clock.instant(),
    )
    standing = Standing(position=position + 1, snapshot=_kept_snapshot(desk, turn, prompt.snapshot))
    entry = Entry(1, 1, (BridgeReady(bridge_id=turn.id),), standing, new_id(16), turn.started_ms)
    bridges = desk.settings.bridges_table
    try:
        desk.tables.write(
            _claim(desk, conversation, turn, position, prompt),
            Put(bridges, turns.item(turn), absent=True),
            Put(bridges, logs.item(desk, turn.place, entry), absent=True),
            rows.put(desk, turn.tenant, conversation.id, message),
            *_idempotency(desk, turn, prompt),
        )
    except (TransactionRefused, *TROUBLE) as failure:
        # Nobody else writes under this turn's id: when it is there, it was written and only the answer was lost.
        if logs.last(desk, turn.pk) is not None:
            return entry
        if isinstance(failure, TransactionRefused):
            raise Conflict(BUSY, retry_after=2) from failure
        raise
    return entry


def _free_position(desk: Desk, conversation: Conversation) -> int:
    """Behind everything that is there. A turn that never let go of its claim may have written more than it told."""
    if conversation.claim is None:
        return conversation.next_position
    tail = logs.last(desk, partition(conversation.tenant, conversation.claim))
    return max(conversation.next_position, tail.standing.position if tail else 0)


def _kept_snapshot(desk: Desk, turn: Turn, snapshot: Any) -> str:
    return "" if snapshot is None else desk.blobs.put(blobs.turn_folder(turn.tenant, turn.id), snapshot)


def _claim(desk: Desk, conversation: Conversation, turn: Turn, position: int, prompt: Prompt) -> Update:
    """Only while it is as it was read: free, or in the hands of a turn that is over; and no message came since."""
    values = {
        ":turn": turn.id,
        ":read": conversation.next_position,
        ":next": position + 1,
        ":now": desk.clock.instant(),
        ":title": threads.title_of(prompt.content),
    }
    free = "attribute_not_exists(claim)"
    if conversation.claim:
        free, values[":gone"] = "claim = :gone", conversation.claim
    return Update(
        desk.settings.conversations_table,
        rows.partition(turn.tenant, conversation.id),
        "meta",
        "SET claim = :turn, next_position = :next, updated_at = :now, gsk = :now, "
        "auto_title = if_not_exists(auto_title, :title)",
        values,
        condition=f"{free} AND next_position = :read AND attribute_not_exists(deleted_at)",
    )


def _idempotency_place(caller_tenant: str, user: str, key: str) -> tuple[str, str]:
    return f"t#{caller_tenant}#u#{user}#idempotency", hashlib.sha256(key.encode()).hexdigest()


def _idempotency(desk: Desk, turn: Turn, prompt: Prompt) -> list[Put]:
    if not prompt.idempotency_key:
        return []
    pk, sk = _idempotency_place(turn.tenant, turn.user, prompt.idempotency_key)
    expires = int(desk.clock.time()) + IDEMPOTENCY_SECONDS
    item: Item = {"pk": pk, "sk": sk, "v": 1, "turn": turn.id, "digest": prompt.digest, "ttl": expires}
    free = "attribute_not_exists(pk) OR #ttl <= :now"
    values = {":now": int(desk.clock.time())}
    return [Put(desk.settings.bridges_table, item, condition=free, values=values, names={"#ttl": "ttl"})]


def _joined(desk: Desk, caller: Caller, prompt: Prompt) -> Started | None:
    if not prompt.idempotency_key:
        return None
    pk, sk = _idempotency_place(caller.tenant, caller.user, prompt.idempotency_key)
    found = desk.tables.get(desk.settings.bridges_table, pk, sk)
    if found is None or found["ttl"] <= desk.clock.time():
        return None
    if found["digest"] != prompt.digest:
        raise Conflict("This Idempotency-Key was used for another request. Use a new key for a new prompt.")
    turn = turns.find(desk, caller.tenant, found["turn"])
    first, tail = logs.last(desk, turn.pk, upto=1), logs.last(desk, turn.pk)
    if first is None or tail is None:
        return None
    if tail.standing.phase == "started":
        _set_going(desk, turn)
    return Started(turn, first)


def _set_going(desk: Desk, turn: Turn) -> None:
    """A start that fails here is made up for by the sweep, or by the same request again: the turn is already true."""
    try:
        desk.workflow.start(turn.tenant, turn.id, turn.n)
    except TROUBLE:
        signals.failed("turn.start_failed", turn=turn.id)
