"""Define a conversation as its DynamoDB row stores it."""

from decimal import Decimal

from fermata.domain.base import DomainModel


class Conversation(DomainModel):
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
    prompt_tokens_total: int = 0
    completion_tokens_total: int = 0
    cache_read_tokens_total: int = 0
    cache_creation_tokens_total: int = 0
    cost_usd_total: Decimal = Decimal(0)
    context_tokens: int = 0
    next_position: int = 0
    claim: str | None = None
    created_at: str
    updated_at: str
