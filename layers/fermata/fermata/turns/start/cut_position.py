"""Find where a conversation is cut, when its user goes back behind one of its turns (decision 0383)."""

from fermata.aws.resources import Resources
from fermata.conversations.message_cuts import leave_out_cut_messages
from fermata.conversations.message_store import count_positions, read_newest_messages
from fermata.domain.conversation import Conversation
from fermata.domain.errors import Conflict

_BATCH_SIZE = 200
CUT_TURN_NOT_FOUND = "The message to go back to is not in this conversation any more. Read the conversation again."


def find_cut_position(resources: Resources, conversation: Conversation, turn: str) -> int:
    """Return the position behind the messages of a turn; 0 for no turn.

    Args:
        resources: Of the process.
        conversation: The conversation.
        turn: The last turn that stays.

    Raises:
        Conflict: The conversation has no messages of it.
    """
    before: int | None = None
    while turn:
        batch = read_newest_messages(resources, conversation.tenant, conversation.id, before=before, limit=_BATCH_SIZE)
        for message in leave_out_cut_messages(batch, conversation.cuts):
            if message.turn == turn:
                return message.position + count_positions(message)
        if len(batch) < _BATCH_SIZE:
            raise Conflict(CUT_TURN_NOT_FOUND)
        before = batch[-1].position
    return 0
