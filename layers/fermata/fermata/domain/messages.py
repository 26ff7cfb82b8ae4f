"""Define a message of a conversation."""

from decimal import Decimal
from typing import Literal

from fermata.domain.base import DomainModel
from fermata.domain.blocks import Block

Role = Literal["user", "assistant", "tool"]


class UsageSoFar(DomainModel, defer_build=False):
    """What a turn had used when a message was stored, that of its earlier rounds included."""

    prompt_tokens: int
    completion_tokens: int
    cost_usd: Decimal


class Message(DomainModel, defer_build=False):
    """One message, stored as one row. Positions increase and may have gaps."""

    position: int
    role: Role
    content: tuple[Block, ...]
    turn: str
    round: int = 0
    tool_call_id: str | None = None
    tool_name: str | None = None
    created_at: str = ""
    partial: bool | None = None
    """True if a failure, a cancellation or a newer prompt cut the model's response off."""
    turn_usage: UsageSoFar | None = None
    """Of a response of a model, so that a reader of the conversation sees what each turn has cost."""
