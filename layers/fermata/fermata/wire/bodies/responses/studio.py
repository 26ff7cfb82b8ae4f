"""Define the responses of the studio's own clients, and of the Conversation API."""

from typing import Any, Literal

from fermata.wire.bodies.responses.common import InstantField, ResponseModel


class StudioUsageView(ResponseModel):
    input_tokens: int
    output_tokens: int


class StudioCallView(ResponseModel):
    """A call of a tool with its result, which has `error` if it has failed."""

    id: str
    name: str
    result: Any


class StudioMessageView(ResponseModel):
    """A message. `usage` is what its turn had used by then."""

    id: str
    role: Literal["user", "assistant"]
    content: str
    tool_calls: list[StudioCallView] | None = None
    model: str | None = None
    usage: StudioUsageView | None = None
    created_at: InstantField


class StudioHistoryResponse(ResponseModel):
    """Messages in their order. `before` is there when there are older ones: send it as `before`."""

    conversation_id: str
    messages: list[StudioMessageView]
    before: str | None


class StudioConversationView(ResponseModel):
    id: str
    title: str
    created_at: InstantField
    updated_at: InstantField


class StudioConversationListResponse(ResponseModel):
    conversations: list[StudioConversationView]
    next_cursor: str | None


class ConversationMessageResponse(ResponseModel):
    """An answer with the results of the tools that were called for it."""

    conversation_id: str
    message: str
    tool_results: list[StudioCallView] | None = None
    usage: StudioUsageView
