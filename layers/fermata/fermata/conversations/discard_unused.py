"""Discard a conversation that was created for a prompt which was refused."""

import contextlib

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Delete
from fermata.aws.resources import Resources
from fermata.conversations.conversation_store import build_conversation_key
from fermata.domain.conversation import Conversation


def discard_unused_conversation(resources: Resources, conversation: Conversation) -> None:
    """Delete a conversation in which nothing was said. One that a turn has claimed meanwhile stays. Idempotent.

    Args:
        resources: Of the process.
        conversation: As it was created.
    """
    key = build_conversation_key(resources, conversation.tenant, conversation.id)
    unused = "attribute_not_exists(claim) AND next_position = :first AND created_at = :created"
    values = {":first": conversation.next_position, ":created": conversation.created_at}
    with contextlib.suppress(ConditionFailed):  # it is used, or gone
        resources.tables.write_items(Delete(*key, condition=unused, values=values))
