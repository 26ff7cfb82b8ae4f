"""Conversations: their rows, who may see them, and how they look outside (contract instatic.md §1.2).

A row lies on its user's shelf, where the newest comes first. Deleting moves it into the bin, from where it is
forgotten a month later (purging.py); until then only an operator can bring it back.
"""

import base64
import binascii
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fermata.aws.clock import is_valid_id, new_id
from fermata.aws.dynamodb import ConditionFailed, Item, Put, Update
from fermata.aws.resources import Resources
from fermata.conversations import message_store
from fermata.domain.blocks import Block
from fermata.domain.caller import Caller
from fermata.domain.conversation import Conversation
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.domain.money import round_usd

UNTITLED_CONVERSATION = "New conversation"
MAX_TITLE_CHARS = 60
BIN_SHARD_COUNT = 4
USER_INDEX = "byUser"
CONVERSATION_NOT_FOUND = "Conversation not found"
_CURSOR_PATTERN = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) ([A-Za-z0-9_-]{1,64})", re.ASCII)


@dataclass(frozen=True)
class ConversationPage:
    """`cursor` leads to what follows; None on the last page."""

    conversations: Sequence[Conversation]
    next_cursor: str | None


def user_partition(tenant: str, user: str, scope: str) -> str:
    """The index partition that lists one user's conversations of one scope, newest first."""
    return f"t#{tenant}#u#{user}#{scope}"


def bin_partition(conversation_id: str) -> str:
    """The index partition of deleted conversations, oldest first."""
    return bin_shard_partition(zlib.crc32(conversation_id.encode()) % BIN_SHARD_COUNT)


def bin_shard_partition(shard: int) -> str:
    return f"bin#{shard}"


def create_conversation(
    resources: Resources, caller: Caller, scope: str, title: str | None, credential_id: str | None, model_id: str
) -> Conversation:
    now = resources.clock.now_iso()
    conversation = Conversation(
        id=new_id(),
        tenant=caller.tenant,
        user=caller.user,
        scope=scope,
        title=title or UNTITLED_CONVERSATION,
        credential_id=credential_id,
        model_id=model_id,
        created_at=now,
        updated_at=now,
    )
    # Without a condition: nobody else has this id, and a put that is sent twice must not fail at itself.
    resources.tables.write_items(Put(resources.settings.conversations_table, to_conversation_item(conversation)))
    return conversation


def get_conversation(resources: Resources, caller: Caller, conversation_id: str) -> Conversation:
    """The caller's own conversation; anybody else's and a deleted one are as absent as a missing one."""
    row = _get_own_row(resources, caller, conversation_id)
    if "deleted_at" in row:
        raise NotFound(CONVERSATION_NOT_FOUND)
    return conversation_from_item(row)


def list_conversations(
    resources: Resources, caller: Caller, scope: str, *, cursor: str | None = None, limit: int
) -> ConversationPage:
    """The caller's conversations of a scope, the one that was used last first. One query."""
    place = user_partition(caller.tenant, caller.user, scope)
    after = _decode_cursor(caller, place, cursor) if cursor else None
    table = resources.settings.conversations_table
    found = resources.tables.query_index(
        table, USER_INDEX, ("gpk", place), descending=True, limit=limit + 1, start_after=after
    )
    page = [conversation_from_item(row) for row in found[:limit]]
    return ConversationPage(page, _encode_cursor(page[-1]) if len(found) > limit else None)


def update_conversation(
    resources: Resources,
    caller: Caller,
    conversation_id: str,
    *,
    title: str | None = None,
    credential_id: str | None = None,
    model_id: str | None = None,
) -> Conversation:
    """What is not given stays. A turn that runs goes on with what it was started with."""
    conversation = get_conversation(resources, caller, conversation_id)
    given = {"title": title, "credential_id": credential_id, "model_id": model_id}
    wanted = {name: value for name, value in given.items() if value is not None}
    if not wanted:
        return conversation
    stamped = wanted | {"updated_at": (now := resources.clock.now_iso()), "gsk": now}
    kept = "attribute_exists(pk) AND attribute_not_exists(deleted_at)"
    try:
        resources.tables.write_items(_build_update(resources, conversation, stamped, kept))
    except ConditionFailed as refused:
        raise NotFound(CONVERSATION_NOT_FOUND) from refused
    return get_conversation(resources, caller, conversation_id)


def delete_conversation(resources: Resources, caller: Caller, conversation_id: str) -> Conversation:
    """Into the bin. Removing again what was removed is fine, and changes nothing.

    No prompt is let in afterwards; a turn that runs is the `claim` of what is returned.
    """
    row = _get_own_row(resources, caller, conversation_id)
    if "deleted_at" in row:
        return conversation_from_item(row)
    now = resources.clock.now_iso()
    binned = {"deleted_at": now, "gpk": bin_partition(conversation_id), "gsk": now}
    resources.tables.write_items(_build_update(resources, conversation_from_item(row), binned, "attribute_exists(pk)"))
    return conversation_from_item(_get_own_row(resources, caller, conversation_id))


def title_from_prompt(content: Sequence[Block]) -> str:
    """A thread without a name is called after its first prompt (contract instatic.md §1.3)."""
    words = " ".join(" ".join(block.text for block in content if block.kind == "text").split())
    if not words:
        return "Image" if len(content) == 1 else "Images"
    return words if len(words) <= MAX_TITLE_CHARS else words[:MAX_TITLE_CHARS] + "…"


def to_conversation_item(conversation: Conversation) -> Item:
    row: Item = conversation.model_dump(exclude_none=True)
    if conversation.title == UNTITLED_CONVERSATION:
        del row["title"]
    row |= {"pk": message_store.conversation_partition(conversation.tenant, conversation.id), "sk": "meta", "v": 1}
    place = user_partition(conversation.tenant, conversation.user, conversation.scope)
    return row | {"gpk": place, "gsk": conversation.updated_at}


def conversation_from_item(row: Item) -> Conversation:
    """A title that somebody gave counts before the one the first prompt gave (turns/start/start_turn.py)."""
    title = row.get("title") or row.get("auto_title") or UNTITLED_CONVERSATION
    return Conversation.model_validate(row | {"title": title})


def to_conversation_view(conversation: Conversation) -> dict[str, Any]:
    """The contract's ConversationView: numbers are numbers, only `credentialId` may be null."""
    hidden = {"tenant", "user", "claim", "next_position"}
    shown = conversation.model_dump(mode="json", by_alias=True, exclude=hidden)
    return shown | {"costUsdTotal": round_usd(conversation.cost_usd_total)}


def _get_own_row(resources: Resources, caller: Caller, conversation_id: str) -> Item:
    if not is_valid_id(conversation_id):
        raise NotFound(CONVERSATION_NOT_FOUND)
    row = resources.tables.get_item(
        resources.settings.conversations_table,
        message_store.conversation_partition(caller.tenant, conversation_id),
        "meta",
    )
    if row is None or row["user"] != caller.user:
        raise NotFound(CONVERSATION_NOT_FOUND)
    return row


def _build_update(resources: Resources, conversation: Conversation, values: Item, condition: str) -> Update:
    settings = ", ".join(f"#{name} = :{name}" for name in values)
    return Update(
        resources.settings.conversations_table,
        message_store.conversation_partition(conversation.tenant, conversation.id),
        "meta",
        f"SET {settings}",
        {f":{name}": value for name, value in values.items()},
        names={f"#{name}": name for name in values},
        condition=condition,
    )


def _encode_cursor(last: Conversation) -> str:
    text = f"{last.updated_at} {last.id}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode_cursor(caller: Caller, partition: str, cursor: str) -> Item:
    """The keys a cursor stands for. Its partition is the caller's own, whatever it says."""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, ValueError):
        text = ""
    found = _CURSOR_PATTERN.fullmatch(text)
    if found is None:
        raise InvalidRequest("'cursor' must be the nextCursor of the page before.")
    return {
        "gpk": partition,
        "gsk": found[1],
        "pk": message_store.conversation_partition(caller.tenant, found[2]),
        "sk": "meta",
    }
