"""Clear references of conversations to credentials that were removed (decision 0086)."""

from collections.abc import Sequence

from fermata.aws.resources import Resources
from fermata.credentials.open_credential import find_existing_ids
from fermata.domain.conversation import Conversation


def clear_conversation_credentials(
    resources: Resources, tenant: str, conversations: Sequence[Conversation]
) -> list[Conversation]:
    """Return the conversations, without the credential where it was removed, so that the user picks another one.

    Args:
        tenant: The tenant's name.
        conversations: Conversations of this tenant, as they are stored.
    """
    credential_ids = {conversation.credential_id for conversation in conversations if conversation.credential_id}
    existing_ids = find_existing_ids(resources, tenant, credential_ids)
    return [
        conversation
        if conversation.credential_id in existing_ids
        else conversation.model_copy(update={"credential_id": None})
        for conversation in conversations
    ]
