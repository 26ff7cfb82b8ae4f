"""Define what a client says about the page and the user of a turn, which the agent's properties can refer to."""

from typing import Any

from pydantic import Field

from fermata.domain.base import DomainModel

MAX_CONTEXT_CHARS = 100_000
"""Of the JSON of a context. It is part of the turn's row."""


class AgentContext(DomainModel):
    """The page, user and state with which a turn starts. It does not change while the turn runs.

    Attributes:
        shared_state: What the page shares; None if it shares nothing.
        shared_state_read_only: Whether the agent may not change it.
    """

    conversation_id: str = ""
    page_id: str = ""
    user_id: str = ""
    url_query: dict[str, Any] = Field(default_factory=dict)
    shared_state: dict[str, Any] | None = None
    shared_state_read_only: bool = False


NO_AGENT_CONTEXT = AgentContext()
