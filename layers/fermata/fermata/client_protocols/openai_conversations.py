"""Find the conversation that the messages of an OpenAI client belong to (decision 0385).

These clients keep no name of a conversation: they send all messages again. So the end of each answer stores which
conversation the messages up to it are. A client that sends the same messages, and a new prompt, goes on there. One that
has changed them, or comes after the row has expired, gets a new conversation that begins with its messages.

    t#<tenant>#u#<user>#idempotency   <sha256 of the messages>   the conversation, and its newest turn (bridges table)
    t#<tenant>#turn#<turn>            openai-deleted#<place>     a response of the turn that its client has deleted
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from fermata.aws.clock import is_valid_id, new_id
from fermata.aws.dynamodb_items_and_writes import Item, ItemKey, Put
from fermata.aws.resources import Resources
from fermata.client_protocols.chat_conversations import open_chat
from fermata.client_protocols.client_messages import parse_tool_content
from fermata.client_protocols.openai_transcript import TranscriptMessage, compute_transcript_digest
from fermata.conversations.conversation_store import get_conversation
from fermata.conversations.message_store import build_message_put, count_positions, read_newest_messages
from fermata.domain.blocks import Block, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.caller import Caller
from fermata.domain.conversation import Conversation
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.domain.messages import Message
from fermata.turns.start.idempotency import idempotency_partition
from fermata.turns.turn import Turn, find_turn_for_caller

TRANSCRIPT_SECONDS = 30 * 24 * 3600
MAX_IMPORTED_MESSAGES = 400
RESPONSE_ID_PREFIX = "resp_"
NO_PREVIOUS_RESPONSE = "Previous response with id '{}' not found."


def open_transcript_conversation(
    resources: Resources, caller: Caller, scope: str, earlier: Sequence[TranscriptMessage]
) -> Conversation:
    """Return the conversation in which these messages are the last ones, or a new one that begins with them.

    Args:
        resources: Of the process.
        caller: Whose conversation it is.
        scope: The agent's.
        earlier: What was said before the prompt, as the client has it: one message at least.

    Raises:
        NotFound: The tenant has no such agent, or the caller may not ask it.
        InvalidRequest: There are too many messages to begin with.
    """
    found = _find_conversation(resources, caller, scope, earlier)
    return found or _import_messages(resources, caller, scope, earlier)


def _find_conversation(
    resources: Resources, caller: Caller, scope: str, messages: Sequence[TranscriptMessage]
) -> Conversation | None:
    row = resources.tables.get_item_by_key(_build_key(resources, caller, scope, messages))
    if row is None or row["ttl"] <= resources.clock.time() or "conversation" not in row:
        return None
    try:
        conversation = get_conversation(resources, caller, row["conversation"])
    except NotFound:
        return None
    return conversation if _is_newest_turn(resources, conversation, row["turn"]) else None


def _is_newest_turn(resources: Resources, conversation: Conversation, turn_id: str) -> bool:
    """Return whether a conversation has not gone on since a turn."""
    newest = read_newest_messages(resources, conversation.tenant, conversation.id, limit=1)
    return conversation.claim in (None, turn_id) and bool(newest) and newest[0].turn == turn_id


def store_transcript(resources: Resources, caller: Caller, turn: Turn, messages: Sequence[TranscriptMessage]) -> None:
    """Store that these messages are the conversation of a turn that has ended.

    Args:
        resources: Of the process.
        caller: Who will send them again.
        turn: The turn.
        messages: All of them, with the answer.
    """
    table, pk, sk = _build_key(resources, caller, turn.scope, messages)
    now = int(resources.clock.time())
    item: Item = {"pk": pk, "sk": sk, "v": 1, "conversation": turn.conversation, "turn": turn.id, "digest": ""}
    resources.tables.put_newest(
        table, item | {"ttl": now + TRANSCRIPT_SECONDS, "stored_at": resources.clock.now_iso()}, "stored_at"
    )


def _build_key(resources: Resources, caller: Caller, scope: str, messages: Sequence[TranscriptMessage]) -> ItemKey:
    partition = idempotency_partition(caller.tenant, caller.user)
    name = f"openai {compute_transcript_digest(scope, messages)}"
    return ItemKey(resources.settings.bridges_table, partition, hashlib.sha256(name.encode()).hexdigest())


def _import_messages(
    resources: Resources, caller: Caller, scope: str, messages: Sequence[TranscriptMessage]
) -> Conversation:
    if len(messages) > MAX_IMPORTED_MESSAGES:
        raise InvalidRequest(
            f"A conversation that is not known here may begin with {MAX_IMPORTED_MESSAGES} messages at most."
        )
    contents = [_build_content(sent) for sent in messages]  # refused before there is a conversation
    conversation = open_chat(resources, caller, scope, new_id())
    position, turn, names = 0, new_id(), dict[str, str]()
    for sent, content in zip(messages, contents, strict=True):
        turn = new_id() if sent.role == "user" else turn
        names |= {call.call_id: call.tool_name for call in sent.calls}
        if not content:
            continue
        message = Message(
            position=position,
            role=sent.role,
            content=content,
            turn=turn,
            tool_call_id=sent.call_id or None,
            tool_name=names.get(sent.call_id, "unknown") if sent.call_id else None,
            created_at=resources.clock.now_iso(),
        )
        resources.tables.write_items(build_message_put(resources, caller.tenant, conversation.id, message))
        position += count_positions(message)
    return conversation


def _build_content(message: TranscriptMessage) -> tuple[Block, ...]:
    match message.role:
        case "tool":
            return (ToolResultBlock(ok=True, data=parse_tool_content(message.text)),)
        case "assistant":
            text = (TextBlock(text=message.text),) if message.text.strip() else ()
            calls = (
                ToolCallBlock(
                    tool_call_id=call.call_id, tool_name=call.tool_name, input=_read_arguments(call.arguments)
                )
                for call in message.calls
            )
            return (*text, *calls)
        case _:
            return message.without_addresses().to_prompt().content if message.text.strip() or message.parts else ()


def _read_arguments(arguments: str) -> Any:
    try:
        return json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return {}


def find_response_conversation(
    resources: Resources, caller: Caller, scope: str, response_id: str, branch_key: str
) -> Conversation:
    """Return the conversation of an earlier response, or if it has gone on since, a copy of it up to the response.

    Args:
        resources: Of the process.
        caller: Whose response it is.
        scope: The agent's.
        response_id: As the client names it.
        branch_key: Names the copy: the same for the same request sent again.

    Raises:
        InvalidRequest: There is no such response of this agent, or too much was said before it.
    """
    turn_id, dot, place = response_id.removeprefix(RESPONSE_ID_PREFIX).partition(".")
    try:
        turn = find_turn_for_caller(resources, caller, turn_id if is_valid_id(turn_id) else "")
        conversation = get_conversation(resources, caller, turn.conversation)
    except NotFound:
        raise InvalidRequest(NO_PREVIOUS_RESPONSE.format(response_id[:120])) from None
    if is_response_deleted(resources, turn, dot + place):
        raise InvalidRequest(NO_PREVIOUS_RESPONSE.format(response_id[:120]))
    if conversation.scope != scope:
        raise InvalidRequest("The previous response is of another agent.")
    if _is_newest_turn(resources, conversation, turn.id):
        return conversation
    from fermata.client_protocols.openai_branches import branch_conversation  # most requests go on at the end

    return branch_conversation(resources, caller, conversation, turn.id, branch_key)


def mark_response_deleted(resources: Resources, turn: Turn, place: str) -> None:
    """Store that a client has deleted a response. Safe to repeat.

    Args:
        resources: Of the process.
        turn: The response's turn.
        place: Which of its answers it is, as its id has it.
    """
    table, pk, sk = _build_mark_key(resources, turn, place)
    resources.tables.write_items(Put(table, {"pk": pk, "sk": sk, "v": 1, "ttl": turn.expires}, if_absent=True))


def is_response_deleted(resources: Resources, turn: Turn, place: str) -> bool:
    """Return whether a client has deleted a response, whose arguments are those of `mark_response_deleted`."""
    return resources.tables.get_item_by_key(_build_mark_key(resources, turn, place)) is not None


def _build_mark_key(resources: Resources, turn: Turn, place: str) -> ItemKey:
    return ItemKey(resources.settings.bridges_table, turn.pk, f"openai-deleted#{place[:20]}")
