"""Define the bodies of the studio's chat, of the Conversation API, and of the rules of its keys (decision 0474)."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from fermata.domain.conversation_key import (
    DEFAULT_KEY_MESSAGES_PER_MINUTE,
    DEFAULT_KEY_MESSAGES_PER_MONTH,
    MAX_KEY_INSTRUCTION_CHARS,
    MAX_KEY_MESSAGES_PER_MINUTE,
    MAX_KEY_MESSAGES_PER_MONTH,
    ConversationKeyRole,
)
from fermata.wire.bodies.fields import (
    JSON_INTEGER,
    ContentSpaceName,
    LenientBody,
    NonBlankTitle,
    ResourceId,
    StrictBody,
)
from fermata.wire.bodies.prompt_parts import MAX_PROMPT_CHARACTERS

MAX_CONVERSATION_MESSAGE_CHARS = 10_000
MAX_CONTEXT_ITEMS = 20
MAX_LISTED_NAMES = 100
_Message = Annotated[
    str, StringConstraints(min_length=1, max_length=MAX_PROMPT_CHARACTERS), Field(json_schema_extra={"pattern": r"\S"})
]
_ShortMessage = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_CONVERSATION_MESSAGE_CHARS),
    Field(json_schema_extra={"pattern": r"\S"}),
]
_ContextName = Annotated[str, StringConstraints(max_length=200)]
_Names = Annotated[
    list[Annotated[str, StringConstraints(min_length=1, max_length=200)]],
    Field(min_length=1, max_length=MAX_LISTED_NAMES),
]
_Instructions = Annotated[str, StringConstraints(max_length=MAX_KEY_INSTRUCTION_CHARS)]
_PerMinute = Annotated[int, Field(ge=1, le=MAX_KEY_MESSAGES_PER_MINUTE), JSON_INTEGER]
_PerMonth = Annotated[int, Field(ge=1, le=MAX_KEY_MESSAGES_PER_MONTH), JSON_INTEGER]


class StudioContextBody(LenientBody):
    """What the user has open, and what is pinned. It helps the agent to guess what is meant, and permits nothing."""

    active_model_id: _ContextName | None = None
    active_locale: _ContextName | None = None
    active_entry_id: _ContextName | None = None
    panel_state: _ContextName | None = None
    active_branch: _ContextName | None = None
    context_items: Annotated[list[dict[str, Any]], Field(max_length=MAX_CONTEXT_ITEMS)] | None = None

    def to_ui_context(self) -> dict[str, Any]:
        """Return the members that are known, as the studio's agent reads them."""
        return self.model_dump(by_alias=True, exclude_none=True)


class StudioChatBody(LenientBody):
    """A message to the studio's agent. Without `conversationId`, or with that of somebody else, it begins one."""

    message: _Message
    conversation_id: ResourceId | None = None
    model: ResourceId | None = None
    context: StudioContextBody | None = None


class ConversationMessageBody(LenientBody):
    """A message of a program to the studio's agent."""

    message: _ShortMessage
    conversation_id: ResourceId | None = None
    context: StudioContextBody | None = None


class NewConversationKeyRules(StrictBody):
    """What a key of the Conversation API may do. Without lists, all that its role may do in the project."""

    project: ContentSpaceName
    role: ConversationKeyRole = "editor"
    models: _Names | None = None
    tools: _Names | None = None
    locales: _Names | None = None
    instructions: _Instructions = ""
    model_id: ResourceId | None = None
    messages_per_minute: _PerMinute = DEFAULT_KEY_MESSAGES_PER_MINUTE
    messages_per_month: _PerMonth = DEFAULT_KEY_MESSAGES_PER_MONTH


class ChangedConversationKeyRules(StrictBody):
    """New rules. Members that are left out stay; a list or a model that is null is removed. The project stays."""

    role: ConversationKeyRole | None = None
    models: _Names | None = None
    tools: _Names | None = None
    locales: _Names | None = None
    instructions: _Instructions | None = None
    model_id: ResourceId | None = None
    messages_per_minute: _PerMinute | None = None
    messages_per_month: _PerMonth | None = None


class ApiKeyChange(StrictBody):
    """A new label, or new rules, of a key of the Conversation API."""

    label: NonBlankTitle | None = None
    conversation: ChangedConversationKeyRules | None = None
