"""Conversations: their rows, who may see them, and how they look outside (contract instatic.md §1.2)."""

from typing import Any

from fermata.aws.clock import new_id
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item, Put
from fermata.conversations import rows
from fermata.words.blocks import ImageBlock, ToolResultBlock
from fermata.words.caller import Caller
from fermata.words.conversation import Conversation
from fermata.words.errors import NotFound
from fermata.words.messages import Message

UNTITLED = "New conversation"


def shelf(conversation: Conversation) -> str:
    """The index partition that lists one user's conversations of one scope, newest first."""
    return f"t#{conversation.tenant}#u#{conversation.user}#{conversation.scope}"


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
    desk.tables.write(Put(desk.settings.conversations_table, item(conversation), absent=True))
    return conversation


def find(desk: Desk, caller: Caller, conversation_id: str) -> Conversation:
    """The caller's own conversation; anybody else's is as absent as a missing one."""
    pk = rows.partition(caller.tenant, conversation_id)
    found = desk.tables.get(desk.settings.conversations_table, pk, "meta")
    if found is None or found["user"] != caller.user:
        raise NotFound("Conversation not found")
    return read(found)


def item(conversation: Conversation) -> Item:
    row: Item = conversation.model_dump(exclude_none=True)
    row |= {"pk": rows.partition(conversation.tenant, conversation.id), "sk": "meta", "v": 1}
    return row | {"gpk": shelf(conversation), "gsk": conversation.updated_at}


def read(row: Item) -> Conversation:
    return Conversation.model_validate(row)


def view(conversation: Conversation) -> dict[str, Any]:
    """The contract's ConversationView: numbers are numbers, only `credentialId` may be null."""
    hidden = {"tenant", "user", "claim", "next_position"}
    shown = conversation.model_dump(mode="json", by_alias=True, exclude=hidden)
    return shown | {"costUsdTotal": float(conversation.cost_usd_total)}


def messages_view(desk: Desk, caller: Caller, conversation_id: str) -> list[dict[str, Any]]:
    messages = rows.load(desk, caller.tenant, conversation_id)
    return [line for message in messages for line in _lines(message)]


def _lines(message: Message) -> list[dict[str, Any]]:
    groups = rows.lines(message.content)
    return [_line(message, offset, [_shown(block) for block in group]) for offset, group in enumerate(groups)]


def _line(message: Message, offset: int, content: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": f"{message.turn}-{message.position + offset}",
        "position": message.position + offset,
        "role": message.role,
        "content": content,
        "toolCallId": content[0].get("toolCallId", message.tool_call_id),
        "toolName": content[0].get("toolName", message.tool_name),
        "createdAt": message.created_at,
    }


def _shown(block: Any) -> dict[str, Any]:
    if isinstance(block, ToolResultBlock):
        return {"kind": "toolResult", "ok": block.ok} | ({"error": block.error} if block.error else {})
    if isinstance(block, ImageBlock):
        return block.model_dump(mode="json", by_alias=True, include={"kind", "mime_type", "data"})
    shown: dict[str, Any] = block.wire()
    shown.pop("malformed", None)
    return shown
