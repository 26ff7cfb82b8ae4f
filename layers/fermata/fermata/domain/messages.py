"""A conversation is a thread of messages."""

from typing import Literal

from fermata.domain.base import DomainModel
from fermata.domain.blocks import Block

Role = Literal["user", "assistant", "tool"]


class Message(DomainModel):
    """One row of a conversation. `position` orders it; numbers rise and may have gaps."""

    position: int
    role: Role
    content: tuple[Block, ...]
    turn: str
    round: int = 0
    tool_call_id: str | None = None
    tool_name: str | None = None
    created_at: str = ""
    partial: bool | None = None
    """True of what the model had said when it was cut off: by a failure, a cancel, a newer prompt."""
