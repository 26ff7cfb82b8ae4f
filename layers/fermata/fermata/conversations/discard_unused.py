"""Discard a conversation that was created for a prompt which was refused."""

import contextlib
from collections.abc import Iterator

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Update
from fermata.aws.resources import Resources
from fermata.conversations.conversation_rows import bin_partition_of_conversation, build_conversation_key
from fermata.domain.conversation import Conversation
from fermata.domain.errors import ApiError


@contextlib.contextmanager
def discarded_if_refused(
    resources: Resources, conversation: Conversation, *, is_new: bool = True
) -> Iterator[Conversation]:
    """Discard a conversation that is new if what is asked in it is refused before anything was said.

    Args:
        resources: Of the process.
        conversation: As it was created.
        is_new: Whether it was created for this request. Any other one stays.
    """
    try:
        yield conversation
    except ApiError:
        if is_new:
            discard_unused_conversation(resources, conversation)
        raise


def discard_unused_conversation(resources: Resources, conversation: Conversation) -> None:
    """Move a conversation in which nothing was said into the bin. One that a turn has claimed stays. Idempotent.

    Its row stays, so that a late copy of the write that created it finds it (decision 0599). The next prompt of its id
    begins anew.

    Args:
        resources: Of the process.
        conversation: As it was created.
    """
    now = resources.clock.now_iso()
    move = Update(
        *build_conversation_key(resources, conversation.tenant, conversation.id),
        "SET deleted_at = :now, gpk = :bin, gsk = :now, discarded = :yes ADD discards :one",
        {
            ":now": now,
            ":bin": bin_partition_of_conversation(conversation.id),
            ":yes": True,
            ":one": 1,
            ":first": conversation.next_position,
            ":created": conversation.created_at,
        },
        condition="attribute_not_exists(deleted_at) AND attribute_not_exists(claim) AND next_position = :first "
        "AND created_at = :created",
    )
    with contextlib.suppress(ConditionFailed):  # it is used, or gone
        resources.tables.write_items(move)
