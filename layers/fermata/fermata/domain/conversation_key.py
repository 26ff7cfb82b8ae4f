"""Define what a key of the Conversation API may do: one project, a role, and what narrows it (decision 0474)."""

from typing import Literal

from fermata.domain.base import RecordModel

ConversationKeyRole = Literal["viewer", "editor", "admin"]
MAX_KEY_INSTRUCTION_CHARS = 2_000
MAX_KEY_MESSAGES_PER_MINUTE = 60
MAX_KEY_MESSAGES_PER_MONTH = 10_000_000
DEFAULT_KEY_MESSAGES_PER_MINUTE = 10
DEFAULT_KEY_MESSAGES_PER_MONTH = 1_000


class ConversationKeyRules(RecordModel):
    """The rules of a key. They are read again by each call of a tool, so a change counts within a turn too.

    Attributes:
        project: The only content space, as `site/environment`.
        role: `viewer`, `editor` or `admin`. Another text, of a newer release, is no more than a viewer.
        models: The only content models; None for all. The same of `tools` and `locales`.
        instructions: What the agent is told besides, by who has made the key.
        model_id: The language model that answers; empty for the scope's default.
    """

    project: str
    role: str = "editor"
    models: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    locales: tuple[str, ...] | None = None
    instructions: str = ""
    model_id: str = ""
    messages_per_minute: int = DEFAULT_KEY_MESSAGES_PER_MINUTE
    messages_per_month: int = DEFAULT_KEY_MESSAGES_PER_MONTH
