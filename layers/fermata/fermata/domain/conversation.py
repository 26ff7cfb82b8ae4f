"""Define a conversation as its DynamoDB row stores it."""

from decimal import Decimal

from fermata.domain.base import DomainModel

_CHILD_SEPARATOR = "."
"""Between the id of a conversation and the turn of a sub-agent, whose messages are part of it. No id contains it."""


def build_child_conversation_id(conversation: str, turn: str) -> str:
    """Return the id under which the messages of a sub-agent's turn are stored.

    Args:
        conversation: The conversation of the turn that asks, which may be a sub-agent's itself.
        turn: The sub-agent's turn.
    """
    return f"{get_root_conversation(conversation)}{_CHILD_SEPARATOR}{turn}"


def get_root_conversation(conversation: str) -> str:
    """Return the id of the conversation that a user sees, of which a sub-agent's messages are a part."""
    return conversation.partition(_CHILD_SEPARATOR)[0]


def get_child_turn(conversation: str) -> str:
    """Return the turn of the sub-agent to whose messages an id leads; empty for a conversation of a user."""
    return conversation.partition(_CHILD_SEPARATOR)[2]


class Conversation(DomainModel, defer_build=False):
    """The metadata and totals of a conversation.

    `claim` is the turn that may write messages now; `next_position` is the position of its next message. Totals count
    finished turns. The cost is exact.
    """

    id: str
    tenant: str
    user: str
    scope: str
    title: str
    credential_id: str | None = None
    model_id: str
    space: str = ""
    """The content space that its turns work in, as `site/environment`; empty for the tenant's only one, or none."""
    prompt_tokens_total: int = 0
    completion_tokens_total: int = 0
    cache_read_tokens_total: int = 0
    cache_creation_tokens_total: int = 0
    cost_usd_total: Decimal = Decimal(0)
    context_tokens: int = 0
    next_position: int = 0
    claim: str | None = None
    cuts: tuple[tuple[int, int], ...] = ()
    """Positions of messages that count no more (conversations/message_cuts.py)."""
    archived: bool = False
    """Whether its user has put it away. Clients of the CMS agent list such sessions apart."""
    created_at: str
    updated_at: str
