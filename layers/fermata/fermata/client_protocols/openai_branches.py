"""Let a conversation go on from an earlier response in a copy, as OpenAI's clients expect it (decision 0447)."""

import contextlib
import hashlib
from dataclasses import dataclass

from fermata.aws.dynamodb_items_and_writes import ConditionFailed
from fermata.aws.resources import Resources
from fermata.client_protocols.chat_conversations import DELETED_CHAT
from fermata.conversations.block_store import BlockFetcher
from fermata.conversations.conversation_store import create_conversation, get_conversation
from fermata.conversations.message_cuts import leave_out_cut_messages
from fermata.conversations.message_store import (
    build_message_put,
    count_positions,
    read_following_messages,
)
from fermata.domain.caller import Caller
from fermata.domain.conversation import Conversation
from fermata.domain.errors import Gone, InvalidRequest, NotFound
from fermata.domain.messages import Message

MAX_BRANCHED_MESSAGES = 400
"""A copy reads and writes every message, with its pictures and large results, while its client waits."""
_FETCHED_AT_ONCE = 4
"""A message may have eight pictures, and the function has little memory."""
NOT_IN_CONVERSATION = "The previous response is not part of its conversation any more: its user went back behind it."


def branch_conversation(
    resources: Resources, caller: Caller, conversation: Conversation, turn: str, branch_key: str
) -> Conversation:
    """Return a copy of a conversation up to the end of a turn. Safe to repeat: the same key means the same copy.

    Args:
        resources: Of the process.
        caller: Whose conversation it is.
        conversation: The conversation, which stays as it is.
        turn: The last turn of the copy.
        branch_key: Names the copy.

    Raises:
        InvalidRequest: The turn is not in the conversation any more, or too much was said before it.
        Gone: The copy was deleted.
    """
    messages = _list_until(resources, conversation, turn)
    copied = _open_copy(resources, caller, conversation, f"{turn} {branch_key}")
    writer = _CopyWriter(resources, copied)
    for start in range(0, len(messages), _FETCHED_AT_ONCE):
        part = messages[start : start + _FETCHED_AT_ONCE]
        for message in BlockFetcher(resources.blobs).fetch_all_blocks(part):  # each keeps what it has fetched
            writer.write(message)
    return copied


def _list_until(resources: Resources, conversation: Conversation, turn: str) -> list[Message]:
    """Return the messages up to the end of a turn, without what is in S3."""
    tenant, limit = conversation.tenant, MAX_BRANCHED_MESSAGES + 1
    stored = read_following_messages(resources, tenant, conversation.id, 0, limit=limit)
    if len(stored) == limit:
        raise InvalidRequest(
            f"A conversation of more than {MAX_BRANCHED_MESSAGES} messages goes on only at its end. "
            "Name its newest response."
        )
    kept = leave_out_cut_messages(stored, conversation.cuts)
    last = max((index for index, message in enumerate(kept) if message.turn == turn), default=-1)
    if last < 0:
        raise InvalidRequest(NOT_IN_CONVERSATION)
    return kept[: last + 1]


def _open_copy(resources: Resources, caller: Caller, conversation: Conversation, name: str) -> Conversation:
    digest = hashlib.sha256(f"{conversation.tenant} {conversation.id} {name}".encode()).hexdigest()
    create_conversation(
        resources,
        caller,
        conversation.scope,
        conversation.title,
        conversation.credential_id,
        conversation.model_id,
        conversation_id=f"br-{digest[:32]}",
        space=conversation.space,
    )
    try:
        return get_conversation(resources, caller, f"br-{digest[:32]}")
    except NotFound:
        raise Gone(DELETED_CHAT) from None


@dataclass
class _CopyWriter:
    """Writes messages one behind the other. Their turns get ids of their own, since each turn has one conversation."""

    resources: Resources
    conversation: Conversation
    position: int = 0

    def write(self, message: Message) -> None:
        identity = f"{self.conversation.id} {message.turn}"
        turn = hashlib.sha256(identity.encode()).hexdigest()[:21]
        copy = message.model_copy(update={"position": self.position, "turn": turn, "turn_usage": None})
        put = build_message_put(self.resources, self.conversation.tenant, self.conversation.id, copy)
        with contextlib.suppress(ConditionFailed):  # the same request has copied it before
            self.resources.tables.write_items(put)
        self.position += count_positions(message)
