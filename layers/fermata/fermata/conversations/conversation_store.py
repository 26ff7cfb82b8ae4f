"""Store conversations: create, list, change and delete them, each for the user whose it is.

Deleting moves a conversation from the index of its user into the bin, from where it is purged a month later
(purge.py). Until then only an operator can restore it (decision 0066).
"""

import contextlib
import re
from collections.abc import Sequence

from fermata.aws.clock import is_valid_id, new_id
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, Put, ReadItem, Update
from fermata.aws.resources import Resources
from fermata.conversations.conversation_rows import (
    UNTITLED_CONVERSATION,
    USER_INDEX,
    bin_partition_of_conversation,
    build_conversation_key,
    conversation_from_item,
    to_conversation_item,
    user_partition,
)
from fermata.conversations.message_store import conversation_partition
from fermata.domain.blocks import Block
from fermata.domain.caller import Caller
from fermata.domain.conversation import Conversation
from fermata.domain.errors import Forbidden, NotFound, ServiceUnavailable
from fermata.domain.page_cursor import decode_page_cursor, encode_page_cursor
from fermata.domain.value_dataclass import value_dataclass

MAX_TITLE_CHARS = 60
MAX_UPDATE_ATTEMPTS = 5
CONVERSATION_NOT_FOUND = "Conversation not found"
_CURSOR_PATTERN = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) ([A-Za-z0-9_-]{1,64})", re.ASCII)


@value_dataclass(frozen=True)
class ConversationPage:
    """One page of a list. `next_cursor` is None on the last page."""

    conversations: Sequence[Conversation]
    next_cursor: str | None


def create_conversation(
    resources: Resources,
    caller: Caller,
    scope: str,
    title: str | None,
    credential_id: str | None,
    model_id: str,
    *,
    conversation_id: str = "",
    space: str = "",
) -> Conversation:
    """Store a new conversation of the caller, without messages.

    Args:
        scope: The assistant that its prompts ask.
        title: The title that the user gave; None until the first prompt gives one.
        credential_id: The credential of its turns; None for the scope's default. It is not looked up here.
        model_id: The provider's name of the model; empty for the scope's default.
        conversation_id: An id that is derived from something else; empty for a new one. What is stored under it stays.
        space: The content space of its turns. It is not looked up here.

    Raises:
        Forbidden: The caller's API key is not for this scope.
    """
    if not caller.allows_scope(scope):
        raise Forbidden(f"Forbidden: this key is not for the scope {scope}.")
    now = resources.clock.now_iso()
    conversation = Conversation(
        id=conversation_id or new_id(),
        tenant=caller.tenant,
        user=caller.user,
        scope=scope,
        title=title or UNTITLED_CONVERSATION,
        credential_id=credential_id,
        model_id=model_id,
        space=space,
        created_at=now,
        updated_at=now,
    )
    _store_new_row(resources, to_conversation_item(conversation))
    return conversation


def _store_new_row(resources: Resources, row: Item) -> None:
    """Store a row unless its id is in use: then a copy of this write has created it, and it may have messages already.

    One that was discarded, because its first prompt was refused, makes room. It is counted how often, so that no late
    copy of a write takes the place of a later one.
    """
    table = resources.settings.conversations_table
    try:
        resources.tables.write_items(Put(table, row, if_absent=True))
    except ConditionFailed as refused:
        if refused.item is None or "discarded" not in refused.item:
            return
        discards = {"discards": refused.item["discards"]}
        condition = "attribute_exists(discarded) AND discards = :discards"
        with contextlib.suppress(ConditionFailed):
            resources.tables.write_items(
                Put(table, row | discards, condition=condition, values={":discards": refused.item["discards"]})
            )


def get_conversation(
    resources: Resources, caller: Caller, conversation_id: str, read_item: ReadItem | None = None
) -> Conversation:
    """Return the caller's own conversation.

    Args:
        conversation_id: The id, as a client sent it.
        read_item: Reads the row; by default from its table.

    Raises:
        NotFound: The conversation does not exist, is deleted, or belongs to another user.
    """
    return conversation_from_item(_get_live_row(resources, caller, conversation_id, read_item))


def list_conversations(
    resources: Resources, caller: Caller, scope: str, *, cursor: str | None = None, limit: int
) -> ConversationPage:
    """Return a page of the caller's conversations of a scope, the latest use first, by one query.

    Args:
        scope: The assistant whose conversations are listed.
        cursor: `next_cursor` of the page before.
        limit: The greatest number of conversations on the page.

    Raises:
        InvalidRequest: The cursor is malformed.
    """
    partition = user_partition(caller.tenant, caller.user, scope)
    rows = resources.tables.query_index(
        resources.settings.conversations_table,
        USER_INDEX,
        ("gpk", partition),
        descending=True,
        limit=limit + 1,
        start_after=_decode_cursor(caller, partition, cursor) if cursor else None,
    )
    conversations = [conversation_from_item(row) for row in rows[:limit]]
    if len(rows) <= limit:
        return ConversationPage(conversations, None)
    last = conversations[-1]
    return ConversationPage(conversations, encode_page_cursor(last.updated_at, last.id))


def update_conversation(
    resources: Resources,
    caller: Caller,
    conversation_id: str,
    *,
    title: str | None = None,
    credential_id: str | None = None,
    model_id: str | None = None,
    space: str | None = None,
    archived: bool | None = None,
) -> Conversation:
    """Change what is given and return the conversation. A running turn keeps the model it was started with.

    Args:
        title: The new title; None, as in the other arguments, leaves what is stored.
        credential_id: The credential of later turns. It is not looked up here.
        model_id: The provider's name of the model of later turns.
        space: The content space of later turns. It is not looked up here.
        archived: Whether its client lists it apart.

    Raises:
        NotFound: The conversation does not exist, is deleted, or belongs to another user.
        ServiceUnavailable: Other requests changed it in each of MAX_UPDATE_ATTEMPTS attempts.
    """
    requested: Item = {"title": title, "credential_id": credential_id, "model_id": model_id, "space": space}
    requested |= {"archived": archived}
    changes = {name: value for name, value in requested.items() if value is not None}
    if not changes:
        return get_conversation(resources, caller, conversation_id)
    for _ in range(MAX_UPDATE_ATTEMPTS):
        if _write_changes(resources, _get_live_row(resources, caller, conversation_id), changes):
            return get_conversation(resources, caller, conversation_id)
    raise ServiceUnavailable("Other requests are changing this conversation. Try again.", retry_after=1)


def _write_changes(resources: Resources, row: Item, changes: Item) -> bool:
    """Write changes that were requested on `row`, and return whether they are stored.

    They replace one version of what users can change, so that no copy of this write undoes a later change
    (decision 0150).
    """
    now = resources.clock.now_iso()
    read_version = row.get("settings_version", 0)
    version = {"settings_version": read_version + 1}
    condition = "attribute_exists(pk) AND attribute_not_exists(deleted_at) AND "
    condition += "settings_version = :read" if read_version else "attribute_not_exists(settings_version)"
    update = _build_update(resources, row, changes | version | {"updated_at": now, "gsk": now}, condition)
    if read_version:
        update.values[":read"] = read_version
    try:
        resources.tables.write_items(update)
    except ConditionFailed as refused:
        # A copy of this write, or an equal one, may have been faster.
        return refused.item is not None and (changes | version).items() <= refused.item.items()
    return True


def delete_conversation(resources: Resources, caller: Caller, conversation_id: str) -> Conversation:
    """Move a conversation into the bin. Idempotent.

    No prompt is accepted afterwards.

    Args:
        caller: The user whose conversation it is.
        conversation_id: The id, as a client sent it.

    Returns:
        The deleted conversation; its `claim` is the turn that still runs, if any.

    Raises:
        NotFound: The conversation does not exist or belongs to another user.
    """
    row = _get_own_row(resources, caller, conversation_id)
    if "deleted_at" in row:
        return conversation_from_item(row)
    move_conversation_to_bin(resources, row)
    return conversation_from_item(_get_own_row(resources, caller, conversation_id))


def move_conversation_to_bin(resources: Resources, row: Item) -> None:
    """Move a conversation into the bin by its row, whoever's it is. No prompt is accepted afterwards. Idempotent."""
    now = resources.clock.now_iso()
    changes = {"deleted_at": now, "gpk": bin_partition_of_conversation(row["id"]), "gsk": now}
    condition = "attribute_exists(pk) AND attribute_not_exists(deleted_at)"
    with contextlib.suppress(ConditionFailed):  # deleted meanwhile, by a copy of this write or by another
        resources.tables.write_items(_build_update(resources, row, changes, condition))


def title_from_prompt(content: Sequence[Block]) -> str:
    """Return the title that a conversation gets from its first prompt: the beginning of the text, or "Image(s)"."""
    words = " ".join(" ".join(block.text for block in content if block.kind == "text").split())
    if not words:
        return "Image" if len(content) == 1 else "Images"
    return words if len(words) <= MAX_TITLE_CHARS else words[:MAX_TITLE_CHARS] + "…"


def _get_own_row(resources: Resources, caller: Caller, conversation_id: str, read_item: ReadItem | None = None) -> Item:
    if not is_valid_id(conversation_id):
        raise NotFound(CONVERSATION_NOT_FOUND)
    read_item = read_item or resources.tables.get_item_by_key
    row = read_item(build_conversation_key(resources, caller.tenant, conversation_id))
    if row is None or row["user"] != caller.user or not caller.allows_scope(row["scope"]):
        raise NotFound(CONVERSATION_NOT_FOUND)
    return row


def _get_live_row(
    resources: Resources, caller: Caller, conversation_id: str, read_item: ReadItem | None = None
) -> Item:
    row = _get_own_row(resources, caller, conversation_id, read_item)
    if "deleted_at" in row:
        raise NotFound(CONVERSATION_NOT_FOUND)
    return row


def _build_update(resources: Resources, row: Item, values: Item, condition: str) -> Update:
    assignments = ", ".join(f"#{name} = :{name}" for name in values)
    return Update(
        resources.settings.conversations_table,
        row["pk"],
        row["sk"],
        f"SET {assignments}",
        {f":{name}": value for name, value in values.items()},
        names={f"#{name}": name for name in values},
        condition=condition,
    )


def _decode_cursor(caller: Caller, partition: str, cursor: str) -> Item:
    """Return the index keys of a cursor. The partition is always the caller's own (decision 0067)."""
    updated_at, conversation_id = decode_page_cursor(cursor, _CURSOR_PATTERN)
    pk = conversation_partition(caller.tenant, conversation_id)
    return {"gpk": partition, "gsk": updated_at, "pk": pk, "sk": "meta"}
