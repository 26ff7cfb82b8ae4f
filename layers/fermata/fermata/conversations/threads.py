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

from fermata.aws.clock import may_be_id, new_id
from fermata.aws.desk import Desk
from fermata.aws.dynamo import ConditionFailed, Item, Put, Update
from fermata.conversations import rows
from fermata.words.blocks import Block
from fermata.words.caller import Caller
from fermata.words.conversation import Conversation
from fermata.words.errors import Invalid, NotFound
from fermata.words.money import shown_usd

UNTITLED = "New conversation"
TITLE_CHARS = 60
BIN_SHARDS = 4
INDEX = "byUser"
GONE = "Conversation not found"
_CURSOR = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) ([A-Za-z0-9_-]{1,64})", re.ASCII)


@dataclass(frozen=True)
class Page:
    """`cursor` leads to what follows; None on the last page."""

    conversations: Sequence[Conversation]
    cursor: str | None


def shelf(tenant: str, user: str, scope: str) -> str:
    """The index partition that lists one user's conversations of one scope, newest first."""
    return f"t#{tenant}#u#{user}#{scope}"


def bin_of(conversation_id: str) -> str:
    """The index partition of deleted conversations, oldest first."""
    return bin_shard(zlib.crc32(conversation_id.encode()) % BIN_SHARDS)


def bin_shard(number: int) -> str:
    return f"bin#{number}"


def create(
    desk: Desk, caller: Caller, scope: str, title: str | None, credential_id: str | None, model_id: str
) -> Conversation:
    now = desk.clock.instant()
    conversation = Conversation(
        id=new_id(),
        tenant=caller.tenant,
        user=caller.user,
        scope=scope,
        title=title or UNTITLED,
        credential_id=credential_id,
        model_id=model_id,
        created_at=now,
        updated_at=now,
    )
    # Without a condition: nobody else has this id, and a put that is sent twice must not fail at itself.
    desk.tables.write(Put(desk.settings.conversations_table, item(conversation)))
    return conversation


def find(desk: Desk, caller: Caller, conversation_id: str) -> Conversation:
    """The caller's own conversation; anybody else's and a deleted one are as absent as a missing one."""
    row = _own_row(desk, caller, conversation_id)
    if "deleted_at" in row:
        raise NotFound(GONE)
    return read(row)


def newest(desk: Desk, caller: Caller, scope: str, *, cursor: str | None = None, limit: int) -> Page:
    """The caller's conversations of a scope, the one that was used last first. One query."""
    place = shelf(caller.tenant, caller.user, scope)
    after = _behind(caller, place, cursor) if cursor else None
    table = desk.settings.conversations_table
    found = desk.tables.query_index(table, INDEX, ("gpk", place), descending=True, limit=limit + 1, after=after)
    page = [read(row) for row in found[:limit]]
    return Page(page, _cursor(page[-1]) if len(found) > limit else None)


def change(
    desk: Desk,
    caller: Caller,
    conversation_id: str,
    *,
    title: str | None = None,
    credential_id: str | None = None,
    model_id: str | None = None,
) -> Conversation:
    """What is not given stays. A turn that runs goes on with what it was started with."""
    conversation = find(desk, caller, conversation_id)
    given = {"title": title, "credential_id": credential_id, "model_id": model_id}
    wanted = {name: value for name, value in given.items() if value is not None}
    if not wanted:
        return conversation
    stamped = wanted | {"updated_at": (now := desk.clock.instant()), "gsk": now}
    kept = "attribute_exists(pk) AND attribute_not_exists(deleted_at)"
    try:
        desk.tables.write(_update(desk, conversation, stamped, kept))
    except ConditionFailed as refused:
        raise NotFound(GONE) from refused
    return find(desk, caller, conversation_id)


def remove(desk: Desk, caller: Caller, conversation_id: str) -> Conversation:
    """Into the bin. Removing again what was removed is fine, and changes nothing.

    No prompt is let in afterwards; a turn that runs is the `claim` of what is returned.
    """
    row = _own_row(desk, caller, conversation_id)
    if "deleted_at" in row:
        return read(row)
    now = desk.clock.instant()
    binned = {"deleted_at": now, "gpk": bin_of(conversation_id), "gsk": now}
    desk.tables.write(_update(desk, read(row), binned, "attribute_exists(pk)"))
    return read(_own_row(desk, caller, conversation_id))


def title_of(content: Sequence[Block]) -> str:
    """A thread without a name is called after its first prompt (contract instatic.md §1.3)."""
    words = " ".join(" ".join(block.text for block in content if block.kind == "text").split())
    if not words:
        return "Image" if len(content) == 1 else "Images"
    return words if len(words) <= TITLE_CHARS else words[:TITLE_CHARS] + "…"


def item(conversation: Conversation) -> Item:
    row: Item = conversation.model_dump(exclude_none=True)
    if conversation.title == UNTITLED:
        del row["title"]
    row |= {"pk": rows.partition(conversation.tenant, conversation.id), "sk": "meta", "v": 1}
    place = shelf(conversation.tenant, conversation.user, conversation.scope)
    return row | {"gpk": place, "gsk": conversation.updated_at}


def read(row: Item) -> Conversation:
    """A title that somebody gave counts before the one the first prompt gave (turns/starting.py)."""
    title = row.get("title") or row.get("auto_title") or UNTITLED
    return Conversation.model_validate(row | {"title": title})


def view(conversation: Conversation) -> dict[str, Any]:
    """The contract's ConversationView: numbers are numbers, only `credentialId` may be null."""
    hidden = {"tenant", "user", "claim", "next_position"}
    shown = conversation.model_dump(mode="json", by_alias=True, exclude=hidden)
    return shown | {"costUsdTotal": shown_usd(conversation.cost_usd_total)}


def _own_row(desk: Desk, caller: Caller, conversation_id: str) -> Item:
    if not may_be_id(conversation_id):
        raise NotFound(GONE)
    row = desk.tables.get(desk.settings.conversations_table, rows.partition(caller.tenant, conversation_id), "meta")
    if row is None or row["user"] != caller.user:
        raise NotFound(GONE)
    return row


def _update(desk: Desk, conversation: Conversation, values: Item, condition: str) -> Update:
    settings = ", ".join(f"#{name} = :{name}" for name in values)
    return Update(
        desk.settings.conversations_table,
        rows.partition(conversation.tenant, conversation.id),
        "meta",
        f"SET {settings}",
        {f":{name}": value for name, value in values.items()},
        names={f"#{name}": name for name in values},
        condition=condition,
    )


def _cursor(last: Conversation) -> str:
    text = f"{last.updated_at} {last.id}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _behind(caller: Caller, place: str, cursor: str) -> Item:
    """The keys a cursor stands for. Its partition is the caller's own, whatever it says."""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, ValueError):
        text = ""
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise Invalid("'cursor' must be the nextCursor of the page before.")
    return {"gpk": place, "gsk": found[1], "pk": rows.partition(caller.tenant, found[2]), "sk": "meta"}
